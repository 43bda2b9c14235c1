/** Which artifacts are forgotten, and which are not. */
import { randomBytes, randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { ArtifactSweep } from '../../jobs/forget-artifacts.js';
import { digestFile } from '../../src/artifacts/artifact-store.js';
import { DirectoryStore } from '../../src/artifacts/directory-store.js';
import { findArtifact, saveArtifact } from '../../src/store/artifacts.js';
import { recordCachedBuild } from '../../src/store/builds.js';
import { type Database, openDatabase } from '../../src/store/database.js';
import { createEndpoint } from '../../src/store/endpoints.js';
import { createTestLog } from '../support/log.js';
import { createDatabase, type TestDatabase } from '../support/postgres.js';
import { type TempDir, tempDir } from '../support/temp.js';

const MONTH_MS = 30 * 24 * 3600 * 1000;
const TOOLCHAIN = 'toolchain';

describe('artifacts', () => {
  let database: TestDatabase;
  let store: Database;
  let folder: TempDir;
  let files: DirectoryStore;
  let created = 0;
  before(async () => {
    database = await createDatabase();
    store = openDatabase(database.url, () => undefined);
    folder = await tempDir('forget-artifacts');
    files = new DirectoryStore(join(folder.path, 'store'));
  });
  after(async () => {
    await store?.close();
    await database?.drop();
    await folder?.remove();
  });

  const newSweep = () => new ArtifactSweep(store, files, createTestLog().log, MONTH_MS);

  /** An artifact that was made so many days ago, of a source of its own. */
  async function artifact(daysAgo: number): Promise<{ digest: string; sourceKey: string }> {
    const file = join(folder.path, 'file');
    await writeFile(file, randomBytes(100));
    const digest = await digestFile(file);
    await files.put(digest, file);
    return { digest, sourceKey: await madeFrom(digest, daysAgo) };
  }

  async function madeFrom(digest: string, daysAgo: number): Promise<string> {
    const sourceKey = randomUUID();
    await saveArtifact(store, {
      source_key: sourceKey,
      toolchain: TOOLCHAIN,
      digest,
      size: 100,
      diagnostics: [],
    });
    const created_at = store.knex.raw("clock_timestamp() - ? * interval '1 day'", [daysAgo]);
    await store.knex('artifacts').where({ source_key: sourceKey }).update({ created_at });
    return sourceKey;
  }

  async function endpoint(): Promise<string> {
    const path = `/forget/${++created}`;
    const { id } = await createEndpoint(store, {
      ...{ name: path, path, method: 'GET', domain: '*', enabled: true },
      ...{ collection_id: null, description: null, code: '// code', dependencies: null, limits: null },
    });
    return id;
  }

  it('that nothing refers to for a month are deleted, by the second look', async () => {
    const { digest, sourceKey } = await artifact(31);
    const young = await artifact(29);
    const sweep = newSweep();
    await sweep.run();
    expect(await files.has(digest)).to.equal(true);
    await sweep.run();
    expect(await files.has(digest)).to.equal(false);
    expect(await findArtifact(store, sourceKey, TOOLCHAIN)).to.equal(undefined);
    expect(await files.has(young.digest)).to.equal(true);
  });

  it('of endpoints and builds are kept however old they are, and so is what came of a newer source', async () => {
    const kept: string[] = [];
    for (const column of ['artifact', 'desired_artifact', 'confirmed_artifact']) {
      const { digest } = await artifact(100);
      await store
        .knex('endpoints')
        .where({ id: await endpoint() })
        .update({ [column]: digest });
      kept.push(digest);
    }
    const { digest: twice } = await artifact(100);
    await madeFrom(twice, 1);
    const { digest: built, sourceKey } = await artifact(100);
    const id = await endpoint();
    const request = { endpointId: id, sourceKey, code: '', dependencies: {}, requestId: 'request' };
    await recordCachedBuild(store, request, { digest: built, diagnostics: [] });
    await store.knex('endpoints').where({ id }).delete();
    const sweep = newSweep();
    for (let look = 0; look < 3; look++) await sweep.run();
    for (const digest of [...kept, twice, built]) expect(await files.has(digest), digest).to.equal(true);
  });

  it('that are used again between two looks are kept', async () => {
    const { digest } = await artifact(100);
    const sweep = newSweep();
    await sweep.run();
    const id = await endpoint();
    await store.knex('endpoints').where({ id }).update({ artifact: digest });
    await sweep.run();
    await store.knex('endpoints').where({ id }).update({ artifact: null });
    await sweep.run();
    expect(await files.has(digest), 'unused anew: the count begins anew').to.equal(true);
    await sweep.run();
    expect(await files.has(digest)).to.equal(false);
  });
});
