/** Logs one line per request. The query is left out, as it may contain data. */
import type { Logger } from '../../util/log.js';
import type { ApiContext, Next } from '../route/context.js';

export function accessLog(log: Logger) {
  // These members contain no secrets, and redaction would cost more than writing the line.
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
