/**
 * Finds out who sends a request: API_KEY, a token, the session of a browser, a process of this product, or anybody
 * while the API is open: without API_KEY and users, on a loopback address, and not by way of a proxy.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { AppError } from '../../errors.js';
import { digestOf, isToken } from '../../secrets/credentials.js';
import { productTokens } from '../../secrets/service-token.js';
import { useSession } from '../../store/sessions.js';
import { useToken } from '../../store/tokens.js';
import { hasUsers } from '../../store/users.js';
import { CoalescingTask } from '../../util/coalescing-task.js';
import { isLoopback } from '../../util/loopback.js';
import { isOfCrates } from '../access/crates-path.js';
import { CredentialLimits } from '../access/credential-limits.js';
import { ofSession, ofToken, type Principal, unlimited } from '../access/principal.js';
import { requestAddress } from '../access/request-address.js';
import { cameByTls, sessionCookie, sessionLimits } from '../access/session-cookie.js';
import type { ApiDependencies } from '../api-dependencies.js';
import type { ApiContext, Next } from '../route/context.js';

type Dependencies = Pick<ApiDependencies, 'config' | 'secrets' | 'store'>;
type WithLimits = Dependencies & { readonly limits: CredentialLimits };

/** Headers of which a proxy sends at least one. */
const FORWARDED =
  /^(?:forwarded|x-forwarded-.+|x-real-ip|x-client-ip|x-cluster-client-ip|true-client-ip|cf-connecting-ip|via)$/;

export function authenticate(deps: Dependencies) {
  const open = openness(deps);
  const limits = new CredentialLimits(deps.store);
  return async (context: ApiContext, next: Next): Promise<unknown> => {
    const identify = ({ isUse } = { isUse: true }) => principalOf(context, { ...deps, limits }, open, isUse);
    context.state.identify = identify;
    const { route } = context.state;
    // Exactly this path: the router also takes one with a slash at its end.
    if (route?.permission === 'public' && route.path === context.path) return next();
    const principal = await identify();
    if (!principal) throw await refusal(context, deps, open);
    context.state.principal = principal;
    return next();
  };
}

type IsOpen = (request: IncomingMessage) => Promise<boolean>;

/**
 * Whether the API is open to whoever sends a request. Once there are users, it never is again. Each request of an open
 * API asks the database: so the first user, whichever process or command makes it, closes all of them with the next
 * request. It is one row of an index, and only on machines that nobody else reaches; requests that wait share one
 * answer.
 */
function openness({ config, store }: Dependencies): IsOpen {
  let isClosed = config.API_KEY !== undefined || !isLoopback(config.HOST);
  const asking = new CoalescingTask(() => hasUsers(store));
  return async ({ headers }) => {
    if (isClosed || Object.keys(headers).some((name) => FORWARDED.test(name))) return false;
    // Never back to open: an answer from before the first user may arrive after one from then on.
    if (await asking.run()) isClosed = true;
    return !isClosed;
  };
}

async function principalOf(
  context: ApiContext,
  deps: WithLimits,
  isOpen: IsOpen,
  isUse: boolean,
): Promise<Principal | undefined> {
  const { config, store } = deps;
  const authorization = context.get('Authorization');
  const { address } = context.state.client;
  let given: string | undefined;
  if (authorization !== '') {
    given = keyFrom(authorization, context.path);
    const known = given === undefined ? undefined : await byCredential(deps, given, address, isUse);
    if (known) return known;
  } else {
    const isSecure = cameByTls(context.state.client, context.get('Host'), config);
    const cookie = sessionCookie(context.get('Cookie'), isSecure);
    const known = cookie && (await useSession(store, digestOf(cookie), sessionLimits(config), isUse));
    if (known) return ofSession(known.user, known.session);
  }
  if (await isOpen(context.req)) return unlimited({ kind: 'anonymous', address });
  if (given !== undefined) await deps.limits.failed(given, address);
  return undefined;
}

