/** PostgreSQL: https://www.postgresql.org/docs/current/protocol-message-formats.html */
import { endless, inTurn, type Lie, thenZeros } from './lie.js';
import { liesOf } from './protocols.js';

/** A message: type, length, content. */
export function message(type: string, ...content: readonly Buffer[]): Buffer {
  const body = Buffer.concat(content);
  return Buffer.concat([Buffer.from(type), int32(body.length + 4), body]);
}

export function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

export function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
}

export const text = (value: string) => Buffer.from(`${value}\0`);

export const AUTHENTICATED = message('R', int32(0));
export const READY = message('Z', Buffer.from('I'));
/** What a server says when it has accepted a client. */
export const WELCOME = Buffer.concat([
  AUTHENTICATED,
  message('S', text('server_version'), text('18.0')),
  message('K', int32(1), int32(2)),
  READY,
]);
/** One column `v` of type text. */
export const COLUMNS = message(
  'T',
  int16(1),
  text('v'),
  int32(0),
  int16(0),
  int32(25),
  int16(-1),
  int32(-1),
  int16(0),
);

/** One row of it, and the end of the statement. */
export const RESULT = Buffer.concat([
  message('1'),
  message('2'),
  COLUMNS,
  message('D', int16(1), int32(5), Buffer.from('hello')),
  message('C', text('SELECT 1')),
  READY,
]);
export const REFUSAL = Buffer.concat([
  message('E', text('SERROR'), text('C42601'), text('Mno'), Buffer.alloc(1)),
  READY,
]);

export const POSTGRES_LIES: readonly Lie[] = [
  ...liesOf('postgres', {
    'an unknown kind of authentication': inTurn(message('R', int32(99))),
    'a row with a negative number of columns': inTurn(
      Buffer.concat([AUTHENTICATED, message('D', int16(-5))]),
    ),
    'an error without an end': inTurn(Buffer.concat([AUTHENTICATED, message('E', Buffer.from('SERROR'))])),
    'an unknown kind of authentication, later': inTurn(WELCOME, message('R', int32(99))),
    'an answer that never ends': inTurn(
      WELCOME,
      thenZeros(Buffer.concat([COLUMNS, Buffer.from('D'), int32(0x7fffffff)])),
    ),
    'rows without end': inTurn(
      WELCOME,
      endless(COLUMNS, message('D', int16(1), int32(60_000), Buffer.alloc(60_000, 'a'))),
    ),
    'notices without end': inTurn(WELCOME, endless(Buffer.alloc(0), message('N', Buffer.alloc(60_000, 'a')))),
    'settings without end': inTurn(
      endless(AUTHENTICATED, message('S', text('a'.repeat(30_000)), text('b'.repeat(30_000)))),
    ),
    'no answer at all': inTurn(WELCOME, Buffer.alloc(0)),
  }),
  // The statement has its answer.
  ...liesOf(
    'postgres',
    { 'rows after the end of a statement': inTurn(WELCOME, endless(RESULT, RESULT)) },
    { mayPass: true },
  ),
  ...liesOf('postgres with TLS', {
    'TLS that never ends': inTurn(Buffer.from('S'), Buffer.from([22, 3, 3])),
  }),
];
