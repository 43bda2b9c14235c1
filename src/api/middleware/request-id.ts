/**
 * Assigns the request id: a valid `X-Request-Id` of the client, else a new one. It is sent in the response and logged.
 */
import { randomUUID } from 'node:crypto';
import type { Logger } from '../../util/log.js';
import type { ApiContext, Next } from '../route/context.js';

/** Safe in a log line, a header and a URL. */
const USABLE = /^[\w.:+/=-]{1,128}$/;

export function requestId(log: Logger) {
  return (context: ApiContext, next: Next): Promise<unknown> => {
    const given = context.get('X-Request-Id');
    const id = USABLE.test(given) ? given : randomUUID();
    context.state.requestId = id;
    context.state.log = log.child({ request_id: id });
    context.set('X-Request-Id', id);
    return next();
  };
}
