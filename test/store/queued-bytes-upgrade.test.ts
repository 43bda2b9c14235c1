/** Queued requests and schedules from before their bytes were recorded: also those that come back with an apply. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import knex from 'knex';
import { ENDPOINT_DEFAULTS } from '../../src/api/endpoints/endpoints.schema.js';
import { nextRun } from '../../src/queues/cron.js';
import { restoreRows } from '../../src/store/apply-rows.js';
import { knexConfig, migrate, openDatabase } from '../../src/store/database.js';
import { createEndpoint } from '../../src/store/endpoints.js';
import { insertJob } from '../../src/store/jobs.js';
import { insertSchedule } from '../../src/store/schedules.js';
import { createDatabase } from '../support/postgres.js';

const MIGRATION = '20261230000000_queued_bytes.js';

describe('the upgrade to recorded bytes of queued requests', () => {
  it('counts schedules of the version before, and no queued requests, and puts both back with an apply', async () => {
    const database = await createDatabase();
    const old = knex(knexConfig(database.url, 1));
    const store = openDatabase(database.url, () => undefined);
    try {
      const endpoint = { name: 'E', path: '/x', method: 'PUT', domain: '*' } as const;
      const { id } = await createEndpoint(store, { ...ENDPOINT_DEFAULTS, ...endpoint });
      const request = { method: 'PUT', path: '/x', headers: { a: 'b' }, body: Buffer.from('body') };
      const settings = { cron: '0 0 1 1 *', timezone: 'UTC', enabled: true, request };
      await insertSchedule(store, id, settings, nextRun, { schedules: 10, bytes: 2 ** 30 });
      const [{ queued_bytes: bytes } = { queued_bytes: 0 }] = await store
        .knex('schedules')
        .select('queued_bytes');
      const job = {
        endpointId: id,
        request,
        maxAttempts: 1,
        backoffMs: 0,
        delayMs: 0,
        deduplicationId: null,
      };
      await insertJob(store, { ...job, requestId: 'r', principal: null }, { jobs: 10, bytes: 2 ** 30 });
      expect(await store.knex('jobs').pluck('queued_bytes')).to.deep.equal([bytes]);
      await old.migrate.down({ name: MIGRATION });
      const applyId = randomUUID();
      await old('applies').insert({
        ...{ id: applyId, stack: 's', plan_hash: 'h', request_id: 'r' },
        ...{ plan: '{}', changes: '[]', hosts: [] },
      });
      for (const [position, table] of ['endpoints', 'schedules', 'jobs'].entries())
        await old.raw(
          `INSERT INTO apply_undo (apply_id, position, table_name, object_id, row)
           SELECT ?, ?, ?, ?, to_jsonb(saved) FROM ?? AS saved`,
          [applyId, position, table, id, table],
        );
      await migrate(database.url);
      // As PostgreSQL writes the headers, with a space.
      const [upgraded] = await store.knex('schedules').pluck<number[]>('queued_bytes');
      expect(upgraded).to.be.within(bytes, bytes + 1);
      expect(await store.knex('jobs').pluck('queued_bytes')).to.deep.equal([0]);
      await store.knex('endpoints').where({ id }).delete();
      await restoreRows(store, applyId, [id], false);
      for (const table of ['schedules', 'jobs'])
        expect(await store.knex(table).pluck('queued_bytes'), table).to.deep.equal([0]);
    } finally {
      await old.destroy();
      await store.close();
      await database.drop();
    }
  });
});
