/** Every request has an id: the one it came with if that is sane, or a new one. It goes out again and into the log. */
import { randomUUID } from 'node:crypto';
import type { Logger } from '../../log.js';
import { isUsableRequestId } from '../../request-id.js';
import type { ApiContext, Next } from '../context.js';

export function requestId(log: Logger) {
  return (context: ApiContext, next: Next): Promise<unknown> => {
    const given = context.get('X-Request-Id');
    const id = isUsableRequestId(given) ? given : randomUUID();
    context.state.requestId = id;
    context.state.log = log.child({ request_id: id });
    context.set('X-Request-Id', id);
    return next();
  };
}
