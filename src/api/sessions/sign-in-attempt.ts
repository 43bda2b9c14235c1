/**
 * What a browser has to bring back from the provider of OpenID Connect, and where it goes then: in a cookie that only
 * this installation can read or make. It is `Lax`, not `Strict`, because the provider sends the browser back.
 */
import type { SecretBox } from '../../secrets/secret-box.js';
import type { SignInChecks } from '../access/identity-provider.js';
import { cookieNamed, hostCookie } from '../access/session-cookie.js';

/** A sign-in that has begun. */
export interface SignInAttempt extends SignInChecks {
  /** A path of this server. */
  readonly returnTo: string;
  /** The session that it is to replace: the browser does not send its cookie on the way back, which is `Strict`. */
  readonly before?: string | undefined;
}

/** The gateway keeps it from handlers: `session_cookie.rs`. */
const NAME = 'egw_sign_in';
const PATH = '/api/session/oidc';
/** How long somebody may take at the provider. */
const LIFETIME_SECONDS = 600;
/** Tells it from everything else that is sealed. */
const KIND = 'sign-in';

/** `Set-Cookie` for an attempt. */
export function attemptCookieHeader(attempt: SignInAttempt, secrets: SecretBox, isSecure: boolean): string {
  const expiresAt = Date.now() + LIFETIME_SECONDS * 1000;
  const sealed = secrets.seal(JSON.stringify({ kind: KIND, expiresAt, ...attempt }));
  const value = Buffer.from(sealed).toString('base64url');
  return hostCookie(NAME, value, isSecure, PATH, `SameSite=Lax; Max-Age=${LIFETIME_SECONDS}`);
}

/** `Set-Cookie` that removes it. */
export function endedAttemptHeader(isSecure: boolean): string {
  return hostCookie(NAME, '', isSecure, PATH, 'SameSite=Lax; Max-Age=0');
}

/** The attempt in the header `Cookie`; undefined when there is none, it is over, or somebody else made it. */
export function attemptIn(cookies: string, secrets: SecretBox, isSecure: boolean): SignInAttempt | undefined {
  const value = cookieNamed(NAME, cookies, isSecure);
  if (value === undefined) return undefined;
  let opened: SignInAttempt & { readonly kind?: unknown; readonly expiresAt?: unknown };
  try {
    opened = JSON.parse(secrets.open(Buffer.from(value, 'base64url').toString()));
  } catch {
    return undefined;
  }
  const { kind, expiresAt, ...attempt } = opened;
  return kind === KIND && Number(expiresAt) > Date.now() ? attempt : undefined;
}
