/** The cookie of a session: one, which scripts cannot read, and other sites cannot have sent. */
import type { Config } from '../config.js';
import type { SessionLimits } from '../store/sessions.js';

/** The gateway keeps it from handlers: `session_cookie.rs`. */
const NAME = 'egw_session';

/** The value of the cookie; undefined without it, and when there are several: one of them was planted. */
export function sessionCookie(header: string): string | undefined {
  const values = header
    .split(';')
    .map((part) => part.trim())
    .filter((part) => part.startsWith(`${NAME}=`));
  return values.length === 1 ? values[0]?.slice(NAME.length + 1) || undefined : undefined;
}

/** `Set-Cookie` for a session. @param isSecure whether the browser came by TLS */
export function sessionCookieHeader(secret: string, isSecure: boolean): string {
  return `${NAME}=${secret}; Path=/; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`;
}

/** `Set-Cookie` that removes it. */
export function endedCookieHeader(isSecure: boolean): string {
  return `${sessionCookieHeader('', isSecure)}; Max-Age=0`;
}

/** Whether a client came by TLS, as the proxy in front says. Who lies about it only harms their own cookie. */
export function cameByTls(header: (name: string) => string | undefined): boolean {
  return (
    header('x-forwarded-proto')?.toLowerCase() === 'https' ||
    /proto="?https\b/i.test(header('forwarded') ?? '')
  );
}

export function sessionLimits(
  config: Pick<Config, 'SESSION_IDLE_MINUTES' | 'SESSION_MAX_HOURS'>,
): SessionLimits {
  return { idleMinutes: config.SESSION_IDLE_MINUTES, maxHours: config.SESSION_MAX_HOURS };
}
