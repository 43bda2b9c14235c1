/** What requests to HTTP servers need beyond Node's own: an end to silence, and to interim responses. */
import type { ClientRequest } from 'node:http';
import { errorCode } from './failures.js';

/** Responses like 103 (Early Hints) before the one that was asked for. */
const MAX_INTERIM = 100;

/** Errors of reused connections that the server had closed. */
const stale = new WeakSet<object>();

/** @param idleTimeoutMs limit of a silence before the response */
export function watchRequest(outgoing: ClientRequest, idleTimeoutMs: number): ClientRequest {
  outgoing.setTimeout(idleTimeoutMs, () => outgoing.destroy(timedOut()));
  let interim = 0;
  outgoing.on('information', () => {
    interim++;
    if (interim > MAX_INTERIM) outgoing.destroy(new Error('the server has more to come all the time'));
  });
  let isAnswered = false;
  outgoing.on('error', (error) => {
    if (outgoing.reusedSocket && !isAnswered) stale.add(error);
  });
  outgoing.on('response', () => {
    isAnswered = true;
    // The reader of the body may be slow.
    outgoing.setTimeout(0);
  });
  return outgoing;
}

/** Whether the server closed a keep-alive connection just when it was reused. */
export function isStale(thrown: unknown): boolean {
  return (
    thrown instanceof Error && stale.has(thrown) && ['ECONNRESET', 'EPIPE'].includes(errorCode(thrown) ?? '')
  );
}

/** The error of a connection that has timed out, as Node reports it. */
export function timedOut(): Error {
  return Object.assign(new Error('no answer in time'), { code: 'ETIMEDOUT' });
}
