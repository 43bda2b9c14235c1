/** The store, and the queues, with a separate database: for tests below the API. */
import { openQueues, type Queues } from '../../src/queues/queues.js';
import { type Database, openDatabase } from '../../src/store/database.js';
import { createTestLog, type TestLog } from './log.js';
import { createDatabase } from './postgres.js';

export interface TestStore {
  readonly store: Database;
  readonly databaseUrl: string;
  readonly logged: TestLog;
  close(): Promise<void>;
}

/** Opens a store; announcements that fail are errors in its log. */
export async function openTestStore(connections?: number): Promise<TestStore> {
  const database = await createDatabase();
  const logged = createTestLog();
  const onError = (error: Error) => logged.log.error({ err: error }, 'announcing failed');
  const store = openDatabase(database.url, onError, connections);
  return {
    store,
    databaseUrl: database.url,
    logged,
    close: async () => {
      await store.close();
      await database.drop();
    },
  };
}

/** Opens a store before the tests of a suite, and closes it after them. @param use gets it before the first test */
export function useTestStore(use: (store: Database) => void): void {
  let opened: TestStore | undefined;
  before(async () => {
    opened = await openTestStore();
    use(opened.store);
  });
  after(() => opened?.close());
}

/** Opens a store, and the queues in the same database. */
export async function openTestStoreWithQueues(): Promise<TestStore & { readonly queues: Queues }> {
  const opened = await openTestStore();
  const queues = openQueues({ DATABASE_URL: opened.databaseUrl, REDIS_URL: undefined }, opened.logged.log);
  return {
    ...opened,
    queues,
    close: async () => {
      await queues.close();
      await opened.close();
    },
  };
}
