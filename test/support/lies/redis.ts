/** Redis: https://redis.io/docs/latest/develop/reference/protocol-spec/ */
import { inTurn, type Lie, thenZeros } from './lie.js';
import { liesOf } from './protocols.js';

export const PONG = Buffer.from('+PONG\r\n');

export const REDIS_LIES: readonly Lie[] = liesOf('redis', {
  'an array of 4294967296 elements': inTurn(Buffer.from('*4294967296\r\n')),
  '200000 arrays in each other': inTurn(Buffer.from('*1\r\n'.repeat(200_000))),
  'a text that never ends': inTurn(thenZeros(Buffer.from('$536870912\r\n'))),
  'a line that never ends': inTurn(thenZeros(Buffer.from('+'))),
  'an array of 4294967296 elements, later': inTurn(PONG, PONG, Buffer.from('*4294967296\r\n')),
  'a text that never ends, later': inTurn(PONG, PONG, thenZeros(Buffer.from('$536870912\r\n'))),
});
