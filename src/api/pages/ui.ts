/**
 * Serves the web UI at `/ui`. Its files are the same for everybody and have nothing secret in them: what a person sees
 * there comes from the API, which asks who they are.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { AppError } from '../../errors.js';
import type { ApiContext, Next } from '../route/context.js';
import { type BuiltUi, newestUi } from './ui-build.js';

const PREFIX = '/ui';
const ASSETS = `${PREFIX}/assets`;

/** Mount it before the guards: a link to a page of the UI may stand on any other page. */
export function ui() {
  return async (context: ApiContext, next: Next): Promise<unknown> => {
    const { path } = context;
    const isUi = path === PREFIX || path.startsWith(`${PREFIX}/`);
    if (!isUi && path !== '/') return next();
    if (!['GET', 'HEAD'].includes(context.method)) {
      context.set('Allow', 'GET, HEAD');
      throw new AppError('method_not_allowed', `${path} has GET, HEAD, not ${context.method}`);
    }
    if (!isUi) return context.redirect(PREFIX);
    const built = await newestUi();
    if (path.startsWith(`${ASSETS}/`)) return serveAsset(context, built);
    if (!built)
      throw new AppError('not_found', 'The web UI is not built; `npm run build` makes it, then it is here');
    return servePage(context, built);
  };
}

async function serveAsset(context: ApiContext, built: BuiltUi | undefined): Promise<void> {
  const { req, res, path } = context;
  const { url } = req;
  req.url = path.slice(ASSETS.length);
  let isMissing = false;
  built?.serveAsset(req, res, () => {
    isMissing = true;
  });
  req.url = url;
  if (!built || isMissing) throw new AppError('not_found', `There is nothing at ${path}`);
  context.respond = false;
  if (!res.closed) await once(res, 'close');
}

function servePage(context: ApiContext, { page, id }: BuiltUi): void {
  const nonce = randomBytes(16).toString('base64');
  context.set('Content-Security-Policy', policyWith(nonce));
  // The next page is of the next version, with another nonce.
  context.set('Cache-Control', 'no-store');
  context.type = 'html';
  context.body = page.replace('%NONCE%', nonce).replace('%BUILD%', id);
}

/** Only files of this server; no script within a page, and nothing that makes HTML of a text. */
function policyWith(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    // The nonce is for the editor, which makes its styles.
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data: blob:",
    "connect-src 'self'",
    // The queue dashboard.
    "frame-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');
}
