/**
 * The provider of OpenID Connect whose people may sign in. It is asked when somebody signs in, never at start: it may
 * be away. For each person who comes back it is asked anew for where its keys are, and for these, so that rotated keys
 * count at once.
 */
import * as oidc from 'openid-client';
import { type Config, ConfigError } from '../../config.js';
import { AppError, toError } from '../../errors.js';
import {
  claimValues,
  type Grant,
  grantOf,
  type RoleMapping,
  readRoleMapping,
} from '../../model/oidc-roles.js';
import { isLoopback } from '../../util/loopback.js';

/** What a browser has to bring back: that the person who comes back is the one who was sent. */
export interface SignInChecks {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** Somebody who has signed in with the provider. */
export interface KnownPerson {
  readonly issuer: string;
  readonly subject: string;
  /** In lower case. */
  readonly email: string;
  readonly name: string;
  /** Undefined when no role is mapped to them. */
  readonly grant: Grant | undefined;
}

type Claims = Readonly<Record<string, unknown>>;

export const CALLBACK_PATH = '/api/session/oidc/callback';

const TIMEOUT_SECONDS = 10;
/** The largest answer of a provider. */
const MAX_BYTES = 1024 * 1024;
/** So long what was discovered is used to send people there. */
const DISCOVERED_FOR_MS = 60_000;
const MAX_NAME = 255;
const MAX_SUBJECT = 255;
const EMAIL = /^[^\s@]{1,64}@[^\s@]{1,189}$/;
/** Codes of the library for what the provider, or the way to it, did wrong. All others are about the sign-in. */
const PROVIDER_FAULTS = new Set([
  ...['OAUTH_TIMEOUT', 'OAUTH_ABORT', 'OAUTH_RESPONSE_IS_NOT_CONFORM', 'OAUTH_RESPONSE_IS_NOT_JSON'],
  ...['OAUTH_PARSE_ERROR', 'OAUTH_HTTP_REQUEST_FORBIDDEN', 'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED'],
  ...['OAUTH_MISSING_SERVER_METADATA', 'OAUTH_INVALID_SERVER_METADATA'],
]);

/** What the settings say, checked. */
interface Settings {
  readonly issuer: URL;
  readonly clientId: string;
  readonly clientSecret: string | undefined;
  readonly scopes: string;
  readonly roleClaim: string;
  readonly roles: RoleMapping;
  readonly redirectUri: string;
  readonly allowsHttp: boolean;
}

/** @returns undefined when none is set up. @throws ConfigError */
export function identityProviderOf(config: Config): IdentityProvider | undefined {
  const { OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_ROLES, PUBLIC_URL } = config;
  const publicUrl = PUBLIC_URL === undefined ? undefined : new URL(PUBLIC_URL);
  if (publicUrl && publicUrl.pathname !== '/')
    throw new ConfigError('PUBLIC_URL: must have no path: the API is served at the root of its host');
  if (OIDC_ISSUER === undefined) return undefined;
  for (const name of ['OIDC_CLIENT_ID', 'OIDC_ROLES', 'PUBLIC_URL'] as const)
    if (config[name] === undefined) throw new ConfigError(`${name}: is needed with OIDC_ISSUER`);
  if (!publicUrl || OIDC_CLIENT_ID === undefined || !OIDC_ROLES) throw new Error('Settings were not checked');
  const issuer = new URL(OIDC_ISSUER);
  for (const [name, url] of [
    ['OIDC_ISSUER', issuer],
    ['PUBLIC_URL', publicUrl],
  ] as const) {
    if (url.protocol === 'http:' && !isLoopback(url.hostname) && !config.OIDC_ALLOW_HTTP)
      throw new ConfigError(`${name}: must begin with https://, unless OIDC_ALLOW_HTTP is true`);
  }
  return new IdentityProvider({
    ...{ issuer, clientId: OIDC_CLIENT_ID, clientSecret: config.OIDC_CLIENT_SECRET },
    ...{ scopes: config.OIDC_SCOPES, roleClaim: config.OIDC_ROLE_CLAIM, roles: rolesIn(OIDC_ROLES) },
    redirectUri: new URL(CALLBACK_PATH, publicUrl).href,
    allowsHttp: issuer.protocol === 'http:',
  });
}

function rolesIn(setting: Claims): RoleMapping {
  try {
    return readRoleMapping(setting);
  } catch (thrown) {
    throw new ConfigError(`OIDC_ROLES: ${toError(thrown).message}`);
  }
}

export class IdentityProvider {
  readonly #settings: Settings;
  #discovered: { readonly at: number; readonly configuration: Promise<oidc.Configuration> } | undefined;

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  /** Where to send a browser, and what it has to bring back. @throws AppError oidc_unavailable */
  async begin(): Promise<{ readonly url: URL; readonly checks: SignInChecks }> {
    const checks = {
      state: oidc.randomState(),
      nonce: oidc.randomNonce(),
      verifier: oidc.randomPKCECodeVerifier(),
    };
    try {
      const url = oidc.buildAuthorizationUrl(await this.#recentlyDiscovered(), {
        redirect_uri: this.#settings.redirectUri,
        scope: this.#settings.scopes,
        code_challenge: await oidc.calculatePKCECodeChallenge(checks.verifier),
        code_challenge_method: 'S256',
        state: checks.state,
        nonce: checks.nonce,
      });
      return { url, checks };
    } catch (thrown) {
      throw unavailable(thrown);
    }
  }

