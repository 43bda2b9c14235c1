/** Announcements on their way from who changes a row to who listens. */
import { expect } from 'chai';
import { listen, type Topic } from '../../src/store/announcements.js';
import { type Database, openDatabase } from '../../src/store/database.js';
import { eventually } from '../support/eventually.js';
import { createDatabase, type TestDatabase } from '../support/postgres.js';

const TOPICS = [
  ...(['endpoint', 'audit', 'build', 'import', 'import_end', 'apply', 'observation', 'service'] as const),
  ...(['service_observation', 'node', 'log', 'certificate', 'acme_challenge'] as const),
] satisfies readonly Topic[];

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

  it('announces changes of each kind', async () => {
    const others: string[] = [];
    let connected: () => void = () => undefined;
    const isConnected = new Promise<void>((resolve) => {
      connected = resolve;
    });
    const listening = listen(database.url, TOPICS, {
      changed: ({ topic }) => others.push(topic),
      connected,
      failed: (error) => {
        throw error;
      },
    });
    await isConnected;
    for (const topic of TOPICS) store.announce(topic, 'a');
    await eventually(() => expect(others).to.have.members([...TOPICS]));
    await listening.stop();
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
