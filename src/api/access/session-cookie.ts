/** The cookie of a session: one, which scripts cannot read, and other sites cannot have sent. */
import type { Config } from '../../config.js';
import type { Client } from '../../http/trusted-proxies.js';
import type { SessionLimits } from '../../store/sessions.js';

/** The gateway keeps it from handlers: `session_cookie.rs`. */
const NAME = 'egw_session';

/** The value of the cookie in the header `Cookie`. @param isSecure whether the browser came by TLS */
export function sessionCookie(header: string, isSecure: boolean): string | undefined {
  return cookieNamed(NAME, header, isSecure);
}

/** The value of a cookie; undefined without it, and when there are several: one of them was planted. */
export function cookieNamed(name: string, header: string, isSecure: boolean): string | undefined {
  const begin = `${fullName(name, isSecure)}=`;
  const values = header
    .split(';')
    // Other white space is part of the name for a browser, which can have been told such a cookie by another host.
    .map((part) => part.replace(/^[ \t]+|[ \t]+$/g, ''))
    .filter((part) => part.startsWith(begin));
  return values.length === 1 ? values[0]?.slice(begin.length) || undefined : undefined;
}

/**
 * `Set-Cookie` for a cookie that scripts cannot read. By TLS its name begins with `__Host-`: then browsers take it from
 * this host alone, neither from another one of the same domain nor without TLS (RFC 6265bis, section 4.1.3.2).
 * @param path of this host; all of it by TLS
 * @param attributes further ones
 */
export function hostCookie(
  name: string,
  value: string,
  isSecure: boolean,
  path: string,
  attributes: string,
): string {
  const secure = isSecure ? '; Secure' : '';
  return `${fullName(name, isSecure)}=${value}; Path=${isSecure ? '/' : path}; HttpOnly; ${attributes}${secure}`;
}

function fullName(name: string, isSecure: boolean): string {
  return isSecure ? `__Host-${name}` : name;
}

/** `Set-Cookie` for a session. */
export function sessionCookieHeader(secret: string, isSecure: boolean): string {
  return hostCookie(NAME, secret, isSecure, '/', 'SameSite=Strict');
}

/** `Set-Cookie` that removes it. */
export function endedCookieHeader(isSecure: boolean): string {
  return `${sessionCookieHeader('', isSecure)}; Max-Age=0`;
}

/**
 * Whether a browser comes by TLS: a trusted proxy says so, or it asks for the host of a PUBLIC_URL that begins with
 * https. This server has no TLS of its own.
 * @param host the header `Host`
 */
export function cameByTls(
  { scheme }: Client,
  host: string | undefined,
  { PUBLIC_URL }: Pick<Config, 'PUBLIC_URL'>,
): boolean {
  if (scheme === 'https') return true;
  const url = PUBLIC_URL === undefined ? undefined : new URL(PUBLIC_URL);
  if (url?.protocol !== 'https:' || host === undefined || !URL.canParse(`https://${host}`)) return false;
  return new URL(`https://${host}`).host === url.host;
}

export function sessionLimits(
  config: Pick<Config, 'SESSION_IDLE_MINUTES' | 'SESSION_MAX_HOURS'>,
): SessionLimits {
  return { idleMinutes: config.SESSION_IDLE_MINUTES, maxHours: config.SESSION_MAX_HOURS };
}