  /**
   * Who comes back.
   * @param query of the request with which they do, as it came
   * @throws AppError oidc_failed, oidc_unavailable
   */
  async finish(query: string, checks: SignInChecks): Promise<KnownPerson> {
    const { redirectUri } = this.#settings;
    const returned = new URL(redirectUri);
    returned.search = query;
    let claims: Claims;
    try {
      claims = await this.#claimsOf(returned, checks);
    } catch (thrown) {
      throw failure(thrown);
    }
    return this.#personOf(claims);
  }

  async #claimsOf(returned: URL, checks: SignInChecks): Promise<Claims> {
    const configuration = await this.#discover();
    const answer = await oidc.authorizationCodeGrant(configuration, returned, {
      pkceCodeVerifier: checks.verifier,
      expectedState: checks.state,
      expectedNonce: checks.nonce,
      idTokenExpected: true,
    });
    const claims = answer.claims();
    if (!claims) throw new AppError('oidc_failed', 'The provider has sent no ID token');
    const isComplete = 'email' in claims && claimValues(claims, this.#settings.roleClaim) !== undefined;
    if (isComplete || configuration.serverMetadata().userinfo_endpoint === undefined) return claims;
    // Many providers tell there what they leave out of the token.
    const more = await oidc.fetchUserInfo(configuration, answer.access_token, claims.sub);
    return { ...more, ...claims };
  }

