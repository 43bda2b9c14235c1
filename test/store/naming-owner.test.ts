/** Writes of what is unique, by themselves and within a transaction that a conflict breaks. */
import { expect } from 'chai';
import { ENDPOINT_DEFAULTS } from '../../src/api/endpoints/endpoints.schema.js';
import { createCollection } from '../../src/store/collections.js';
import { type Store, transaction } from '../../src/store/database.js';
import { createDomain } from '../../src/store/domains.js';
import { createEndpoint } from '../../src/store/endpoints.js';
import { createService } from '../../src/store/services.js';
import { openTestStore, type TestStore } from '../support/store.js';

describe('what is unique', () => {
  let opened: TestStore;
  let domain_id: string;
  before(async () => {
    opened = await openTestStore();
    domain_id = (await WRITES.domain(opened.store)).id;
  });
  after(() => opened.close());

  const WRITES = {
    domain: (store: Store) =>
      createDomain(store, { name: 'D', host: 'one.example', description: null, enabled: true }),
    collection: (store: Store) =>
      createCollection(store, { domain_id, name: 'C', description: null, base_path: null, enabled: true }),
    service: (store: Store) =>
      createService(
        store,
        { name: 'S', service_type: 'redis', config_encrypted: 'x', enabled: true, domains: [] },
        [],
      ),
    endpoint: (store: Store) =>
      createEndpoint(store, {
        ...ENDPOINT_DEFAULTS,
        ...{ name: 'E', path: '/taken', method: 'GET', domain: '*' },
      }),
  };
  const CODES = {
    domain: 'host_taken',
    collection: 'name_taken',
    service: 'name_taken',
    endpoint: 'route_taken',
  };

  for (const kind of ['domain', 'collection', 'service', 'endpoint'] as const)
    it(`names the other ${kind} in a conflict about a unique value, and fails alike in a transaction`, async () => {
      const { store } = opened;
      const { id } = kind === 'domain' ? { id: domain_id } : await WRITES[kind](store);
      const failureOf = (write: () => Promise<unknown>) =>
        write().then(
          () => expect.fail('it was written twice'),
          (error: unknown) => error,
        );
      const alone = await failureOf(() => WRITES[kind](store));
      expect(alone).to.include({ code: CODES[kind] });
      expect(alone).to.have.property('message').that.includes(id);
      const within = await failureOf(() => transaction<unknown>(store, (tx) => WRITES[kind](tx)));
      expect(within).to.include({ code: CODES[kind] });
    });
});
