/** The heads of frames between handlers and the actor host; `docs/SERVICE-PROTOCOL.md` describes them. */

import { ProtocolError } from './codec.js';

/** A call of a service, as a handler asks for it. */
export interface CallHead {
  readonly pool: string;
  readonly op: string;
  readonly args: unknown;
  /** Milliseconds; undefined leaves it to the actor host. */
  readonly deadline_ms: number | undefined;
  /** Whether it belongs to the open transaction of the connection. */
  readonly tx: boolean;
}

/**
 * Reads the token of the first frame of a connection.
 * @throws ProtocolError saying what is wrong
 */
export function parseTokenHead(json: string): string {
  const { token } = parseObject(json);
  if (typeof token !== 'string') throw new ProtocolError('the first frame of a connection needs a token');
  return token;
}

/**
 * Reads the head of a call. Handlers may be written without the SDK, so nothing is taken on trust.
 * @throws ProtocolError saying what is wrong
 */
export function parseCallHead(json: string): CallHead {
  const { pool, op, args, deadline_ms, tx } = parseObject(json);
  if (typeof pool !== 'string' || typeof op !== 'string')
    throw new ProtocolError('a call needs pool and op, both texts');
  if (deadline_ms !== undefined && !(Number.isSafeInteger(deadline_ms) && Number(deadline_ms) > 0)) {
    throw new ProtocolError('deadline_ms must be a positive integer');
  }
  if (tx !== undefined && typeof tx !== 'boolean') throw new ProtocolError('tx must be true or false');
  return { pool, op, args, deadline_ms: deadline_ms as number | undefined, tx: tx === true };
}

function parseObject(json: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (cause) {
    throw new ProtocolError('a head must be JSON', { cause });
  }
  if (typeof value !== 'object' || value === null) throw new ProtocolError('a head must be a JSON object');
  return value as Record<string, unknown>;
}
