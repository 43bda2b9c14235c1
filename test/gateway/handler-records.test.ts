import { expect } from 'chai';
import fc from 'fast-check';
import { readRecord, textOf } from '../../src/gateway/handler-records.js';

describe('a record of a handler', () => {
  const record = (more: object) =>
    readRecord(JSON.stringify({ level: 'warn', target: 'handler', message: 'text', ...more }));

  it('reads a record of a handler as an entry of the log, and writes it as a line', () => {
    const read = record({ request_id: 'r-1', fields: { user: 'ada', tries: 3, ok: true } });
    expect(read).to.deep.equal({
      ...{ level: 'warn', message: 'text', requestId: 'r-1' },
      fields: { user: 'ada', tries: 3, ok: true, target: 'handler' },
    });
    expect(read && textOf(read)).to.equal('[request r-1] WARN handler: text user="ada" tries=3 ok=true');
    const panic = record({ level: 'error', target: 'panic', fields: { place: 'handler.rs:1:2' } });
    expect(panic && textOf(panic)).to.equal('panicked at handler.rs:1:2: text');
  });

  it('drops values from a record of a handler that the SDK does not write', () => {
    const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
    const line = `{"level":"info","target":"t","message":"m","fields":{"a":${deep},"b":null,"__proto__":1,"c":1}}`;
    expect(readRecord(line)?.fields).to.deep.equal({ c: 1, target: 't', ['__proto__']: 1 });
    const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`k${at}`, at]));
    expect(Object.keys(record({ fields: many })?.fields ?? {})).to.have.length(41);
  });

  it('reads no record from a line that is anything else', () => {
    for (const line of ['', 'text', '1', 'null', '[]', '{}', '{"level":"loud","target":"","message":""}'])
      expect(readRecord(line), line).to.equal(undefined);
    expect(record({ message: 1 })).to.equal(undefined);
    fc.assert(
      fc.property(fc.json(), (line) => {
        const read = readRecord(line);
        if (read) textOf(read);
      }),
    );
  });
});
