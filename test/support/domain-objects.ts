/** One object of every kind in a domain, for tests of who may see and change what. */
import { randomUUID } from 'node:crypto';
import { kindsInPath } from '../../src/api/access/references.js';
import type { Person } from './access.js';
import type { TestApi } from './api.js';
import { expectData, NO_ID } from './expect.js';

/** Ids of objects, by the segment of the paths that name them. */
export type DomainObjects = Readonly<Record<string, string>>;

/** A document with one operation. */
export const SMALL_SPEC = JSON.stringify({
  openapi: '3.0.3',
  info: { title: 'I', version: '1' },
  paths: { '/i': { get: { operationId: 'i', responses: { 200: { description: 'ok' } } } } },
});

export async function fillDomain(api: TestApi, admin: Person, host: string): Promise<DomainObjects> {
  const make = async (path: string, body: object) =>
    expectData<{ id: string }>(await api.post(path, body, admin), 201).id;
  const domains = await make('/api/domains', { name: host, host });
  const collections = await make('/api/collections', { name: 'c', domain_id: domains });
  const endpoint = { name: 'e', path: '/e', method: 'GET', domain: host, collection_id: collections };
  const endpoints = await make('/api/endpoints', { ...endpoint, code: 'fn main() {}' });
  const services = await make('/api/services', {
    ...{ name: `s ${host}`, service_type: 'redis', domains: [host] },
    config: { host: '127.0.0.1', port: 1, password: `password of ${host}` },
  });
  const schedules = await make(`/api/endpoints/${endpoints}/schedules`, { cron: '0 0 1 1 *' });
  const keys = await make(`/api/domains/${domains}/keys`, { label: `key of ${host}` });
  const { store } = api;
  const [build] = await store
    .knex('builds')
    .insert({ source_key: host, code: '', dependencies: '{}', state: 'failed', request_id: 'r' })
    .returning('id');
  await store.knex('endpoints').where({ id: endpoints }).update({ build_id: build.id });
  const [job] = await store
    .knex('jobs')
    .insert({
      ...{ endpoint_id: endpoints, method: 'GET', path: '/e', headers: '{}', state: 'failed' },
      ...{ max_attempts: 1, backoff_ms: 1, run_at: new Date(), request_id: 'r' },
    })
    .returning('id');
  const imported = expectData<{ import_id: string }>(
    await api.post(
      '/api/import/openapi',
      { spec: SMALL_SPEC, domain: host, domain_id: domains, create_collection: true },
      admin,
    ),
  ).import_id;
  const alerts = await make('/api/alerts', {
    ...{ on: 'crash_loop', url: 'https://93.184.215.14/hook', scope: { domain: host } },
  });
  await store.knex('certificates').insert({
    ...{ domain_id: domains, chain: '', key_encrypted: '', names: [host], issuer: 'i', fingerprint: 'f' },
    ...{ valid_from: new Date(), expires_at: new Date() },
  });
  await store.knex('acme_orders').insert({ domain_id: domains, host, state: 'failed' });
  const applies = randomUUID();
  await store.knex('applies').insert({
    ...{
      id: applies,
      stack: host,
      plan_hash: '',
      state: 'failed',
      request_id: 'r',
      hosts: [host],
      changes: '[]',
    },
    plan: JSON.stringify({ stack: host, plan_hash: '', changes: [], warnings: [] }),
    finished_at: new Date(),
  });
  return {
    ...{ domains, collections, endpoints, services, schedules, keys },
    ...{ builds: build.id, jobs: job.id, imports: imported, alerts, applies },
  };
}

/**
 * The path of a route, with objects for those of its parameters that name one; other things are unknown ones.
 * @param objectsFor by the name of the parameter
 */
export function pathWith(path: string, objectsFor: (parameter: string) => DomainObjects): string {
  const kinds = new Map(kindsInPath(path));
  const segments = path.split('/');
  return segments
    .map((segment, at) => {
      const name = /^\{(\w+)(\.\.\.)?\}$/.exec(segment)?.[1];
      if (name === undefined) return segment;
      const id = objectsFor(name)[segments[at - 1] ?? ''];
      if (kinds.has(name) || name.endsWith('_id')) return id ?? NO_ID;
      return name.endsWith('id') ? NO_ID : name === 'version' ? '1' : 'NAME';
    })
    .join('/');
}
