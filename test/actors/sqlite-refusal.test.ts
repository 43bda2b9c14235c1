/** Whether a sqlite service had a file before, so that no empty one takes its place. */
import { hostname } from 'node:os';
import { expect } from 'chai';
import { hadFile } from '../../src/actors/sqlite-refusal.js';
import type { SqliteFolders } from '../../src/model/sqlite-folders.js';
import type { Database } from '../../src/store/database.js';
import { heartbeat, registerNode } from '../../src/store/nodes.js';
import { useTestStore } from '../support/store.js';
import { type TempDir, tempDir } from '../support/temp.js';

const [SAME_ID, OTHER_ID] = ['6d6d1f0e-0000-4000-8000-000000000001', '6d6d1f0e-0000-4000-8000-000000000002'];

describe('the file of a sqlite service', () => {
  let store: Database;
  useTestStore((opened) => {
    store = opened;
  });
  let folder: TempDir;
  before(async () => {
    folder = await tempDir('sqlite-refusal');
  });
  after(() => folder?.remove());
  afterEach(() => store.knex('nodes').delete());

  const had = (path: string, file_hosts: readonly string[], former_files = {}) => {
    const folders: SqliteFolders = [folder.path];
    return hadFile(store, { file_hosts, former_files }, { path, create_if_missing: true } as never, folders);
  };
  const machine = async (id: string, name: string, secondsAgo = 0) => {
    await registerNode(store, {
      id,
      kind: 'actor-host',
      hostname: name,
      pid: 1,
      pid_namespace: '',
      info: {},
    });
    const heartbeat_at = store.knex.raw("clock_timestamp() - ? * interval '1 second'", [secondsAgo]);
    await store.knex('nodes').where({ id }).update({ heartbeat_at });
  };

  it('was there when it was opened on this machine, or before that was recorded', async () => {
    expect(await had('a.db', [])).to.equal(false);
    expect(await had('a.db', [hostname()])).to.equal(true);
    expect(await had('a.db', ['*'])).to.equal(true);
  });

  it('was there when it was opened on a machine that is not alive: this one may have had its name', async () => {
    expect(await had('a.db', ['container-of-before'])).to.equal(true);
    // Killed a moment ago: its node expires soon.
    await machine(SAME_ID, 'container-of-before', 9);
    expect(await had('a.db', ['container-of-before'])).to.equal(true);
  });

  it('was not there on one more machine, when all that have opened it are alive', async () => {
    await machine(SAME_ID, 'first');
    await machine(OTHER_ID, 'second');
    const beating = setInterval(() => {
      for (const id of [SAME_ID, OTHER_ID]) void heartbeat(store, id);
    }, 50);
    try {
      expect(await had('a.db', ['first', 'second'])).to.equal(false);
      expect(await had('a.db', ['first', 'third'])).to.equal(true);
    } finally {
      clearInterval(beating);
    }
  });

  it('was there when another spelling of its path was named before', async () => {
    const former = { 'a.db': [hostname()], 'b.db': ['container-of-before'] };
    for (const path of ['a.db', './a.db', `${folder.path}/a.db`, './b.db'])
      expect(await had(path, [], former), path).to.equal(true);
    expect(await had('c.db', [], former)).to.equal(false);
  });
});
