/** Redis: https://redis.io/docs/latest/develop/reference/protocol-spec/ */
import type { Socket } from 'node:net';
import { inTurn, type Lie, thenZeros } from './lie.js';

const config: Lie['config'] = (port) => ({
  host: '127.0.0.1',
  port,
  use_tls: false,
  database: 0,
  pool_size: 1,
});

const PONG = Buffer.from('+PONG\r\n');

function lie(name: string, serve: (socket: Socket) => void): Lie {
  return {
    name: `redis: ${name}`,
    type: 'redis',
    config,
    serve,
    call: { operation: 'get', args: { key: 'k' }, timeoutMs: 2_000 },
  };
}

export const REDIS_LIES: readonly Lie[] = [
  lie('an array of 4294967296 elements', inTurn(Buffer.from('*4294967296\r\n'))),
  lie('200000 arrays in each other', inTurn(Buffer.from('*1\r\n'.repeat(200_000)))),
  lie('a text that never ends', inTurn(thenZeros(Buffer.from('$536870912\r\n')))),
  lie('a line that never ends', inTurn(thenZeros(Buffer.from('+')))),
  lie('an array of 4294967296 elements, later', inTurn(PONG, PONG, Buffer.from('*4294967296\r\n'))),
  lie('a text that never ends, later', inTurn(PONG, PONG, thenZeros(Buffer.from('$536870912\r\n')))),
];
