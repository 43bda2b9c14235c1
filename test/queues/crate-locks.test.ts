/** The locks that builds begin with: crates stay what they are until somebody updates them. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { ActiveJobs } from '../../jobs/active-jobs.js';
import { type CompileContext, compile } from '../../jobs/compile.js';
import { ENDPOINT_DEFAULTS } from '../../src/api/endpoints/endpoints.schema.js';
import type { Buildable } from '../../src/build/builder.js';
import { type CrateUpdate, startOfVersion } from '../../src/lifecycle/build-start.js';
import { requestCompile } from '../../src/lifecycle/compile.js';
import type { LifecycleDependencies } from '../../src/lifecycle/lifecycle-dependencies.js';
import { cratesInLock } from '../../src/model/cargo-lock.js';
import { createEndpoint, findEndpoint, updateEndpoint } from '../../src/store/endpoints.js';
import { keepLock, readLock } from '../../src/store/source-files.js';
import { findVersion } from '../../src/store/versions.js';
import { lockOf } from '../support/locks.js';
import { createTestLog } from '../support/log.js';
import { ORIGIN } from '../support/origin.js';
import { openTestStore, type TestStore } from '../support/store.js';

const dependencies = { uuid: '1', rand: '0.9' };
const FIRST = lockOf({ rand: '0.9.1', uuid: '1.17.0' });
const SECOND = lockOf({ rand: '0.9.1', uuid: '1.18.0' });
const THIRD = lockOf({ rand: '0.9.2', uuid: '1.18.0' });

describe('the locks that builds begin with', () => {
  let opened: TestStore;
  /** What the compiler got. */
  const built: Buildable[] = [];
  /** What it resolves next. */
  let resolves: string | null = null;
  before(async () => {
    opened = await openTestStore();
  });
  after(() => opened?.close());

  const deps = () =>
    ({
      ...{ store: opened.store, artifacts: { has: async () => true }, config: { CARGO_SOURCES: [] } },
    }) as unknown as LifecycleDependencies;
  /** Compiles as an API and a worker do. @returns whether a compiler ran */
  const compiled = async (id: string, update?: CrateUpdate): Promise<boolean> => {
    const capacity = { toolchains: ['t'], canBuild: true };
    const build = await requestCompile(deps(), id, ORIGIN, capacity, update);
    if (build.state === 'known') return false;
    const context = {
      ...{ ...deps(), toolchain: 't', workerId: randomUUID(), activeJobs: new ActiveJobs() },
      ...{ log: createTestLog().log, durations: { observe: () => undefined } },
      changes: { onChange: () => () => undefined },
      builder: {
        build: async (buildable: Buildable) => {
          built.push(buildable);
          const timings = { dependencies_ms: 0, compile_ms: 0, store_ms: 0 };
          return { ok: true, digest: randomUUID(), size: 1, lock: resolves, diagnostics: [], timings };
        },
      },
    } as unknown as CompileContext;
    const { id: buildId, attempt } = build;
    const result = await compile({ buildId, attempt, requestId: 'r' }, context);
    expect(result?.state).to.equal('succeeded');
    return true;
  };
  const create = async (more: object = {}) => {
    const fields = { name: 'E', path: `/${randomUUID()}`, method: 'GET', domain: '*', code: '// 1' } as const;
    return (await createEndpoint(opened.store, { ...ENDPOINT_DEFAULTS, ...fields, dependencies, ...more }))
      .id;
  };
  const newest = async (id: string) => {
    const { latest_version } = (await findEndpoint(opened.store, id)) ?? expect.fail('gone');
    return (await findVersion(opened.store, id, latest_version ?? 0)) ?? expect.fail('not compiled');
  };
  const lockOfNewest = async (id: string) => {
    const { resolved_lock } = await newest(id);
    return resolved_lock && readLock(opened.store, resolved_lock);
  };

  it('keeps crates until they are updated, all of them or one', async () => {
    const id = await create();
    resolves = FIRST;
    expect(await compiled(id)).to.equal(true);
    expect(built.at(-1)).to.deep.include({ lock: null, isFresh: false });
    expect(await lockOfNewest(id)).to.equal(FIRST);
    // What comes of the same source is known, also for others that have it.
    expect(await compiled(id)).to.equal(false);
    const other = await create();
    expect(await compiled(other)).to.equal(false);
    expect(await lockOfNewest(other)).to.equal(FIRST);

    await updateEndpoint(opened.store, id, { code: '// 2' });
    expect(await compiled(id)).to.equal(true);
    expect(built.at(-1)).to.deep.include({ lock: { text: FIRST, isStrict: false }, isFresh: false });
    expect((await newest(id)).version).to.equal(2);

    resolves = SECOND;
    expect(await compiled(id, true)).to.equal(true);
    expect(built.at(-1)).to.deep.include({ lock: null, isFresh: true });
    expect([(await newest(id)).version, await lockOfNewest(id)]).to.deep.equal([3, SECOND]);
    expect(await compiled(id)).to.equal(false);

    resolves = THIRD;
    expect(await compiled(id, ['rand'])).to.equal(true);
    const { lock, isFresh } = built.at(-1) ?? expect.fail('nothing was built');
    expect(isFresh).to.equal(true);
    expect(cratesInLock(lock?.text ?? '').map(({ name }) => name)).to.deep.equal(['uuid']);
    expect([(await newest(id)).version, await lockOfNewest(id)]).to.deep.equal([4, THIRD]);
    // Nothing newer is no new version, and a source that needs no compile stays one.
    expect(await compiled(id, true)).to.equal(true);
    expect((await newest(id)).version).to.equal(4);
    const row = await findEndpoint(opened.store, id);
    expect(row?.artifact_source_key).to.equal(row?.source_key);
  });

  it('builds a version again with its own lock, and holds crates to the lock of the author', async () => {
    const id = await create({ code: '// again' });
    resolves = FIRST;
    await compiled(id);
    const { resolved_lock } = await newest(id);
    expect(startOfVersion(await newest(id))).to.deep.equal({ lock: resolved_lock, update: null });
    await updateEndpoint(opened.store, id, { lock: await keepLock(opened.store, SECOND) });
    resolves = SECOND;
    expect(await compiled(id)).to.equal(true);
    expect(built.at(-1)).to.deep.include({ lock: { text: SECOND, isStrict: true }, isFresh: false });
    expect(startOfVersion(await newest(id))).to.deep.equal({ lock: null, update: null });
    // Without it, crates stay what the author has locked them to.
    await updateEndpoint(opened.store, id, { lock: null, code: '// more' });
    await compiled(id);
    expect(built.at(-1)).to.deep.include({ lock: { text: SECOND, isStrict: false }, isFresh: false });
  });

  it('begins with no lock where there are no crates, nor where the version is from before', async () => {
    const plain = await create({ code: '// plain', dependencies: null });
    resolves = FIRST;
    await compiled(plain);
    await updateEndpoint(opened.store, plain, {
      code: '// plainer',
      lock: await keepLock(opened.store, SECOND),
    });
    await compiled(plain);
    expect(built.at(-1)).to.deep.include({ lock: null, isFresh: false });
    const old = await create({ code: '// old' });
    resolves = null;
    await compiled(old);
    expect(await lockOfNewest(old)).to.equal(null);
    await updateEndpoint(opened.store, old, { code: '// older' });
    await compiled(old);
    expect(built.at(-1)).to.deep.include({ lock: null, isFresh: false });
  });
});
