/**
 * Headers for browsers, on every response: pages of this API are not shown in frames, where another page could lead
 * people to click on them, and content is never taken for something else than its type says.
 */
import type { ApiContext, Next } from '../context.js';

export function securityHeaders(context: ApiContext, next: Next): Promise<unknown> {
  context.set('Content-Security-Policy', "frame-ancestors 'none'");
  // For browsers without frame-ancestors.
  context.set('X-Frame-Options', 'DENY');
  context.set('X-Content-Type-Options', 'nosniff');
  return next();
}
