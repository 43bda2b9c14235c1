/** Imports beside each other, and beside other changes of what they touch. */
import { expect } from 'chai';
import pg from 'pg';
import { ENDPOINT_DEFAULTS } from '../../src/api/endpoints/endpoints.schema.js';
import { AppError } from '../../src/errors.js';
import type { ImportToApply } from '../../src/store/apply-import.js';
import { createCollection, deleteCollection, updateCollection } from '../../src/store/collections.js';
import { type Database, openDatabase, transaction } from '../../src/store/database.js';
import { createDomain, updateDomain } from '../../src/store/domains.js';
import { createEndpoint, listEndpoints, updateEndpoint } from '../../src/store/endpoints.js';
import { openScope } from '../../src/store/import-scope.js';
import { eventually } from '../support/eventually.js';
import { EMPTY_API, storeImport } from '../support/imports.js';
import { openTestStore, type TestStore } from '../support/store.js';

describe('imports and other changes at the same time', () => {
  let opened: TestStore;
  let store: Database;
  let domainId: string;
  const host = 'busy.example';

  before(async () => {
    opened = await openTestStore(20);
    ({ store } = opened);
    const domain = await createDomain(store, { name: 'Busy', host, description: null, enabled: true });
    domainId = domain.id;
  });
  after(() => opened.close());

  /** An API of so many endpoints, in this order. */
  const apiOf = (title: string, numbers: readonly number[], code: string): ImportToApply => ({
    ...EMPTY_API,
    title,
    endpoints: numbers.map((number) => ({
      name: `p${number}`,
      method: 'GET',
      path: `/p${number}`,
      description: null,
      generatedCode: code,
      handler: null,
    })),
  });
  const upTo = (count: number) => Array.from({ length: count }, (_, number) => number);
  const alone = { domain: host, domainId: null, collectionId: null, createCollection: false };

  it('imports wait for each other, whatever the order of their endpoints', async () => {
    const numbers = upTo(150);
    const outcomes = await Promise.all(
      upTo(6).map((time) =>
        storeImport(store, alone, apiOf('A', time % 2 ? numbers : [...numbers].reverse(), `// ${time}`)),
      ),
    );
    expect(outcomes.reduce((sum, { created }) => sum + created, 0)).to.equal(150);
    const { rows: endpoints } = await listEndpoints(store, { domain: host });
    expect(endpoints).to.have.length(150);
    // All of one import: none is left half way.
    expect(new Set(endpoints.map(({ code }) => code)).size).to.equal(1);
  });

  it('imports and other changes at the same time end without a deadlock', async () => {
    const target = { domain: host, domainId, collectionId: null, createCollection: true };
    const collection = { domain_id: domainId, name: 'B', description: null, base_path: '/b', enabled: true };
    let collectionId = (await createCollection(store, collection)).id;
    const failures: unknown[] = [];
    const tries: Promise<unknown>[] = [];
    const attempt = (work: Promise<unknown>) => {
      tries.push(
        work.catch((error: unknown) => {
          // Taken routes and collections that are gone are how this ends; anything else is not.
          if (!(error instanceof AppError)) failures.push(error);
        }),
      );
    };
    for (const round of upTo(25)) {
      attempt(storeImport(store, target, apiOf('B', upTo(40), `// ${round}`)));
      attempt(storeImport(store, alone, apiOf('A', upTo(160).reverse(), `// ${round}`)));
      attempt(updateDomain(store, domainId, { enabled: round % 2 === 0 }));
      attempt(updateCollection(store, collectionId, { base_path: round % 2 ? '/b' : '/c' }));
      const [endpoint] = (await listEndpoints(store, { collection_id: collectionId })).rows;
      if (endpoint) attempt(updateEndpoint(store, endpoint.id, { path: `/moved${round}` }));
      const added = { name: 'x', path: `/b/p${round}`, method: 'GET' as const, domain: host };
      attempt(createEndpoint(store, { ...ENDPOINT_DEFAULTS, ...added }));
      if (round % 8 === 7) {
        attempt(deleteCollection(store, collectionId));
        await Promise.all(tries);
        collectionId = (await createCollection(store, collection)).id;
      }
    }
    await Promise.all(tries);
    expect(failures).to.deep.equal([]);
  });

  /** Statements of this database that wait for a lock. */
  const blocked = async () =>
    (
      await store
        .knex('pg_stat_activity')
        .where({ wait_event_type: 'Lock' })
        .whereRaw('datname = current_database()')
    ).length;

  /** Runs with the lock that imports into the host take, as another process would hold it. */
  async function whileLocked(work: () => Promise<void>): Promise<void> {
    const other = new pg.Client(opened.databaseUrl);
    await other.connect();
    try {
      await other.query("SELECT pg_advisory_lock(hashtextextended('import ' || $1, 0))", [host]);
      await work();
    } finally {
      await other.end();
    }
  }

  it('imports into one host use one connection while they wait, whatever their number', async () => {
    const small = openDatabase(
      opened.databaseUrl,
      (error) => {
        throw error;
      },
      2,
    );
    try {
      let imports: Promise<unknown>[] = [];
      await whileLocked(async () => {
        imports = upTo(12).map((time) => storeImport(small, alone, apiOf('C', [time], '// c')));
        await eventually(async () => expect(await blocked()).to.equal(1));
        // Another connection is left, and those of other domains take their turn.
        expect((await listEndpoints(small, { domain: 'nobody.example' })).rows).to.deep.equal([]);
        const elsewhere = { ...alone, domain: 'elsewhere.example' };
        expect(await storeImport(small, elsewhere, apiOf('C', [1], '// c'))).to.include({ created: 1 });
        expect(await blocked()).to.equal(1);
      });
      await Promise.all(imports);
    } finally {
      await small.close();
    }
  });

  it('an import fails with 503 when it waits for another one for too long', async () => {
    await whileLocked(async () => {
      const error = await storeImport(store, alone, apiOf('D', [900], '// d')).catch(
        (thrown: unknown) => thrown,
      );
      if (!(error instanceof AppError)) throw error;
      expect(error).to.include({ code: 'import_busy', status: 503 });
      expect(error.message).to.include(`"${host}"`).and.include('nothing was imported');
    });
    expect(await storeImport(store, alone, apiOf('D', [900], '// d'))).to.include({ created: 1 });
  });

  it('two imports at the same time create one collection, with the host or with any', async () => {
    const api = apiOf('One', [], '');
    const target = { domain: host, domainId, collectionId: null, createCollection: true };
    const open = (domain: string) =>
      transaction(store, async (tx) => (await openScope(tx, { ...target, domain }, api)).collection?.id);
    let second: Promise<string | undefined> = Promise.resolve(undefined);
    const first = await transaction(store, async (tx) => {
      const { collection } = await openScope(tx, { ...target, domain: '*' }, api);
      second = open(host);
      await eventually(async () => expect(await blocked()).to.equal(1));
      return collection?.id;
    });
    expect(first).to.be.a('string');
    expect(await second).to.equal(first);
  });
});
