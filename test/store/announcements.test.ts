/** Announcements on their way from who changes a row to who listens. */
import { expect } from 'chai';
import { listen } from '../../src/store/announcements.js';
import { type Database, openDatabase } from '../../src/store/database.js';
import { eventually } from '../support/eventually.js';
import { createDatabase, type TestDatabase } from '../support/postgres.js';

describe('announcements', () => {
  let database: TestDatabase;
  let store: Database;
  let heard: string[];
  let stop: () => Promise<void>;

  before(async () => {
    database = await createDatabase();
  });
  after(() => database.drop());
  beforeEach(async () => {
    store = openDatabase(database.url, (error) => {
      throw error;
    });
    heard = [];
    await new Promise<void>((resolve) => {
      const listening = listen(database.url, ['build', 'import'], {
        changed: ({ topic, id }) => heard.push(`${topic} ${id}`),
        connected: resolve,
        failed: (error) => {
          throw error;
        },
      });
      stop = () => listening.stop();
    });
  });
  afterEach(async () => {
    await store.close();
    await stop();
  });

  it('announces a row once, however often it changes in a moment', async () => {
    for (let change = 0; change < 5; change++) store.announce('build', 'a');
    for (let change = 0; change < 5; change++) store.announce('import', 'b');
    await eventually(() => expect(heard).to.deep.equal(['build a', 'import b']));
  });

  it('announces the progress of an import also when nothing else changes', async () => {
    store.announce('import', 'a');
    await eventually(() => expect(heard).to.deep.equal(['import a']));
    store.announce('import', 'b');
    store.announce('build', 'c');
    await eventually(() => expect(heard).to.deep.equal(['import a', 'import b', 'build c']));
  });

  it('loses no announcement when the process stops', async () => {
    store.announce('import', 'a');
    await store.close();
    await eventually(() => expect(heard).to.deep.equal(['import a']));
  });
});
