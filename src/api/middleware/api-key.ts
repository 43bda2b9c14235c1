/** With API_KEY set, everything but the health check needs the key. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { AppError } from '../../errors.js';
import type { ApiContext, Next } from '../context.js';

export function apiKey(key: string | undefined) {
  if (key === undefined) return (_context: ApiContext, next: Next): Promise<unknown> => next();
  const expected = digest(key);
  return (context: ApiContext, next: Next): Promise<unknown> => {
    if (context.path === '/api/health') return next();
    const forBrowsers = isQueuesPage(context.path);
    const given = keyFrom(context.get('Authorization'), forBrowsers);
    // Digests have one length, so the comparison takes the same time whatever was sent.
    if (given !== undefined && timingSafeEqual(digest(given), expected)) return next();
    context.set('WWW-Authenticate', forBrowsers ? 'Basic realm="queues"' : 'Bearer');
    throw new AppError('unauthorized', 'The request needs the header Authorization: Bearer <API_KEY>');
  };
}

function isQueuesPage(path: string): boolean {
  return path === '/queues' || path.startsWith('/queues/');
}

function keyFrom(authorization: string, basicAllowed: boolean): string | undefined {
  const [, scheme = '', value = ''] = /^(\S+) +(\S.*)$/.exec(authorization) ?? [];
  // Each byte of a header is read as one character; what was sent is taken for UTF-8.
  if (scheme.toLowerCase() === 'bearer') return Buffer.from(value, 'latin1').toString('utf8');
  // Browsers can only ask for a user name and a password: any name, the key as the password.
  if (basicAllowed && scheme.toLowerCase() === 'basic') {
    return /^[^:]*:(.*)$/s.exec(Buffer.from(value, 'base64').toString('utf8'))?.[1];
  }
  return undefined;
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
