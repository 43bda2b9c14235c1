/** The queue dashboard at `/queues`. */
import type { Middleware } from 'koa';
import type { Queues } from '../../queues/queues.js';
import type { ApiState } from '../route/context.js';

const PATH = '/queues';

/** Its scripts make styles, so those may be inline; nothing comes from elsewhere, and nothing goes there. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'self'",
  "form-action 'self'",
  "frame-ancestors 'self'",
].join('; ');
/** Its page asks another server for fonts, without which it has those of the system. */
const FOREIGN_LINKS = /<link\b[^>]*\bhref="https?:[^>]*>/g;

/** What is there before its scripts is dark, whatever its theme is. */
const FIRST_BACKGROUND = ';background:#151a21;';

/** Serves the dashboard; mount it after authentication. */
export function dashboard(queues: Queues): Middleware<ApiState> {
  let board: Promise<Middleware<ApiState>> | undefined;
  return async (context, next) => {
    if (context.path !== PATH && !context.path.startsWith(`${PATH}/`)) return next();
    board ??= import('./queue-board.js').then(({ queueBoard }) => queueBoard(queues, PATH));
    const serve = await board;
    let isServed = true;
    await serve(context, async () => {
      isServed = false;
    });
    // Not within it: it makes a 500 of every error.
    if (!isServed) return next();
    context.set('Content-Security-Policy', CONTENT_SECURITY_POLICY);
    if (typeof context.body === 'string' && context.response.is('html'))
      context.body = context.body.replace(FOREIGN_LINKS, '').replace(FIRST_BACKGROUND, ';');
  };
}
