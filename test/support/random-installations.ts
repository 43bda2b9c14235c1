/** Random installations, made through the API, with what only other processes make written into the database. */
import fc from 'fast-check';
import { textProblem } from '../../src/model/formats.js';
import { keyOf } from '../support/one-file.js';
import type { TestApi } from './api.js';
import { expectData } from './expect.js';
import { lockOf } from './locks.js';

/** Any text that can be stored, with what YAML has rules for. */
const text = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.string({ unit: 'grapheme', maxLength: 20 }),
  fc.constantFrom(
    ...[
      '',
      'null',
      'true',
      '1e3',
      '0x1f',
      '- a',
      '# no comment',
      "it's",
      '"quoted"',
      '<<',
      '*alias',
      '&anchor',
      '!tag',
    ],
    ...[
      'a: b',
      'two\nlines',
      'ends\n',
      '\n',
      ' leading',
      'trailing ',
      '\ttab',
      'cr\r\nlf',
      '---\n',
      '|',
      '>',
      '%',
    ],
    ...['\u0085', '\u2028', '\ufeffbom', '1980-01-01', '~', 'a\n\n\n b\n', '{}', '[]', '...'],
  ),
);
const storable = text.filter((one) => textProblem(one) === undefined);
const line = storable
  .map((one) => one.replaceAll(/\p{Cc}/gu, '').slice(0, 100))
  .filter((one) => one.trim() !== '');
/** No schema has a property of this name: the API refuses it. */
const property = storable.filter((one) => one !== '__proto__');
const optional = <T>(one: fc.Arbitrary<T>) => fc.option(one, { nil: undefined, freq: 2 });
const variableName = fc.stringMatching(/^[A-Z]{2,6}[0-9]?$/).map((name) => `V_${name}`);
const variables = fc.dictionary(variableName, storable, { maxKeys: 3 });
const stack = fc.constantFrom(null, null, 'shop', 'blog');
const headerName = fc.stringMatching(/^X-[A-Za-z]{1,8}$/);

const policies = fc.record(
  {
    cors: fc.option(fc.record({ origins: fc.constantFrom(['*'], ['https://a.example']) })),
    timeout: fc.option(fc.integer({ min: 1, max: 1000 })),
    maintenance: fc.option(fc.record({ message: fc.stringMatching(/^[a-z ]{1,20}$/) })),
    headers: fc.record({
      response: fc.record({
        set: fc.dictionary(headerName, fc.stringMatching(/^[a-z0-9]{1,9}$/), { maxKeys: 3 }),
      }),
    }),
    validate: fc.record({
      mode: fc.constant('enforce'),
      body: fc.record({
        content: fc.record({
          'application/json': fc.record({
            schema: fc.record({
              type: fc.constant('object'),
              properties: fc.dictionary(property, fc.constantFrom({ type: 'string' }, { minimum: 1.5 }, {}), {
                maxKeys: 3,
              }),
            }),
          }),
        }),
      }),
    }),
  },
  { requiredKeys: [] },
);

const hosts = ['a.example', 'b.example', 'c.example'];
const host = fc.constantFrom(...hosts);

const domain = fc.record({
  name: line,
  description: optional(storable),
  enabled: fc.boolean(),
  policies: optional(policies),
  variables,
  stack,
});

const collection = fc.record({
  host,
  name: line,
  description: optional(storable),
  base_path: fc.constantFrom(null, '/shop', '/t/{tenant}', '/a/b'),
  enabled: fc.boolean(),
  policies: optional(policies),
  variables,
  stack,
});

const path = fc.constantFrom(
  '/',
  '/a',
  '/shop',
  '/shop/x',
  '/items/{id}',
  '/{id}.json',
  '/f/{*rest}',
  '/a/b/c',
  '/%C3%A4',
);
const schedule = fc.record({
  cron: fc.constantFrom('0 9 * * 1-5', '@hourly', '*/5 * * * * *'),
  timezone: fc.constantFrom('UTC', 'Europe/Berlin'),
  enabled: fc.boolean(),
  headers: fc.dictionary(headerName, fc.stringMatching(/^[a-z0-9]{1,9}$/), { maxKeys: 2 }),
  body: fc.constantFrom(undefined, 'text', { a: [1, null] }),
  body_base64: fc.constantFrom(undefined, '//79'),
});

const endpoint = fc.record({
  host: fc.constantFrom(...hosts, '*', 'no-domain.example'),
  method: fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'PATCH'),
  path,
  name: line,
  collection: fc.option(fc.nat()),
  description: optional(storable),
  enabled: fc.boolean(),
  code: fc.option(storable),
  dependencies: fc.constantFrom(null, {}, { serde: '1' }, { rand: { version: '0.8', features: ['std'] } }),
  edition: fc.constantFrom(null, '2021', '2024'),
  lock: fc.constantFrom(null, null, lockOf({ rand: '0.8.5' }), lockOf({ rand: '0.8.6' })),
  limits: fc.constantFrom(null, {}, { timeout_ms: 5 }, { idle_ms: 100, min_instances: 1 }),
  policies: optional(policies),
  variables,
  bindings: fc.dictionary(fc.stringMatching(/^[a-z_.-]{1,8}$/), fc.nat(), { maxKeys: 3 }),
  schedules: fc.array(schedule, { maxLength: 2 }),
  running: fc.constantFrom('no', 'newest', 'older', 'canary'),
  stack,
});

