/** A provider of OpenID Connect, the library `oidc-provider`, with a login that takes people at their word. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { exportJWK, generateKeyPair } from 'jose';
import { type Adapter, type AdapterPayload, Provider } from 'oidc-provider';
import { freePort } from './ports.js';

export const CLIENT_ID = 'edge';
export const CLIENT_SECRET = 'the secret of the client';

export interface ProviderOptions {
  readonly redirectUri: string;
  /** Whether the ID token has the claims, instead of the address for user info. */
  readonly tellsInToken?: boolean;
  readonly postsSecret?: boolean;
  /** For real browsers: it is another site than the API, and its login a page with a form that is sent at once. */
  readonly isSite?: boolean;
}

export interface TestProvider {
  readonly issuer: string;
  /** What is known about people, by their subjects. */
  readonly people: Map<string, Readonly<Record<string, unknown>>>;
  /** Who signs in next; undefined: somebody who declines. */
  person: string | undefined;
  /** How often tokens were asked for. */
  readonly exchanges: number;
  /** Signs with another key from now on, and publishes no other. */
  rotate(): Promise<void>;
  /** Whether it publishes other keys than those with which it signs. */
  hidesKeys: boolean;
  /** Answers everything with this status instead. */
  failWith: number | undefined;
  /** As if it were away: closes its port. */
  leave(): Promise<void>;
  comeBack(): Promise<void>;
  close(): Promise<void>;
}

export async function startProvider(options: ProviderOptions): Promise<TestProvider> {
  const port = await freePort();
  const issuer = `http://${options.isSite ? 'localhost' : '127.0.0.1'}:${port}`;
  const people = new Map<string, Readonly<Record<string, unknown>>>();
  const kept = new Map<string, AdapterPayload>();
  let provider = await newProvider(issuer, people, kept, options);
  const state = {
    person: undefined as string | undefined,
    exchanges: 0,
    hidesKeys: false,
    failWith: undefined as number | undefined,
  };
  const server = createServer((request, response) => {
    if (state.failWith !== undefined) {
      response.writeHead(state.failWith, { Location: 'http://169.254.169.254/' }).end();
      return;
    }
    if (request.url?.startsWith('/jwks') && state.hidesKeys) {
      response.writeHead(200, { 'Content-Type': 'application/jwk-set+json' }).end('{"keys": []}');
      return;
    }
    if (request.url?.startsWith('/token')) state.exchanges++;
    const isLogin = request.url?.startsWith('/login/') === true;
    if (isLogin && options.isSite && request.method === 'GET')
      response.writeHead(200, { 'Content-Type': 'text/html' }).end(FORM);
    else if (isLogin) void login(provider, request, response, state.person);
    else void provider.callback()(request, response);
  });
  const listen = () => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const leave = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  await listen();
  return Object.assign(state, {
    issuer,
    people,
    rotate: async () => {
      provider = await newProvider(issuer, people, kept, options);
    },
    leave,
    comeBack: listen,
    close: leave,
  });
}

const FORM = '<form method="post"></form><script>document.forms[0].submit()</script>';

let keys = 0;

async function newProvider(
  issuer: string,
  people: TestProvider['people'],
  kept: Map<string, AdapterPayload>,
  { redirectUri, tellsInToken = false, postsSecret = false }: ProviderOptions,
): Promise<Provider> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  const key = { ...(await exportJWK(privateKey)), kid: `key-${++keys}`, alg: 'RS256', use: 'sig' };
  const method = postsSecret ? 'client_secret_post' : 'client_secret_basic';
  const provider = new Provider(issuer, {
    adapter: (model: string) => adapterOf(kept, model),
    ttl: { ...lifetimes('Interaction', 'Grant', 'Session', 'AccessToken', 'IdToken', 'AuthorizationCode') },
    jwks: { keys: [key] } as never,
    cookies: { keys: ['a key for cookies'] },
    clientAuthMethods: [method],
    clients: [
      {
        ...{ client_id: CLIENT_ID, client_secret: CLIENT_SECRET, redirect_uris: [redirectUri] },
        token_endpoint_auth_method: method,
      },
    ],
    claims: {
      openid: ['sub'],
      email: ['email', 'email_verified'],
      profile: ['name', 'preferred_username', 'roles', 'realm_access', 'https://edge.example/roles'],
    },
    conformIdTokenClaims: !tellsInToken,
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_context, { uid }) => `/login/${uid}` },
    findAccount: (_context, accountId) => ({
      accountId,
      claims: async () => ({ sub: accountId, ...people.get(accountId) }),
    }),
    // Nobody is asked for consent.
    loadExistingGrant: async ({ oidc }) => {
      const accountId = oidc.session?.accountId;
      const grant = new oidc.provider.Grant({
        clientId: CLIENT_ID,
        ...(accountId !== undefined && { accountId }),
      });
      grant.addOIDCScope('openid email profile');
      await grant.save();
      return grant;
    },
  });
  return provider;
}

function lifetimes(...names: readonly string[]): Record<string, number> {
  return Object.fromEntries(names.map((name) => [name, 600]));
}

/** What the provider knows outlives a change of its keys. */
function adapterOf(kept: Map<string, AdapterPayload>, model: string): Adapter {
  const key = (id: string) => `${model} ${id}`;
  const having = (member: 'uid' | 'userCode', value: string) =>
    [...kept].find(([name, payload]) => name.startsWith(`${model} `) && payload[member] === value)?.[1];
  return {
    upsert: async (id, payload) => void kept.set(key(id), payload),
    find: async (id) => kept.get(key(id)),
    findByUid: async (uid) => having('uid', uid),
    findByUserCode: async (code) => having('userCode', code),
    destroy: async (id) => void kept.delete(key(id)),
    consume: async (id) => {
      const payload = kept.get(key(id));
      if (payload) payload.consumed = Math.floor(Date.now() / 1000);
    },
    revokeByGrantId: async (grantId) => {
      for (const [name, payload] of kept) if (payload.grantId === grantId) kept.delete(name);
    },
  };
}

async function login(
  provider: Provider,
  request: IncomingMessage,
  response: ServerResponse,
  person: string | undefined,
): Promise<void> {
  const result =
    person === undefined ? { error: 'access_denied' } : { login: { accountId: person, remember: false } };
  await provider.interactionFinished(request, response, result);
}
