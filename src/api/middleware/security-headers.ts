/**
 * Headers for browsers, on every response: pages of this API are not shown in frames, where another page could lead
 * people to click on them, and content is never taken for something else than its type says. What the API answers is
 * kept by nobody on the way: it depends on who asks, and some of it is shown only once.
 */
import type { ApiContext, Next } from '../route/context.js';

/** The queue dashboard, which the web UI shows within its page; not what asks before jobs are removed. */
const FRAMED = /^\/queues(?!\/confirm(\/|$))(\/|$)/i;

export function securityHeaders(context: ApiContext, next: Next): Promise<unknown> {
  const isFramed = FRAMED.test(context.path);
  context.set('Content-Security-Policy', `frame-ancestors ${isFramed ? "'self'" : "'none'"}`);
  // Browsers without frame-ancestors read this one.
  context.set('X-Frame-Options', isFramed ? 'SAMEORIGIN' : 'DENY');
  context.set('X-Content-Type-Options', 'nosniff');
  if (context.path.startsWith('/api/')) context.set('Cache-Control', 'no-store');
  return next();
}
