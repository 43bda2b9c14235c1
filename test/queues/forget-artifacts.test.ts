/** Which artifacts are forgotten, and which are not. */
import { randomBytes, randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { ArtifactSweep } from '../../jobs/artifact-sweep.js';
import { ENDPOINT_DEFAULTS } from '../../src/api/endpoints/endpoints.schema.js';
import { type ArtifactStore, digestFile } from '../../src/artifacts/artifact-store.js';
import { DirectoryStore } from '../../src/artifacts/directory-store.js';
import { ONE_FILE } from '../../src/model/source-files.js';
import { type Artifact, findArtifact, saveArtifact } from '../../src/store/artifacts.js';
import { type BuildRequest, recordCachedBuild } from '../../src/store/builds.js';
import type { Database } from '../../src/store/database.js';
import { createEndpoint } from '../../src/store/endpoints.js';
import { addVersions } from '../../src/store/versions.js';
import { eventually } from '../support/eventually.js';
import { createTestLog } from '../support/log.js';
import { ORIGIN } from '../support/origin.js';
import { openTestStore, type TestStore } from '../support/store.js';
import { type TempDir, tempDir } from '../support/temp.js';

const MONTH_MS = 30 * 24 * 3600 * 1000;
const TOOLCHAIN = 'toolchain';

describe('artifacts', () => {
  let opened: TestStore;
  let store: Database;
  let folder: TempDir;
  let files: DirectoryStore;
  let created = 0;
  before(async () => {
    opened = await openTestStore();
    ({ store } = opened);
    folder = await tempDir('forget-artifacts');
    files = new DirectoryStore(join(folder.path, 'store'));
  });
  after(async () => {
    await opened?.close();
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

  async function known(sourceKey: string): Promise<Artifact> {
    const found = await findArtifact(store, sourceKey, TOOLCHAIN);
    if (!found) throw new Error(`nothing was made from ${sourceKey}`);
    return found;
  }

  const requestFor = async (sourceKey: string): Promise<BuildRequest> => {
    const request = { code: '', dependencies: {}, ...ONE_FILE, host: '*', origin: ORIGIN };
    return { ...request, endpointId: await endpoint(), sourceKey };
  };

  /** The same files, with something that happens before one is deleted. */
  const storeThat = (beforeRemoval: (digest: string) => Promise<void>): ArtifactStore => ({
    has: (digest) => files.has(digest),
    put: (digest, file) => files.put(digest, file),
    fetch: (digest, destination) => files.fetch(digest, destination),
    remove: async (digest) => {
      await beforeRemoval(digest);
      await files.remove(digest);
    },
  });

  async function endpoint(): Promise<string> {
    const path = `/forget/${++created}`;
    const { id } = await createEndpoint(store, {
      ...{ name: path, path, method: 'GET', domain: '*' },
      ...ENDPOINT_DEFAULTS,
      code: '// code',
    });
    return id;
  }

  const sourceOf = ({ digest, sourceKey }: { digest: string; sourceKey: string }) => ({
    sourceKey,
    code: '',
    dependencies: {},
    ...ONE_FILE,
    artifact: digest,
    actor: null,
  });

  async function deploy(endpointId: string, column: string, digest: string): Promise<void> {
    const [deployment] = await store
      .knex('deployments')
      .insert({
        endpoint_id: endpointId,
        kind: 'start',
        targets: JSON.stringify([{ version: 1, percent: 100, artifact: digest }]),
        request_id: 'r',
        outcome: 'succeeded',
        revision: 1,
      })
      .returning<{ id: string }[]>('id');
    await store
      .knex('endpoints')
      .where({ id: endpointId })
      .update({ [column]: deployment?.id });
  }

  it('deletes artifacts that were unreferenced for a month with the second run', async () => {
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

  it('keeps artifacts of endpoints, builds and newer sources, however old they are', async () => {
    const kept: string[] = [];
    for (const column of ['desired_deployment_id', 'confirmed_deployment_id']) {
      const { digest } = await artifact(100);
      await deploy(await endpoint(), column, digest);
      kept.push(digest);
    }
    const compiled = await artifact(100);
    await addVersions(store, [await endpoint()], sourceOf(compiled));
    kept.push(compiled.digest);
    const { digest: twice } = await artifact(100);
    await madeFrom(twice, 1);
    const { digest: built, sourceKey } = await artifact(100);
    const id = await endpoint();
    const request = {
      endpointId: id,
      sourceKey,
      code: '',
      dependencies: {},
      ...ONE_FILE,
      host: '*',
      origin: ORIGIN,
    };
    await recordCachedBuild(store, request, await known(sourceKey));
    await store.knex('endpoints').where({ id }).delete();
    const sweep = newSweep();
    for (let look = 0; look < 3; look++) await sweep.run();
    for (const digest of [...kept, twice, built]) expect(await files.has(digest), digest).to.equal(true);
  });

  it('keeps the artifacts of the newest 20 versions, and older ones only when they are deployed', async () => {
    const id = await endpoint();
    const versions: string[] = [];
    for (let number = 1; number <= 22; number++) {
      const made = await artifact(100);
      await addVersions(store, [id], sourceOf(made));
      versions.push(made.digest);
    }
    await deploy(id, 'confirmed_deployment_id', String(versions[0]));
    const sweep = newSweep();
    for (let look = 0; look < 3; look++) await sweep.run();
    const kept = await Promise.all(versions.map((digest) => files.has(digest)));
    expect(kept).to.deep.equal(versions.map((_digest, at) => at !== 1));
  });

  it('keeps artifacts that are used while others are being deleted', async () => {
    const unused = [await artifact(100), await artifact(100)];
    const used = new Set<string>();
    /** Before the first file is deleted, there is a build of the other. */
    const slow = storeThat(async (digest) => {
      const other = unused.find((one) => one.digest !== digest);
      if (used.size > 0 || !other) return;
      used.add(other.digest);
      const request = await requestFor(other.sourceKey);
      expect(await recordCachedBuild(store, request, await known(other.sourceKey))).to.be.a('string');
    });
    const sweep = new ArtifactSweep(store, slow, createTestLog().log, MONTH_MS);
    await sweep.run();
    await sweep.run();
    expect(used).to.have.length(1);
    for (const digest of used) expect(await files.has(digest)).to.equal(true);
  });

  it('reuses no artifact that is being deleted: a compile waits, and finds it missing', async () => {
    const { digest, sourceKey } = await artifact(100);
    const row = await known(sourceKey);
    const request = await requestFor(sourceKey);
    let recorded: Promise<string | undefined> | undefined;
    let saved: Promise<boolean> | undefined;
    const slow = storeThat(async (removed) => {
      if (removed !== digest) return;
      recorded = recordCachedBuild(store, request, row);
      saved = saveArtifact(store, { ...row, source_key: randomUUID() }).then(() => files.has(digest));
      await waitingForLocks(2);
    });
    const sweep = new ArtifactSweep(store, slow, createTestLog().log, MONTH_MS);
    await sweep.run();
    await sweep.run();
    expect(await recorded, 'a build without its artifact').to.equal(undefined);
    expect(await saved, 'seen before it was deleted').to.equal(false);
  });

  /** Resolves when so many statements wait for rows that others hold. */
  const waitingForLocks = (count: number) =>
    eventually(async () => {
      const { rows } = await store.knex.raw<{ rows: unknown[] }>(
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      expect(rows).to.have.length(count);
    });

  it('keeps artifacts that are used again between two runs', async () => {
    const { digest } = await artifact(100);
    const sweep = newSweep();
    await sweep.run();
    const id = await endpoint();
    await deploy(id, 'desired_deployment_id', digest);
    await sweep.run();
    await store.knex('endpoints').where({ id }).update({ desired_deployment_id: null });
    await sweep.run();
    expect(await files.has(digest), 'unused anew: the count begins anew').to.equal(true);
    await sweep.run();
    expect(await files.has(digest)).to.equal(false);
  });
});
