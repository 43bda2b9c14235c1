/** Objects of every kind with members that not everybody may write, for tests of who may. */
import { ANYTHING } from './handler-sources.js';

const JWT = { issuer: 'https://issuer.example', audience: 'us', jwks_url: 'http://127.0.0.1:9/keys' };
const JWKS = { auth: { jwt: JWT } };
const LOOPBACK = { base_url: 'http://127.0.0.1:9' };

/** Members of an object that not everybody may write, and others that everybody may who may write it at all. */
export interface Case {
  readonly what: string;
  readonly kind: 'service' | 'domain' | 'collection' | 'endpoint';
  readonly delicate: Readonly<Record<string, unknown>>;
  readonly harmless: Readonly<Record<string, unknown>>;
  /** Why even those are refused who may write such objects. */
  readonly refused?: RegExp;
  /** Members of which files have others than requests: what stands in files for what is stored. */
  readonly inFiles?: Readonly<Record<string, unknown>>;
}

export const config = (service_type: string, of: object) => ({ service_type, config: of });
export const CASES: readonly Case[] = [
  {
    ...({ what: 'a service whose secret of the installation goes elsewhere', kind: 'service' } as const),
    delicate: config('redis', { host: 'staging.example', password: { secret: 'DB' } }),
    harmless: config('redis', { host: 'production.example', password: { secret: 'DB' } }),
  },
  {
    ...({ what: 'a service whose stored password goes elsewhere', kind: 'service' } as const),
    delicate: config('redis', { host: 'staging.example', password: 'of the service' }),
    harmless: config('redis', { host: 'production.example', password: 'of the service' }),
    inFiles: { password: { stored: true } },
    refused: /password: has to be sent again, because config\.host changes/,
  },
  {
    ...({ what: 'a service that reaches private addresses', kind: 'service' } as const),
    delicate: config('http', { ...LOOPBACK, allow_private_addresses: true }),
    harmless: config('http', { ...LOOPBACK, allow_private_addresses: false }),
  },
  {
    ...({ what: 'a service with a file of this machine', kind: 'service' } as const),
    delicate: config('sqlite', { path: 'delicate.db' }),
    harmless: config('sqlite', { path: 'harmless.db' }),
  },
  {
    ...({ what: 'a service of every host', kind: 'service' } as const),
    delicate: { ...config('http', { base_url: 'https://a.example' }), domains: [] },
    harmless: config('http', { base_url: 'https://a.example' }),
  },
  ...(['domain', 'collection', 'endpoint'] as const).map((kind) => ({
    ...{ what: `a policy with keys at a private address (${kind})`, kind },
    delicate: { policies: JWKS },
    refused: /jwks_url: .*ALLOW_PRIVATE_URLS/,
    harmless: { policies: { cors: { origins: ['https://a.example'] } } },
  })),
  {
    ...({ what: 'limits of an endpoint above those of the operator', kind: 'endpoint' } as const),
    delicate: { limits: { timeout_ms: 20_000 } },
    refused: /limits\.timeout_ms: must be at most 10000.*REQUEST_TIMEOUT_MS/,
    harmless: { limits: { timeout_ms: 5_000 } },
  },
];

/** What has requests of its own, and is a part of an object in files. */
export interface Part extends Case {
  readonly path: string;
  readonly method: 'PUT' | 'POST';
  /** @param serviceId of the service `BOUND` */
  readonly body: (serviceId: string | undefined) => object;
  /** The request that takes it back, where that is neither an empty PUT nor a DELETE of what was made. */
  readonly undo?: string;
}

/** The name of a service that endpoints can be bound to. */
export const BOUND = 'bound';

export const PARTS: readonly Part[] = [
  ...(['domain', 'collection', 'endpoint'] as const).map((kind) => ({
    ...{
      what: `variables of the ${kind}`,
      kind,
      path: 'variables',
      method: 'PUT' as const,
      body: () => ({ A: '1' }),
    },
    ...{ delicate: { variables: { A: '1' } }, harmless: {} },
  })),
  {
    ...({ what: 'schedules of the endpoint', kind: 'endpoint', path: 'schedules', method: 'POST' } as const),
    ...{ body: () => ({ cron: '@daily' }), delicate: { schedules: [{ cron: '@daily' }] }, harmless: {} },
  },
  {
    ...({ what: 'bindings of the endpoint', kind: 'endpoint', path: 'services', method: 'POST' } as const),
    body: (service_id) => ({ service_id, pool_id: 'db' }),
    ...{ delicate: { bindings: { db: BOUND } }, harmless: {} },
  },
  {
    ...({ what: 'whether the endpoint runs', kind: 'endpoint', path: 'start', method: 'POST' } as const),
    ...{ body: () => ({}), undo: 'stop' },
    ...{ delicate: { code: ANYTHING, running: true }, harmless: { code: ANYTHING } },
  },
  {
    ...({
      what: 'whether the service is active',
      kind: 'service',
      path: 'activate',
      method: 'POST',
    } as const),
    ...{ body: () => ({}), undo: 'deactivate' },
    delicate: { ...config('redis', { host: '127.0.0.1' }), active: true },
    harmless: config('redis', { host: '127.0.0.1' }),
  },
];

/** The segments of the paths of their routes. */
export const LISTS = {
  service: 'services',
  domain: 'domains',
  collection: 'collections',
  endpoint: 'endpoints',
} as const;

const http = (host: string) =>
  config('http', {
    ...{ base_url: `https://${host}.example`, allow_private_addresses: false },
    ...{ connect_timeout_seconds: 5, timeout_seconds: 30, pool_size: 10 },
  });
/** What an apply changes that fails, and what somebody else makes of it meanwhile. */
export const UNDONE: readonly (Case & { readonly later: Readonly<Record<string, unknown>> })[] = [
  ...(['domain', 'collection', 'endpoint'] as const).map((kind) => ({
    ...{ what: kind, kind, harmless: { description: 'before' } },
    ...{ delicate: { description: 'of the apply' }, later: { description: 'of the admin' } },
  })),
  {
    ...({ what: 'service', kind: 'service', harmless: http('before') } as const),
    ...{ delicate: http('apply'), later: { config: http('admin').config } },
  },
];
/** One that anybody may write who may write endpoints. */
export const ENDPOINT: Case = { what: 'an endpoint', kind: 'endpoint', delicate: {}, harmless: {} };
