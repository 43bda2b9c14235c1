/** The cases that the tests of the process of postgres services read, too: both read payloads alike. */
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { ServiceError } from '../../../src/actors/service-error.js';
import { JsonText, parseStatement, type SqlValue } from '../../../src/actors/sql/statement.js';

interface Cases {
  readonly payloads: readonly {
    readonly payload: string;
    readonly sql?: string;
    readonly sent?: readonly (null | string | { readonly base64: string })[];
    readonly error?: string;
  }[];
}

/** What is wrong with a text that is no JSON is in the words of its parser. */
const NOT_JSON = 'payload: must be JSON: ';

/** As it is sent: bytes in binary format, everything else as text. */
function sent(value: SqlValue): null | string | { base64: string } {
  if (value === null) return null;
  if (Buffer.isBuffer(value)) return { base64: value.toString('base64') };
  return asSent(value instanceof JsonText ? value.text : String(value));
}

/** Lone surrogates cannot be sent. */
const asSent = (text: string) => Buffer.from(text).toString();

function outcomeOf<R extends object>(work: () => R): R | { error: string } {
  try {
    return work();
  } catch (thrown) {
    if (!(thrown instanceof ServiceError) || thrown.kind !== 'invalid') throw thrown;
    return { error: thrown.message.startsWith(NOT_JSON) ? NOT_JSON : thrown.message };
  }
}

describe('payloads with statements, in both languages', () => {
  let cases: Cases;
  before(async () => {
    const file = new URL('../../../../test/golden/statements.json', import.meta.url);
    cases = JSON.parse(await readFile(file, 'utf8')) as Cases;
  });

  it('reads payloads with statements as the process of postgres services does', () => {
    for (const { payload, ...expected } of cases.payloads) {
      const outcome = outcomeOf(() => {
        const { sql, params } = parseStatement(Buffer.from(payload));
        return { sql: asSent(sql), sent: params.map(sent) };
      });
      expect(outcome, payload).to.deep.equal(expected);
    }
  });
});
