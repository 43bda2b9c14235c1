import { PassThrough } from 'node:stream';
import { expect } from 'chai';
import { captureOutput } from '../../src/gateway/handlers/handler-output.js';
import type { HandlerEntry } from '../../src/gateway/log/endpoint-log.js';
import { eventually } from '../support/eventually.js';
import { createTestLog } from '../support/log.js';

describe('output of a handler', () => {
  const capture = () => {
    const logged = createTestLog();
    const entries: HandlerEntry[] = [];
    const [stdout, stderr, records] = [new PassThrough(), new PassThrough(), new PassThrough()];
    const output = captureOutput({ stdout, stderr, records }, logged.log, {
      onEntry: (entry) => entries.push(entry),
    });
    const end = () => {
      for (const stream of [stdout, stderr, records]) stream.end();
      return output.ended;
    };
    return { logged, entries, stdout, stderr, records, output, end };
  };

  it('logs the output of a handler line by line, however it is chunked, with the name of its stream', async () => {
    const { logged, stdout, stderr, records, output } = capture();
    for (const piece of ['one\ntw', 'o\r\n', '\u00e4'.repeat(3), '\nlast']) stdout.write(piece);
    stdout.end();
    stderr.end('wrong\n');
    records.end();
    await output.ended;
    const lines = logged.lines.map(({ msg, stream }) => `${String(stream)} ${msg}`);
    expect(lines).to.have.same.members([
      'stdout one',
      'stdout two',
      'stdout \u00e4\u00e4\u00e4',
      'stdout last',
      'stderr wrong',
    ]);
    expect(output.lastLines()).to.include('last').and.include('wrong');
  });

  it('replaces characters in the output of a handler that PostgreSQL refuses', async () => {
    const { stdout, stderr, records, output } = capture();
    stdout.end(`a\0b\n${'x'.repeat(4_095)}\u{1f600}\n`);
    stderr.end();
    records.end();
    await output.ended;
    expect(output.lastLines()).to.equal(`a\ufffdb\n${'x'.repeat(4_095)}\ufffd...`);
  });

  it('cuts a line of output that has no end, and says how much is missing', async () => {
    const { logged, entries, stdout, end } = capture();
    for (let count = 0; count < 100; count++) stdout.write('ä'.repeat(10_000));
    stdout.write('\nnext\n');
    await end();
    expect(logged.lines).to.have.length(2);
    expect(logged.lines[0]?.msg?.length).to.be.below(5_000);
    expect(logged.lines[1]?.msg).to.equal('next');
    expect(entries.map(({ message }) => message)).to.deep.equal([`${'ä'.repeat(4_096)}...`, 'next']);
    expect(entries.map(({ fields }) => fields)).to.deep.equal([
      { target: 'stdout', cut_bytes: 2 * (1_000_000 - 4_096) },
      { target: 'stdout' },
    ]);
  });

  const record = (level: string, message: string) =>
    `${JSON.stringify({ level, target: 'handler', message, request_id: null, fields: {} })}\n`;

  it('loses no recorded error of a handler, however much the handler prints', async () => {
    const { entries, stdout, records, end } = capture();
    stdout.write('line\n'.repeat(20_000));
    await eventually(() => expect(entries).to.have.length(500));
    for (let count = 0; count < 600; count++) records.write(record('error', `error ${count}`));
    records.write(record('info', 'no room'));
    await end();
    const errors = entries.filter(({ level }) => level === 'error').map(({ message }) => message);
    expect(errors).to.deep.equal(Array.from({ length: 600 }, (_, count) => `error ${count}`));
    expect(entries.map(({ message }) => message)).not.to.include('no room');
  });

  it('limits the output of a handler that is nothing but errors, and says how many were dropped', async () => {
    const { entries, records, end } = capture();
    const recorded = 6_000;
    records.write(record('error', 'broken').repeat(recorded));
    await end();
    const kept = entries.filter(({ message }) => message === 'broken').length;
    const notes = entries.filter(({ fields }) => fields?.['target'] === 'gateway');
    expect(kept).to.be.within(2_000, recorded - 1);
    expect(notes.every(({ level, message }) => level === 'error' && /2000 errors/.test(message))).to.equal(
      true,
    );
    expect(notes.reduce((sum, { fields }) => sum + Number(fields?.['dropped']), kept)).to.equal(recorded);
  });

  it('reads the output of a handler with pauses, so that a handler that prints without end blocks', async () => {
    const { stdout, stderr, records, output } = capture();
    const CHUNKS = 100;
    let taken = 0;
    for (let count = 0; count < CHUNKS; count++) stdout.write('x'.repeat(64 * 1024), () => taken++);
    await eventually(() => expect(taken).to.be.above(16));
    expect(taken).to.be.below(CHUNKS);
    stdout.destroy();
    stderr.end();
    records.end();
    await output.ended;
  });

  it('logs the output of a handler up to a number of lines, and counts the rest', async () => {
    const { logged, stdout, stderr, records, output } = capture();
    const printed = 20_000;
    stdout.end('line\n'.repeat(printed));
    stderr.end();
    records.end();
    await output.ended;
    const shown = logged.lines.filter(({ msg }) => msg === 'line').length;
    const dropped = logged.lines.reduce((sum, line) => sum + Number(line['dropped'] ?? 0), 0);
    expect(shown + dropped).to.equal(printed);
    expect(dropped).to.be.above(0);
    expect(output.lastLines().split('\n')).to.have.length(20);
  });
});
