/** Documents of imports that were stored as text are compressed by the upgrade, and come back as they were. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { migrate } from '../../src/store/database.js';
import { documentsOf } from '../../src/store/imported-documents.js';
import { openTestStore } from '../support/store.js';

const MIGRATION = '20261217000000_compressed_documents.js';

describe('the upgrade to compressed documents', () => {
  it('keeps each imported document as it was in the upgrade to compressed ones, and in its undoing', async () => {
    const opened = await openTestStore();
    try {
      const { store, databaseUrl } = opened;
      await store.knex.migrate.down({ name: MIGRATION });
      const contents = ['{"openapi":"3.0.0","x":"é \\u0000 😀"}', '{}'];
      const rows = contents.map((content) => ({ id: randomUUID(), domain: '*', sha256: content, content }));
      await store.knex('imported_documents').insert(rows);

      await migrate(databaseUrl);
      const upgraded = await documentsOf(
        store,
        rows.map(({ id }) => id),
      );
      for (const { id, content } of rows) expect(upgraded.get(id)).to.equal(content);

      await store.knex.migrate.down({ name: MIGRATION });
      expect(await store.knex('imported_documents').pluck('content')).to.have.members(contents);
      await migrate(databaseUrl);
    } finally {
      await opened.close();
    }
  });
});
