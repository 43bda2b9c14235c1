/** Authentication: with API_KEY set, all requests but the health check need the key. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { AppError } from '../../errors.js';
import type { ApiContext, Next } from '../context.js';

export function apiKey(key: string | undefined) {
  if (key === undefined) return (_context: ApiContext, next: Next): Promise<unknown> => next();
  const expected = digest(key);
  return (context: ApiContext, next: Next): Promise<unknown> => {
    if (context.path === '/api/health') return next();
    const isForBrowsers = isPage(context.path);
    const given = keyFrom(context.get('Authorization'), isForBrowsers);
    // Digests have the same length, as timingSafeEqual requires.
    if (given !== undefined && timingSafeEqual(digest(given), expected)) {
      context.state.hasKey = true;
      return next();
    }
    context.set('WWW-Authenticate', isForBrowsers ? 'Basic realm="Edge Gateway"' : 'Bearer');
    throw new AppError('unauthorized', 'The request needs the header Authorization: Bearer <API_KEY>');
  };
}

/** The pages that people open in a browser: the start page and the queue dashboard. */
function isPage(path: string): boolean {
  return path === '/' || path === '/queues' || path.startsWith('/queues/');
}

function keyFrom(authorization: string, isBasicAllowed: boolean): string | undefined {
  const [, scheme = '', value = ''] = /^(\S+) +(\S.*)$/.exec(authorization) ?? [];
  // Node decodes headers as Latin-1; the key is UTF-8.
  if (scheme.toLowerCase() === 'bearer') return Buffer.from(value, 'latin1').toString('utf8');
  // Browsers ask for a user name, which is ignored, and a password, which is the key.
  if (isBasicAllowed && scheme.toLowerCase() === 'basic') {
    return /^[^:]*:(.*)$/s.exec(Buffer.from(value, 'base64').toString('utf8'))?.[1];
  }
  return undefined;
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
