/** Calls as drivers get them, without an actor. */
import type { DriverCall } from '../../src/actors/driver.js';
import { PendingCall } from '../../src/actors/driver-call.js';

/** @param signal aborts the call */
export function pendingCall(
  operation: string,
  args?: unknown,
  payload: string | Uint8Array = '',
  signal?: AbortSignal,
): DriverCall {
  const call = new PendingCall(operation, args, Buffer.from(payload), 60_000);
  if (signal?.aborted) call.abort();
  signal?.addEventListener('abort', () => call.abort(), { once: true });
  return call;
}
