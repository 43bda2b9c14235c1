import { expect } from 'chai';
import { ENDPOINT_DEFAULTS } from '../../src/api/endpoints/endpoints.schema.js';
import { createCollection, deleteCollection, updateCollection } from '../../src/store/collections.js';
import type { Store } from '../../src/store/database.js';
import { createDomain, type Domain, deleteDomain, updateDomain } from '../../src/store/domains.js';
import {
  createEndpoint,
  deleteEndpoint,
  type NewEndpoint,
  updateEndpoint,
} from '../../src/store/endpoints.js';
import { openTestStore, type TestStore } from '../support/store.js';

/** Announcements that gateways receive, and the versions that they find in a resync. */
describe('changes that gateways have to see', () => {
  let opened: TestStore;
  let store: Store;
  let announced: string[] = [];
  let count = 0;

  before(async () => {
    opened = await openTestStore();
    store = {
      knex: opened.store.knex,
      announce: (topic, id) => {
        announced.push(`${topic} ${id}`);
      },
    };
  });
  beforeEach(() => {
    announced = [];
  });
  after(() => opened.close());

  async function domain(more: Partial<Domain> = {}): Promise<Domain> {
    count += 1;
    return createDomain(store, {
      name: 'D',
      host: `d${count}.example`,
      description: null,
      enabled: true,
      ...more,
    });
  }

  async function collection(domain_id: string, base_path: string | null = null): Promise<string> {
    count += 1;
    const created = await createCollection(store, {
      domain_id,
      name: `C${count}`,
      description: null,
      base_path,
      enabled: true,
    });
    return created.id;
  }

  async function endpoint(more: Partial<NewEndpoint> = {}): Promise<string> {
    count += 1;
    const created = await createEndpoint(store, {
      ...ENDPOINT_DEFAULTS,
      ...{ name: 'E', path: `/p${count}`, method: 'GET', domain: '*' },
      ...more,
    });
    return created.id;
  }

  /**
   * Runs a change, and expects exactly these endpoints to be announced and, while they exist, to have a new version.
   */
  async function expectSeen(ids: readonly string[], change: () => Promise<unknown>): Promise<void> {
    const before = await versions();
    announced = [];
    await change();
    expect(announced).to.have.members(ids.map((id) => `endpoint ${id}`));
    const after = await versions();
    const changed = [...before.keys()].filter((id) => before.get(id) !== after.get(id));
    expect(changed).to.have.members([...ids]);
  }

  async function versions(): Promise<Map<string, number>> {
    const rows = await store.knex('endpoints').select<{ id: string; version: number }[]>('id', 'version');
    return new Map(rows.map(({ id, version }) => [id, version]));
  }

  it('announces an endpoint that is new, changed or deleted', async () => {
    const id = await endpoint();
    expect(announced).to.deep.equal([`endpoint ${id}`]);
    await expectSeen([], () => updateEndpoint(store, id, { name: 'B', code: 'c' }));
    await expectSeen([id], () => updateEndpoint(store, id, { enabled: false }));
    await expectSeen([id], () => deleteEndpoint(store, id));
    await expectSeen([], () => deleteEndpoint(store, id));
  });

  it('announces the endpoints of a domain that is enabled, disabled, renamed or deleted', async () => {
    const { id: domainId, host } = await domain();
    const inside = await endpoint({ collection_id: await collection(domainId) });
    const named = await endpoint({ domain: host });
    const atNewHost = await endpoint({ domain: `new-${host}` });
    await endpoint();
    await endpoint({ collection_id: await collection((await domain()).id) });
    await expectSeen([], () => updateDomain(store, domainId, { name: 'B', host, enabled: true }));
    await expectSeen([inside, named], () => updateDomain(store, domainId, { enabled: false }));
    await expectSeen([inside, named, atNewHost], () =>
      updateDomain(store, domainId, { host: `new-${host}` }),
    );
    await expectSeen([inside, named, atNewHost], () => deleteDomain(store, domainId));
    await expectSeen([], () => deleteDomain(store, domainId));
  });

  it('announces endpoints that have named the host of a new domain when that is disabled', async () => {
    const early = await endpoint({ domain: 'early.example' });
    await expectSeen([early], () => domain({ host: 'early.example', enabled: false }));
    await endpoint({ domain: 'open.example' });
    await expectSeen([], () => domain({ host: 'open.example' }));
  });

  it('announces the endpoints of a collection that is enabled, disabled, moved or deleted', async () => {
    const parent = await domain();
    const id = await collection(parent.id, '/a');
    const one = await endpoint({ collection_id: id });
    const two = await endpoint({ collection_id: id });
    await endpoint({ collection_id: await collection(parent.id) });
    await expectSeen([], () => updateCollection(store, id, { name: 'B', base_path: '/a', enabled: true }));
    await expectSeen([one, two], () => updateCollection(store, id, { enabled: false }));
    await expectSeen([one, two], () => updateCollection(store, id, { base_path: '/b', enabled: true }));
    await expectSeen([one, two], () => deleteCollection(store, id));
  });

  it('announces no endpoint when a change of a domain fails', async () => {
    const { id: domainId, host } = await domain();
    await endpoint({ domain: host, path: '/taken' });
    await endpoint({ domain: 'full.example', path: '/taken' });
    await expectSeen([], () =>
      updateDomain(store, domainId, { host: 'full.example' }).then(
        () => expect.fail('the rename went through'),
        (error: unknown) => expect(error).to.have.property('code', 'route_taken'),
      ),
    );
  });

  it('changes domains, collections and endpoints concurrently without deadlocks', async () => {
    const { id: domainId, host } = await domain();
    const collectionId = await collection(domainId, '/x');
    const ids: string[] = [];
    for (let at = 0; at < 10; at += 1) ids.push(await endpoint({ collection_id: collectionId }));
    // PostgreSQL would end one of two that wait for each other with an error.
    await Promise.all(
      Array.from({ length: 10 }, async (_empty, at) => {
        await updateDomain(store, domainId, { enabled: at % 2 === 0 });
        await updateCollection(store, collectionId, { base_path: `/x${at}` });
        for (const id of at % 2 === 0 ? ids : ids.toReversed()) {
          await updateEndpoint(store, id, { enabled: at % 2 === 0, name: `N${at}` });
        }
        await updateDomain(store, domainId, { host: `${at}-${host}` });
        await endpoint({ collection_id: collectionId });
      }),
    );
    await deleteDomain(store, domainId);
    expect(await store.knex('endpoints').where({ collection_id: collectionId })).to.deep.equal([]);
  });
});
