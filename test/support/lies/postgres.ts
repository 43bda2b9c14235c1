/** PostgreSQL: https://www.postgresql.org/docs/current/protocol-message-formats.html */
import type { Socket } from 'node:net';
import { inTurn, type Lie, thenZeros } from './lie.js';

const config: Lie['config'] = (port) => ({
  host: '127.0.0.1',
  port,
  database: 'd',
  username: 'u',
  ssl_mode: 'disable',
  pool_size: 1,
});

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

function lie(name: string, serve: (socket: Socket) => void): Lie {
  const call = { operation: 'query', payload: '{"sql":"SELECT 1","params":[]}', timeoutMs: 2_000 };
  return { name: `postgres: ${name}`, type: 'postgres', config, serve, call };
}

export const POSTGRES_LIES: readonly Lie[] = [
  lie('an unknown kind of authentication', inTurn(message('R', int32(99)))),
  lie(
    'a row with a negative number of columns',
    inTurn(Buffer.concat([AUTHENTICATED, message('D', int16(-5))])),
  ),
  lie('an error without an end', inTurn(Buffer.concat([AUTHENTICATED, message('E', Buffer.from('SERROR'))]))),
  lie('an unknown kind of authentication, later', inTurn(WELCOME, message('R', int32(99)))),
  lie(
    'an answer that never ends',
    inTurn(WELCOME, thenZeros(Buffer.concat([COLUMNS, Buffer.from('D'), int32(0x7fffffff)]))),
  ),
  lie('no answer at all', inTurn(WELCOME, Buffer.alloc(0))),
  lie('TLS that never ends', inTurn(Buffer.from('S'), Buffer.from([22, 3, 3]))),
];
