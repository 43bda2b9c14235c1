/** Imports beside each other, and beside other changes of what they touch. */
import { expect } from 'chai';
import { AppError } from '../../src/errors.js';
import { applyImport, type ImportToApply } from '../../src/store/apply-import.js';
import { createCollection, deleteCollection, updateCollection } from '../../src/store/collections.js';
import { type Database, openDatabase } from '../../src/store/database.js';
import { createDomain, updateDomain } from '../../src/store/domains.js';
import { createEndpoint, listEndpoints, updateEndpoint } from '../../src/store/endpoints.js';
import { createDatabase, type TestDatabase } from '../support/postgres.js';

describe('imports and other changes at the same time', () => {
  let database: TestDatabase;
  let store: Database;
  let domainId: string;
  const host = 'busy.example';

  before(async () => {
    database = await createDatabase();
    store = openDatabase(
      database.url,
      (error) => {
        throw error;
      },
      20,
    );
    const domain = await createDomain(store, { name: 'Busy', host, description: null, enabled: true });
    domainId = domain.id;
  });
  after(async () => {
    await store.close();
    await database.drop();
  });

  /** An API of so many endpoints, in this order. */
  const apiOf = (title: string, numbers: readonly number[], code: string): ImportToApply => ({
    title,
    description: null,
    basePath: null,
    dependencies: null,
    warnings: [],
    problems: [],
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

  it('wait for each other, whatever the order of their endpoints', async () => {
    const numbers = upTo(150);
    const outcomes = await Promise.all(
      upTo(6).map((time) =>
        applyImport(store, alone, apiOf('A', time % 2 ? numbers : [...numbers].reverse(), `// ${time}`)),
      ),
    );
    expect(outcomes.reduce((sum, { created }) => sum + created, 0)).to.equal(150);
    const endpoints = await listEndpoints(store, { domain: host });
    expect(endpoints).to.have.length(150);
    // All of one import: none is left half way.
    expect(new Set(endpoints.map(({ code }) => code)).size).to.equal(1);
  });

  it('end one way or the other, and never in a circle', async () => {
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
      attempt(applyImport(store, target, apiOf('B', upTo(40), `// ${round}`)));
      attempt(applyImport(store, alone, apiOf('A', upTo(160).reverse(), `// ${round}`)));
      attempt(updateDomain(store, domainId, { enabled: round % 2 === 0 }));
      attempt(updateCollection(store, collectionId, { base_path: round % 2 ? '/b' : '/c' }));
      const [endpoint] = await listEndpoints(store, { collection_id: collectionId });
      if (endpoint) attempt(updateEndpoint(store, endpoint.id, { path: `/moved${round}` }));
      const added = { name: 'x', path: `/b/p${round}`, method: 'GET' as const, domain: host, enabled: true };
      const nothing = { collection_id: null, description: null, code: null, dependencies: null };
      attempt(createEndpoint(store, { ...added, ...nothing }));
      if (round % 8 === 7) {
        attempt(deleteCollection(store, collectionId));
        await Promise.all(tries);
        collectionId = (await createCollection(store, collection)).id;
      }
    }
    await Promise.all(tries);
    expect(failures).to.deep.equal([]);
  });
});
