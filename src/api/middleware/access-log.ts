/** One line per request: what was asked, what came of it, how long it took. The query is left out: it may hold data. */
import type { ApiContext, Next } from '../context.js';

export async function accessLog(context: ApiContext, next: Next): Promise<void> {
  const started = performance.now();
  try {
    await next();
  } finally {
    context.state.log.info(
      {
        method: context.method,
        route: context.state.route?.path ?? context.path,
        status: context.status,
        ms: Math.round((performance.now() - started) * 10) / 10,
      },
      'request',
    );
  }
}