const config = fc.oneof(
  fc.record({
    service_type: fc.constant('redis'),
    config: fc.constantFrom<object>(
      { host: 'h' },
      { host: 'h', password: null },
      { host: 'h', password: 'literal', pool_size: 3 },
      { host: 'h', password: { secret: 'REDIS_PASSWORD' } },
    ),
  }),
  fc.record({
    service_type: fc.constant('http'),
    config: fc.constantFrom<object>(
      { base_url: 'https://h.example', headers: { Accept: 'text/plain', 'X-Key': { secret: 'HTTP_KEY' } } },
      { base_url: 'https://h.example', token: 'literal', methods: ['GET'] },
    ),
  }),
  fc.record({
    service_type: fc.constant('mongodb'),
    config: fc.constantFrom<object>(
      { uri: 'mongodb://u:p@h/db' },
      { host: 'h', password: 'p', username: 'u' },
    ),
  }),
  fc.record({ service_type: fc.constant('sqlite'), config: fc.constant<object>({ path: 'a.db' }) }),
);

const service = fc.record({
  name: line,
  settings: config,
  enabled: fc.boolean(),
  domains: fc.constantFrom([], [], ['b.example', 'a.example']),
  active: fc.boolean(),
  stack,
});

/** What an installation has; parts that do not fit together are left out when it is made. */
export const installation = fc.record({
  domains: fc.tuple(...hosts.map(() => fc.option(domain, { freq: 4 }))),
  collections: fc.array(collection, { maxLength: 4 }),
  services: fc.array(service, { maxLength: 3 }),
  endpoints: fc.array(endpoint, { maxLength: 6 }),
});
type Installation = typeof installation extends fc.Arbitrary<infer T> ? T : never;

export const SECRETS = ['REDIS_PASSWORD', 'HTTP_KEY'];

/** Replaces all that the API has by an installation. */
export async function makeInstallation(api: TestApi, made: Installation): Promise<void> {
  const { store } = api;
  for (const table of ['endpoints', 'domains', 'services']) await store.knex(table).delete();
  const create = async (
    resource: string,
    body: object,
    owner: string | null,
  ): Promise<string | undefined> => {
    const response = await api.post(`/api/${resource}`, body);
    // Taken by another one, or what does not fit together.
    if (response.status === 409 || response.status === 404) return undefined;
    const { id } = expectData<{ id: string }>(response, 201);
    await store.knex(resource).where({ id }).update({ stack: owner });
    return id;
  };
  const setVariables = async (resource: string, id: string, values: object) => {
    if (Object.keys(values).length > 0) expectData(await api.put(`/api/${resource}/${id}/variables`, values));
  };
  const ids = new Map<string, string>();
  for (const [at, one] of made.domains.entries()) {
    if (!one) continue;
    const { variables: values, stack: owner, ...fields } = one;
    const id = await create('domains', { host: hosts[at], ...fields }, owner);
    if (id === undefined) continue;
    ids.set(hosts[at] ?? '', id);
    await setVariables('domains', id, values);
  }
  const collections: { id: string; host: string }[] = [];
  for (const { host: of, variables: values, stack: owner, ...fields } of made.collections) {
    const domain_id = ids.get(of);
    const id = domain_id && (await create('collections', { domain_id, ...fields }, owner));
    if (!id) continue;
    collections.push({ id, host: of });
    await setVariables('collections', id, values);
  }
  const services: string[] = [];
  for (const { settings, active, stack: owner, ...fields } of made.services) {
    const id = await create('services', { ...settings, ...fields }, owner);
    if (id === undefined) continue;
    services.push(id);
    if (active && fields.enabled)
      await store.knex('services').where({ id }).update({ activated_at: new Date() });
  }
  for (const one of made.endpoints) await makeEndpoint(one);

  async function makeEndpoint(one: Installation['endpoints'][number]): Promise<void> {
    const {
      host: of,
      collection: at,
      variables: values,
      bindings,
      schedules,
      running,
      stack: owner,
      ...fields
    } = one;
    const fitting = collections.filter((each) => of === '*' || each.host === of);
    const collection_id = at === null || fitting.length === 0 ? null : fitting[at % fitting.length]?.id;
    const id = await create('endpoints', { domain: of, collection_id, ...fields }, owner);
    if (id === undefined) return;
    await setVariables('endpoints', id, values);
    for (const [pool_id, number] of Object.entries(bindings)) {
      const service_id = services[number % Math.max(1, services.length)];
      if (service_id !== undefined) await api.post(`/api/endpoints/${id}/services`, { pool_id, service_id });
    }
    for (const { body, body_base64, ...times } of schedules) {
      const content = body_base64 === undefined ? { body } : { body_base64 };
      await api.post(`/api/endpoints/${id}/schedules`, { ...times, ...content });
    }
    if (fields.code !== null && running !== 'no') await serve(id, fields.code, running);
  }

  /** As a worker and the API do it. */
  async function serve(id: string, code: string, running: string): Promise<void> {
    const draft = await store.knex('endpoints').where({ id }).first<{ source_key: string }>('source_key');
    const source = running === 'older' ? keyOf('older', null) : draft.source_key;
    await store.knex('endpoint_versions').insert({
      ...{ endpoint_id: id, version: 1, source_key: source, code, dependencies: '{}', artifact: 'a' },
    });
    const shares = running === 'canary' ? [60, 40] : [100];
    const [deployment] = await store
      .knex('deployments')
      .insert({
        ...{ endpoint_id: id, kind: 'deploy', request_id: 'r', outcome: 'succeeded', revision: 1 },
        targets: JSON.stringify(shares.map((percent, at) => ({ version: at + 1, percent, artifact: 'a' }))),
      })
      .returning<{ id: string }[]>('id');
    await store
      .knex('endpoints')
      .where({ id })
      .update({ desired_deployment_id: deployment?.id, latest_version: 1 });
  }
}
