/** Sources from before there were files beside the code: also those that come back with an apply. */
import { expect } from 'chai';
import knex from 'knex';
import { ENDPOINT_DEFAULTS } from '../../src/api/endpoints/endpoints.schema.js';
import { ONE_FILE } from '../../src/model/source-files.js';
import { sourceKey } from '../../src/model/source-key.js';
import { restoreRows } from '../../src/store/apply-rows.js';
import { knexConfig, migrate, openDatabase } from '../../src/store/database.js';
import { createEndpoint, findEndpoint } from '../../src/store/endpoints.js';
import { dropUnusedSourceFiles } from '../../src/store/source-files.js';
import { addVersions, findVersion } from '../../src/store/versions.js';
import { createDatabase } from '../support/postgres.js';
import { saveUndoRows } from '../support/undo-rows.js';

const MIGRATION = '20270104000000_source_files.js';

describe('the upgrade to sources of several files', () => {
  it('keeps endpoints and versions of one file as they are, with the keys of their sources', async () => {
    const database = await createDatabase();
    const old = knex(knexConfig(database.url, 1));
    const store = openDatabase(database.url, () => undefined);
    try {
      const fields = { name: 'E', path: '/x', method: 'GET', domain: '*', code: '// code' } as const;
      const { id, source_key } = await createEndpoint(store, { ...ENDPOINT_DEFAULTS, ...fields });
      const source = { sourceKey: source_key, code: fields.code, dependencies: {}, ...ONE_FILE };
      await addVersions(store, [id], { ...source, artifact: 'a', actor: null });
      await old.migrate.down({ name: MIGRATION });
      const applyId = await saveUndoRows(old, id);
      await migrate(database.url);
      const expectSame = async () => {
        const endpoint = await findEndpoint(store, id);
        expect(endpoint).to.include({ code: fields.code, source_key, ...ONE_FILE });
        expect(endpoint && sourceKey(endpoint)).to.equal(source_key);
        expect(await findVersion(store, id, 1)).to.include({ code: fields.code, source_key, ...ONE_FILE });
      };
      await expectSame();
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