/** @throws AppError too_many_credentials when too many of its network were wrong, and it was not right there before */
async function byCredential(
  deps: WithLimits,
  given: string,
  address: string,
  isUse: boolean,
): Promise<Principal | undefined> {
  const { config, secrets, limits } = deps;
  const known =
    config.API_KEY !== undefined && isSame(given, config.API_KEY)
      ? unlimited({ kind: 'api_key' })
      : isToken(given)
        ? await byToken(deps, given, isUse)
        : undefined;
  if (known) {
    await limits.succeeded(given, address);
    return known;
  }
  // Long, and made of SECRET_KEY: nobody guesses it.
  const isOfProduct = !isToken(given) && productTokens(secrets).some((token) => isSame(given, token));
  return isOfProduct ? unlimited({ kind: 'internal' }) : undefined;
}

async function byToken(
  { store, config }: Dependencies,
  token: string,
  isUse: boolean,
): Promise<Principal | undefined> {
  const known = await useToken(store, digestOf(token), isUse);
  if (!known) return undefined;
  // Made with API_KEY, and as long as it is the same.
  const { API_KEY } = config;
  if (!known.user && (API_KEY === undefined || known.token.key_hash !== digestOf(API_KEY))) return undefined;
  return ofToken(known.token, known.user);
}

async function refusal(
  context: ApiContext,
  { config, store }: Dependencies,
  isOpen: IsOpen,
): Promise<AppError> {
  if (isOfCrates(context.path)) {
    const login = `${requestAddress(context.state.client, context.get('Host'), config)}/ui/access/tokens`;
    context.set('WWW-Authenticate', `Cargo login_url="${login}"`);
    return new AppError(
      'unauthorized',
      'This registry needs a token of the gateway: set CARGO_REGISTRIES_EDGE_TOKEN, or run ' +
        '`cargo login --registry edge`, where edge is its name in .cargo/config.toml',
    );
  }
  context.set('WWW-Authenticate', isPage(context.path) ? 'Basic realm="Edge Gateway"' : 'Bearer');
  if (config.API_KEY !== undefined) {
    return new AppError(
      'unauthorized',
      'The request needs the header Authorization: Bearer <API_KEY>, or a token instead, or the cookie of a session',
    );
  }
  if (!(await isOpen(context.req)) && !(await hasUsers(store))) {
    return new AppError(
      'unauthorized',
      'The API is closed: it has no users, and is open without them only on a loopback address and without a proxy. ' +
        'On its machine, `npm run user -- create-admin EMAIL` makes the first admin; or set API_KEY.',
    );
  }
  return new AppError(
    'unauthorized',
    'The request needs the cookie of a session (POST /api/session), or the header Authorization: Bearer <token>',
  );
}

/** The pages that ask people in a browser for a key: the queue dashboard. */
function isPage(path: string): boolean {
  return path === '/queues' || path.startsWith('/queues/');
}

function keyFrom(authorization: string, path: string): string | undefined {
  if (isOfCrates(path) && /^\S+$/.test(authorization)) return utf8Of(authorization);
  const [, scheme = '', value = ''] = /^(\S+) +(\S.*)$/.exec(authorization) ?? [];
  if (scheme.toLowerCase() === 'bearer') return utf8Of(value);
  // Browsers ask for a user name, which is ignored, and a password, which is the key.
  if (isPage(path) && scheme.toLowerCase() === 'basic') {
    return /^[^:]*:(.*)$/s.exec(Buffer.from(value, 'base64').toString('utf8'))?.[1];
  }
  return undefined;
}

/** Node decodes headers as Latin-1; the key is UTF-8. */
function utf8Of(value: string): string {
  return Buffer.from(value, 'latin1').toString('utf8');
}

/** Compares digests: they have the same length, as timingSafeEqual requires. */
function isSame(given: string, expected: string): boolean {
  const [one, other] = [given, expected].map((text) => createHash('sha256').update(text).digest());
  return one !== undefined && other !== undefined && timingSafeEqual(one, other);
}
