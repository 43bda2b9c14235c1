/** What becomes of builds whose worker cannot say how they ended, and of the endpoints that share one. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { ActiveJobs } from '../../jobs/active-jobs.js';
import { recoverBuilds } from '../../jobs/recover-builds.js';
import { ONE_FILE } from '../../src/model/source-files.js';
import { buildJobId } from '../../src/queues/jobs.js';
import type { Queues } from '../../src/queues/queues.js';
import { claimBuild, finishBuild, requeueBuild } from '../../src/store/build-attempts.js';
import { type BuildAttempt, findBuild, requestBuild } from '../../src/store/builds.js';
import type { Database } from '../../src/store/database.js';
import { eventually } from '../support/eventually.js';
import { EMPTY_API, storeImport } from '../support/imports.js';
import type { TestLog } from '../support/log.js';
import { ORIGIN } from '../support/origin.js';
import { openTestStoreWithQueues } from '../support/store.js';

const FAILED = {
  state: 'failed',
  errorCode: 'compile_failed',
  error: 'no',
  diagnostics: [],
  timings: {},
} as const;

describe('lost builds', () => {
  let close: () => Promise<void>;
  let store: Database;
  let queues: Queues;
  let logged: TestLog;
  const own = { workerId: randomUUID(), activeJobs: new ActiveJobs() };

  before(async () => {
    ({ store, queues, logged, close } = await openTestStoreWithQueues());
  });
  after(() => close());

  const look = () => recoverBuilds(store, queues, logged.log, own);
  const attemptOf = async ({ id }: BuildAttempt) => (await findBuild(store, id))?.attempt;

  it('leaves builds alone that another worker has just queued again', async () => {
    const { build } = await sharedBuild(['/again']);
    const longAgo = store.knex.raw("clock_timestamp() - interval '1 hour'");
    await store.knex('builds').where({ id: build.id }).update({ created_at: longAgo, queued_at: longAgo });
    const again = await requeueBuild(store, build);
    // Its job is not on the queue yet.
    await look();
    expect(await attemptOf(build)).to.equal(again?.attempt);
    await store.knex('builds').where({ id: build.id }).update({ queued_at: longAgo });
    await look();
    expect(await attemptOf(build)).to.equal((again?.attempt ?? 0) + 1);
  });

  /** Endpoints that an import has made, with one build. */
  async function sharedBuild(paths: readonly string[]) {
    const { endpoints } = await storeImport(
      store,
      { domain: '*', domainId: null, collectionId: null, createCollection: false },
      {
        ...EMPTY_API,
        title: 'Shared',
        endpoints: paths.map((path) => ({
          name: path,
          method: 'GET' as const,
          path,
          description: null,
          generatedCode: '// same',
          handler: null,
        })),
      },
    );
    const sourceKey = randomUUID();
    let build: BuildAttempt | undefined;
    for (const { id: endpointId } of endpoints) {
      const request = {
        endpointId,
        sourceKey,
        code: '// same',
        dependencies: {},
        ...ONE_FILE,
        host: '*',
        origin: ORIGIN,
      };
      build = await requestBuild(store, request);
    }
    if (!build) throw new Error('no endpoints');
    return { build, ids: endpoints.map(({ id }) => id).sort() };
  }

  it('queues builds again that this worker has claimed and is not executing', async () => {
    const { build } = await sharedBuild(['/lost']);
    await own.activeJobs.run(buildJobId(build), async () => {
      await claimBuild(store, build, own.workerId);
      // At work: left alone, although no row says that this worker is alive.
      await look();
      expect(await attemptOf(build)).to.equal(1);
      // Delivered twice: the second finds nothing to do, and takes nothing away from the first.
      await own.activeJobs.run(buildJobId(build), async () => undefined);
      await look();
      expect(await attemptOf(build)).to.equal(1);
    });
    await look();
    const next = { ...build, attempt: 2 };
    expect(await findBuild(store, build.id)).to.include({ state: 'queued', attempt: 2, worker_id: null });
    expect(await queues.hasJob('compile', buildJobId(next))).to.equal(true);
    expect(await finishBuild(store, build, FAILED)).to.equal(false);
    expect(await finishBuild(store, next, FAILED)).to.equal(true);
  });

  it('makes versions of who asked for them, although another one had asked for the same source before', async () => {
    const { build, ids } = await sharedBuild(['/asked-first', '/asked-later']);
    const [{ source_key }] = await store.knex('builds').where({ id: build.id }).select('source_key');
    const eve = { kind: 'token', id: randomUUID(), name: 'eve', user_id: null } as const;
    const origin = { ...ORIGIN, actor: eve };
    const [endpointId = ''] = ids;
    const source = { sourceKey: source_key, code: '// same', dependencies: {}, ...ONE_FILE, host: '*' };
    expect(await requestBuild(store, { ...source, endpointId, origin })).to.include({ isNew: false });
    const digest = randomUUID();
    const artifact = { digest, source_key, toolchain: 'any', size: 1, diagnostics: '[]' };
    await store.knex('artifacts').insert(artifact);
    await finishBuild(store, build, {
      ...{ state: 'succeeded', artifact: digest, diagnostics: [], cached: false, timings: {} },
    });
    const actors = await store.knex('endpoint_versions').whereIn('endpoint_id', ids).orderBy('endpoint_id');
    expect(actors.map(({ actor }) => actor)).to.deep.equal([eve, ORIGIN.actor]);
  });

  it('ends a build for all its endpoints, which it locks in the order of their ids', async () => {
    const { build, ids } = await sharedBuild(['/a', '/b', '/c', '/d']);
    const [first] = ids;
    const last = ids.at(-1);
    if (!first || !last) throw new Error('no endpoints');
    // Moves the row with the lowest id behind the others in the table, where an update without order comes to it last.
    await store.knex('endpoints').where({ id: first }).update({ description: 'moved' });
    const finished = await store.knex.transaction(async (held) => {
      await held('endpoints').where({ id: first }).forUpdate().select('id');
      const finishing = finishBuild(store, build, FAILED);
      await untilBlocked();
      // Waits for the first, so it cannot have any of the others.
      await held.raw("SET LOCAL lock_timeout = '2s'");
      await held('endpoints').where({ id: last }).forUpdate().select('id');
      return { finishing };
    });
    expect(await finished.finishing).to.equal(true);
    const states = await store.knex('endpoints').whereIn('id', ids).pluck('status');
    expect(states).to.deep.equal(ids.map(() => 'error'));
  });

  /** Waits until a statement waits for a lock. */
  async function untilBlocked(): Promise<void> {
    await eventually(async () => {
      const blocked = await store
        .knex('pg_stat_activity')
        .where({ wait_event_type: 'Lock' })
        .whereRaw('datname = current_database()');
      expect(blocked).to.have.length(1);
    });
  }
});
