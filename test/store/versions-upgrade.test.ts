/** An installation that runs handlers, from before there were versions, is upgraded. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { Database } from '../../src/store/database.js';
import { routedEndpoints } from '../../src/store/endpoint-runs.js';
import { findEndpoint } from '../../src/store/endpoints.js';
import type { EndpointVersion } from '../../src/store/versions.js';
import { keyOf } from '../support/one-file.js';
import { useTestStore } from '../support/store.js';

const MIGRATION = '20261123000000_versions.js';

describe('the upgrade to versions', () => {
  let store: Database;
  useTestStore((opened) => {
    store = opened;
  });

  let count = 0;
  const insert = async (columns: object) => {
    const path = `/u${++count}`;
    const [row] = await store
      .knex('endpoints')
      .insert({
        ...{ name: path, path, method: 'GET', domain: '*', route: path, route_key: path },
        source_key: keyOf(null, null),
        ...columns,
      })
      .returning<{ id: string }[]>('id');
    return row?.id ?? expect.fail('no row');
  };
  const build = (code: string, artifact: string) =>
    store.knex('builds').insert({
      ...{ source_key: keyOf(code, null), code, dependencies: '{}', state: 'succeeded' },
      ...{ request_id: 'r', artifact, finished_at: new Date() },
    });
  const deployed = async (id: string) => {
    const [row] = await routedEndpoints(store, [id]);
    return row?.deployment?.targets;
  };
  const versions = async (id: string) =>
    (
      await store
        .knex<EndpointVersion>('endpoint_versions')
        .where({ endpoint_id: id })
        .orderBy('version', 'desc')
    ).map(({ version, code, artifact }) => [version, code, artifact]);

  it('upgrades running handlers to version 1, and those compiled since to the next, back and forth', async () => {
    await store.knex.migrate.down({ name: MIGRATION });
    const running = await insert({
      ...{ code: 'same', source_key: keyOf('same', null), status: 'running' },
      ...{ artifact: 'a', artifact_source_key: keyOf('same', null) },
      ...{ desired_artifact: 'a', confirmed_artifact: 'a', desired_by: 'request-1' },
    });
    await build('old', 'b');
    await build('new', 'c');
    const compiledSince = await insert({
      ...{ code: 'draft', source_key: keyOf('draft', null), status: 'compiled' },
      ...{ artifact: 'c', artifact_source_key: keyOf('new', null) },
      ...{ desired_artifact: 'b', confirmed_artifact: 'b' },
    });
    const compiled = await insert({
      ...{ code: 'draft', source_key: keyOf('draft', null), status: 'stopped' },
      ...{ artifact: 'z', artifact_source_key: 'of a build that was deleted' },
    });
    const defined = await insert({ code: 'x', source_key: keyOf('x', null) });
    const node = randomUUID();
    await store.knex('nodes').insert({ id: node, kind: 'gateway', hostname: 'h', pid: 1 });
    await store
      .knex('observations')
      .insert({ node_id: node, endpoint_id: running, state: 'running', artifact: 'a', version: 1, pid: 42 });

    for (let round = 0; round < 2; round++) {
      await store.knex.migrate.latest();
      expect(await versions(running)).to.deep.equal([[1, 'same', 'a']]);
      expect(await deployed(running)).to.deep.equal([{ version: 1, percent: 100, artifact: 'a' }]);
      expect(await findEndpoint(store, running)).to.deep.include({
        ...{ status: 'running', latest_version: 1 },
        serving: [[{ version: 1, pid: 42 }]],
      });
      expect(await versions(compiledSince)).to.deep.equal([
        [2, 'new', 'c'],
        [1, 'old', 'b'],
      ]);
      expect(await deployed(compiledSince)).to.deep.equal([{ version: 1, percent: 100, artifact: 'b' }]);
      expect(await findEndpoint(store, compiledSince)).to.include({ latest_version: 2, artifact: 'c' });
      expect(await versions(compiled)).to.deep.equal([
        [1, '// The source of this version is not known any more.', 'z'],
      ]);
      expect(await deployed(compiled)).to.equal(undefined);
      expect(await versions(defined)).to.deep.equal([]);
      expect(await findEndpoint(store, defined)).to.include({ latest_version: null });
      if (round === 0) await store.knex.migrate.down({ name: MIGRATION });
    }
  });
});
