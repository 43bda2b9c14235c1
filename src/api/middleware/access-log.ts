/** One line per request: what was asked, what came of it, how long it took. The query is left out: it may hold data. */
import type { Logger } from '../../log.js';
import type { ApiContext, Next } from '../context.js';

export function accessLog(log: Logger) {
  // These members hold no secrets, and looking for some would cost more than writing the line.
  const unredacted = log.child({}, { redact: [] });
  return async (context: ApiContext, next: Next): Promise<void> => {
    const started = performance.now();
    try {
      await next();
    } finally {
      unredacted.info(
        {
          request_id: context.state.requestId,
          method: context.method,
          route: context.state.route?.path ?? context.path,
          status: context.status,
          ms: Math.round((performance.now() - started) * 10) / 10,
        },
        'request',
      );
    }
  };
}