  #personOf(claims: Claims): KnownPerson {
    const { iss, sub, email, email_verified: isVerified, name, preferred_username: username } = claims;
    const { roleClaim, roles } = this.#settings;
    if (typeof iss !== 'string' || typeof sub !== 'string' || sub.length > MAX_SUBJECT || !isOneLine(sub))
      throw new AppError('oidc_failed', 'The provider tells no usable subject of the person');
    if (typeof email !== 'string' || !EMAIL.test(email) || !isOneLine(email))
      throw new AppError('oidc_failed', 'The provider tells no email of the person; OIDC_SCOPES asks for it');
    // Those that say nothing about it vouch for all of their emails.
    if (isVerified !== undefined && isVerified !== true && isVerified !== 'true')
      throw new AppError('oidc_failed', 'The provider says that the email of the person is not verified');
    const shown = [name, username].find(
      (text): text is string => typeof text === 'string' && text.trim() !== '' && isOneLine(text),
    );
    return {
      ...{ issuer: iss, subject: sub, email: email.toLowerCase() },
      name: (shown ?? email).slice(0, MAX_NAME),
      grant: grantOf(claimValues(claims, roleClaim) ?? [], roles),
    };
  }

  /** One discovery at a time, however many want to sign in; a failed one is not kept. */
  #recentlyDiscovered(): Promise<oidc.Configuration> {
    const recent = this.#discovered;
    if (recent && Date.now() - recent.at < DISCOVERED_FOR_MS) return recent.configuration;
    const discovered = { at: Date.now(), configuration: this.#discover() };
    this.#discovered = discovered;
    discovered.configuration.catch(() => {
      if (this.#discovered === discovered) this.#discovered = undefined;
    });
    return discovered.configuration;
  }

  async #discover(): Promise<oidc.Configuration> {
    const { issuer, clientId, clientSecret, allowsHttp } = this.#settings;
    const configuration = await oidc.discovery(issuer, clientId, {}, authentication(clientSecret), {
      timeout: TIMEOUT_SECONDS,
      [oidc.customFetch]: fetchLimited,
      execute: [
        // The signature of the ID token is checked, though it comes from the provider itself.
        oidc.enableNonRepudiationChecks,
        ...(allowsHttp ? [oidc.allowInsecureRequests] : []),
      ],
    });
    return configuration;
  }
}

/** How the provider says it takes the secret: in a header, unless it only knows the body. */
function authentication(secret: string | undefined): oidc.ClientAuth {
  if (secret === undefined) return oidc.None();
  const [basic, post] = [oidc.ClientSecretBasic(secret), oidc.ClientSecretPost(secret)];
  return (server, client, body, headers) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    const isPostOnly = !methods.includes('client_secret_basic') && methods.includes('client_secret_post');
    return (isPostOnly ? post : basic)(server, client, body, headers);
  };
}

async function fetchLimited(url: string, options: oidc.CustomFetchOptions): Promise<Response> {
  const response = await fetch(url, options as RequestInit);
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of response.body ?? []) {
    bytes += part.length;
    if (bytes > MAX_BYTES) throw new TypeError(`The answer is longer than ${MAX_BYTES} bytes`);
    parts.push(part);
  }
  const { status, statusText, headers } = response;
  return new Response(bytes === 0 ? null : Buffer.concat(parts), { status, statusText, headers });
}

/** What went wrong while somebody came back. */
function failure(thrown: unknown): AppError {
  if (thrown instanceof AppError) return thrown;
  const options = { cause: reasonOf(thrown) };
  if (thrown instanceof oidc.AuthorizationResponseError) {
    // It came with the request, from anybody.
    const reason = /^[a-z_]{1,64}$/.test(thrown.error) ? `: ${thrown.error}` : '';
    return new AppError('oidc_failed', `The provider has not let the person in${reason}`, {}, options);
  }
  const isSpent = thrown instanceof oidc.ResponseBodyError && thrown.error === 'invalid_grant';
  if (isSpent || (thrown instanceof oidc.ClientError && !PROVIDER_FAULTS.has(thrown.code ?? '')))
    return new AppError(
      'oidc_failed',
      'The answer of the provider was not valid, or was used before; sign in again',
      {},
      options,
    );
  return unavailable(thrown);
}

function unavailable(thrown: unknown): AppError {
  return new AppError(
    'oidc_unavailable',
    'The provider of OpenID Connect cannot be reached, or does not answer as it should; try again later',
    {},
    { cause: reasonOf(thrown) },
  );
}

/** An error for the log: those of the library have tokens and claims in their members, and none in their messages. */
function reasonOf(thrown: unknown): Error {
  const reasons: string[] = [];
  for (let at = thrown; at instanceof Error && reasons.length < 5; at = at.cause) reasons.push(at.message);
  if (thrown instanceof oidc.ResponseBodyError) reasons.push(`${thrown.status} ${thrown.error}`);
  return new Error(reasons.join(': ') || 'unknown');
}

function isOneLine(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
  return !/[\u0000-\u001f\u007f]/.test(text);
}
