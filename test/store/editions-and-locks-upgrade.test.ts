/** Sources and builds from before there were editions and locks. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import knex from 'knex';
import { ENDPOINT_DEFAULTS } from '../../src/api/endpoints/endpoints.schema.js';
import { buildStart } from '../../src/lifecycle/build-start.js';
import { ONE_FILE } from '../../src/model/source-files.js';
import { buildKey, FROM_SOURCE, sourceKey } from '../../src/model/source-key.js';
import { restoreRows } from '../../src/store/apply-rows.js';
import { findArtifact, saveArtifact } from '../../src/store/artifacts.js';
import { claimBuild, finishBuild } from '../../src/store/build-attempts.js';
import { requestBuild } from '../../src/store/builds.js';
import { knexConfig, migrate, openDatabase } from '../../src/store/database.js';
import { createEndpoint, findEndpoint } from '../../src/store/endpoints.js';
import { dropUnusedSourceFiles } from '../../src/store/source-files.js';
import { addVersions, findVersion } from '../../src/store/versions.js';
import { ORIGIN } from '../support/origin.js';
import { createDatabase } from '../support/postgres.js';
import { saveUndoRows } from '../support/undo-rows.js';

const MIGRATION = '20270105000000_editions_and_locks.js';

describe('the upgrade to editions and locks', () => {
  it('keeps sources, versions, executables and queued builds as they are, with their keys', async () => {
    const database = await createDatabase();
    const old = knex(knexConfig(database.url, 1));
    const store = openDatabase(database.url, () => undefined);
    try {
      const fields = { name: 'E', path: '/x', method: 'GET', domain: '*', code: '// code' } as const;
      const dependencies = { uuid: '1' };
      const endpoint = { ...ENDPOINT_DEFAULTS, ...fields, dependencies };
      const { id, source_key } = await createEndpoint(store, endpoint);
      const source = { sourceKey: source_key, code: fields.code, dependencies, ...ONE_FILE };
      await addVersions(store, [id], { ...source, artifact: 'a', actor: null });
      await saveArtifact(store, { source_key, toolchain: 't', digest: 'a', size: 1, diagnostics: [] });
      const queued = await requestBuild(store, { ...source, endpointId: id, host: '*', origin: ORIGIN });
      await old.migrate.down({ name: MIGRATION });
      const applyId = await saveUndoRows(old, id);
      await migrate(database.url);
      const expectSame = async () => {
        const found = await findEndpoint(store, id);
        expect(found).to.include({ code: fields.code, source_key, ...ONE_FILE });
        expect(found && sourceKey(found)).to.equal(source_key);
        const version = await findVersion(store, id, 1);
        expect(version).to.include({ source_key, resolved_lock: null, ...ONE_FILE });
      };
      await expectSame();
      // What is compiled is what was compiled before, and begins with no lock.
      const start = await buildStart(store, id, source);
      expect(start).to.deep.equal(FROM_SOURCE);
      expect(await findArtifact(store, buildKey(source_key, start), 't')).to.include({ digest: 'a' });
      const claimed = await claimBuild(store, queued, randomUUID());
      expect(claimed).to.include({ source_key, base_lock: null, resolves_anew: false });
      const done = {
        state: 'succeeded',
        artifact: 'b',
        diagnostics: [],
        cached: false,
        timings: {},
      } as const;
      expect(await finishBuild(store, queued, done)).to.equal(true);
      expect(await findVersion(store, id, 1)).to.include({ artifact: 'b', source_key });
      expect(await dropUnusedSourceFiles(store)).to.equal(0);
      await store.knex('endpoints').where({ id }).delete();
      await restoreRows(store, applyId, [id], false);
      await expectSame();
    } finally {
      await store.close();
      await old.destroy();
      await database.drop();
    }
  });
});
