/**
 * What the API changes is announced, so that gateways and actor hosts act at once, and not with their next poll. That
 * they make up for what was lost is in test/reconcile.
 */
import { expect } from 'chai';
import { listen, type Subscription } from '../../src/store/announcements.js';
import { startApi, type TestApi } from '../support/api.js';
import { eventually } from '../support/eventually.js';
import { expectData } from '../support/expect.js';

const LIMIT_MS = 10_000;

describe('announcements of changes by the API', () => {
  let api: TestApi;
  let listening: Subscription;
  const announced = new Set<string>();

  before(async () => {
    api = await startApi();
    await new Promise<void>((resolve, reject) => {
      listening = listen(api.databaseUrl, ['endpoint', 'service'], {
        changed: ({ topic, id }) => announced.add(`${topic} ${id}`),
        connected: resolve,
        failed: reject,
      });
    });
  });
  after(async () => {
    await listening?.stop();
    await api?.close();
  });

  const create = async (path: string, body: object) =>
    expectData<{ id: string }>(await api.post(path, body), 201).id;
  const expectAnnounced = (row: string) => eventually(() => expect([...announced]).to.include(row), LIMIT_MS);

  it('announces an endpoint with every change of it, its collection or its domain that concerns gateways', async () => {
    const domain = await create('/api/domains', { name: 'D', host: 'announced.example' });
    const collection = await create('/api/collections', { name: 'C', domain_id: domain });
    const endpoint = await create('/api/endpoints', {
      ...{ name: 'E', path: '/a', method: 'GET', domain: 'announced.example', collection_id: collection },
    });
    await expectAnnounced(`endpoint ${endpoint}`);
    const changes: readonly (readonly [string, object])[] = [
      [`/api/endpoints/${endpoint}`, { path: '/b' }],
      [`/api/endpoints/${endpoint}`, { enabled: false }],
      [`/api/endpoints/${endpoint}`, { policies: { ip: { deny: ['192.0.2.0/24'] } } }],
      [`/api/endpoints/${endpoint}/variables`, { A: 'a' }],
      [`/api/collections/${collection}`, { base_path: '/c' }],
      [`/api/collections/${collection}`, { policies: { body_limit: 1000 } }],
      [`/api/domains/${domain}`, { enabled: false }],
      [`/api/domains/${domain}`, { host: 'renamed.example' }],
      [`/api/domains/${domain}/variables`, { B: 'b' }],
    ];
    for (const [path, body] of changes) {
      announced.clear();
      expectData(await api.put(path, body));
      await expectAnnounced(`endpoint ${endpoint}`);
    }
    announced.clear();
    expectData(await api.delete(`/api/endpoints/${endpoint}`));
    await expectAnnounced(`endpoint ${endpoint}`);
  });

  it('announces a service that is changed or deleted', async () => {
    const config = { path: 'announced.db', create_if_missing: true };
    const service = await create('/api/services', { name: 'S', service_type: 'sqlite', config });
    const path = `/api/services/${service}`;
    announced.clear();
    expectData(await api.put(path, { config: { ...config, path: 'other.db' } }));
    await expectAnnounced(`service ${service}`);
    announced.clear();
    expectData(await api.delete(path));
    await expectAnnounced(`service ${service}`);
  });
});
