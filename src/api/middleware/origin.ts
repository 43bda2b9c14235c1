/**
 * Rejects cross-site requests of browsers (CSRF), by `Origin` and `Sec-Fetch-Site`, and DNS rebinding, by `Host`:
 * without API_KEY, any web page in a browser on this machine could otherwise use the API.
 */
import { isIP } from 'node:net';
import type { Config } from '../../config.js';
import { AppError } from '../../errors.js';
import type { ApiContext, Next } from '../route/context.js';

type OriginConfig = Pick<Config, 'HOST' | 'ALLOWED_HOSTS' | 'API_KEY' | 'PUBLIC_URL'>;

export function origin(config: OriginConfig) {
  const hosts = new Set(
    [
      config.HOST,
      config.PUBLIC_URL ? new URL(config.PUBLIC_URL).hostname : '',
      ...(config.ALLOWED_HOSTS ?? '').split(','),
    ]
      .map((host) => host.trim().toLowerCase())
      .filter((host) => host !== ''),
  );
  // The key protects against DNS rebinding: browsers do not have it.
  const allowsAnyHost = config.API_KEY !== undefined;
  // Cache: nearly all requests have the same host.
  let lastServed: string | undefined;
  return (context: ApiContext, next: Next): Promise<unknown> => {
    const count = countHosts(context.req.rawHeaders);
    if (count > 1 || (count === 0 && context.req.httpVersionMinor > 0)) {
      throw new AppError('malformed_request', 'A request needs one Host header');
    }
    const host = context.get('Host');
    const isForeign = context.get('Sec-Fetch-Site') === 'cross-site' && !isReturn(context);
    if (isForeign || !isSameHost(context.get('Origin'), host)) {
      throw new AppError('foreign_origin', 'Requests from web pages of other origins are refused');
    }
    // Browsers always send Host.
    if (!allowsAnyHost && host !== '' && host !== lastServed && !isServed(host, hosts)) {
      throw new AppError(
        'foreign_origin',
        `This API is not served under the host name "${host}"; ALLOWED_HOSTS can add it`,
      );
    }
    lastServed = host;
    return next();
  };
}

/** Whether a site to which this one has sent a person sends them back: as a page, not as a part of one. */
function isReturn(context: ApiContext): boolean {
  return (
    context.state.route?.isReturn === true &&
    context.get('Sec-Fetch-Mode') === 'navigate' &&
    context.get('Sec-Fetch-Dest') === 'document'
  );
}

/** @param rawHeaders alternating names and values */
function countHosts(rawHeaders: readonly string[]): number {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    if (name.length === 4 && name.toLowerCase() === 'host') count++;
  }
  return count;
}

function isSameHost(originHeader: string, host: string): boolean {
  if (originHeader === '') return true;
  const page = parse(originHeader);
  // Both are parsed, because the parser removes default ports.
  return page !== undefined && page.host !== '' && page.host === parse(`${page.protocol}//${host}`)?.host;
}

function isServed(host: string, hosts: ReadonlySet<string>): boolean {
  const name = parse(`http://${host}`)?.hostname;
  if (name === undefined) return false;
  return (
    isIP(name.replace(/^\[|\]$/g, '')) !== 0 ||
    name === 'localhost' ||
    name.endsWith('.localhost') ||
    hosts.has(name)
  );
}

function parse(url: string): URL | undefined {
  return URL.canParse(url) ? new URL(url) : undefined;
}
