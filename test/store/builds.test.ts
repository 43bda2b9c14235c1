/** Builds that need no compiler: what is recorded of them. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { ENDPOINT_DEFAULTS } from '../../src/api/endpoints/endpoints.schema.js';
import { ONE_FILE } from '../../src/model/source-files.js';
import { type Artifact, findArtifact, saveArtifact } from '../../src/store/artifacts.js';
import { findBuild, recordCachedBuild } from '../../src/store/builds.js';
import type { Database } from '../../src/store/database.js';
import { createEndpoint } from '../../src/store/endpoints.js';
import { listBuilds } from '../../src/store/listed-builds.js';
import { listVersions } from '../../src/store/versions.js';
import { ORIGIN } from '../support/origin.js';
import { useTestStore } from '../support/store.js';

const TOOLCHAIN = 'toolchain';

describe('builds of code that was compiled before', () => {
  let store: Database;
  useTestStore((opened) => {
    store = opened;
  });

  const endpoint = async (): Promise<string> => {
    const fields = { name: 'E', path: `/${randomUUID()}`, method: 'GET', domain: '*' } as const;
    return (await createEndpoint(store, { ...ENDPOINT_DEFAULTS, ...fields })).id;
  };
  const compiled = async (): Promise<Artifact> => {
    const source_key = randomUUID();
    const made = { source_key, toolchain: TOOLCHAIN, digest: randomUUID(), size: 1, diagnostics: [] };
    await saveArtifact(store, made);
    return (await findArtifact(store, source_key, TOOLCHAIN)) ?? expect.fail('not saved');
  };
  const compile = async (endpointId: string | null, known: Artifact, requestId = 'r'): Promise<string> => {
    const source = {
      sourceKey: known.source_key,
      code: `code of ${known.source_key}`,
      dependencies: {},
      ...ONE_FILE,
    };
    const origin = { ...ORIGIN, requestId };
    const build = await recordCachedBuild(store, { ...source, endpointId, host: '*', origin }, known);
    return build ?? expect.fail('not recorded');
  };
  const newest = async () => (await listBuilds(store, {}, { limit: 100 })).rows.map(({ id }) => id);
  const count = async () => Number((await store.knex('builds').count())[0]?.['count']);

  it('adds no rows when an endpoint is compiled again and again between sources that are known', async () => {
    const [id, one, other] = [await endpoint(), await compiled(), await compiled()];
    const first = [await compile(id, one), await compile(id, other)];
    const before = await count();
    for (let round = 0; round < 20; round++) for (const known of [one, other]) await compile(id, known);
    expect(await count()).to.equal(before);
    expect((await newest()).slice(0, 2)).to.deep.equal(first.toReversed());
    await compile(id, one, 'the last request');
    expect((await newest()).slice(0, 2)).to.deep.equal(first);
    const [last = ''] = first;
    expect(await findBuild(store, last)).to.include({ request_id: 'the last request', cached: true });
    const row = await store.knex('endpoints').where({ id }).first();
    expect(row).to.include({ build_id: last, artifact: one.digest, status: 'compiled' });
  });

  it('records builds of the same known source for each endpoint by itself', async () => {
    const [one, other, known] = [await endpoint(), await endpoint(), await compiled()];
    const first = await compile(one, known);
    const more = await compiled();
    await compile(one, more);
    expect(await compile(other, known)).not.to.equal(first);
    // What the other one asks for changes nothing of the first.
    expect(await store.knex('endpoints').where({ id: one }).first()).to.include({ artifact: more.digest });
    const versions = async (id: string) =>
      (await listVersions(store, id)).rows.map(({ artifact }) => artifact);
    expect(await versions(one)).to.deep.equal([more.digest, known.digest]);
    expect(await versions(other)).to.deep.equal([known.digest]);
  });

  it('adds no rows when known sources are built for no endpoint', async () => {
    const known = await compiled();
    const first = await compile(null, known);
    expect(await compile(null, known)).to.equal(first);
  });
});
