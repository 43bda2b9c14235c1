/** Rows of an endpoint and its versions as an apply has saved them for a rollback, in the schema of that time. */
import { randomUUID } from 'node:crypto';
import type { Knex } from 'knex';

/** @returns the id of the apply */
export async function saveUndoRows(knex: Knex, endpointId: string): Promise<string> {
  const id = randomUUID();
  await knex('applies').insert({
    ...{ id, stack: 's', plan_hash: 'h', request_id: 'r' },
    ...{ plan: '{}', changes: '[{"before": null, "after": {"kind": "endpoint"}}]', hosts: [] },
  });
  for (const [position, table] of ['endpoints', 'endpoint_versions'].entries())
    await knex.raw(
      `INSERT INTO apply_undo (apply_id, position, table_name, object_id, row)
       SELECT ?, ?, ?, ?, to_jsonb(saved) FROM ?? AS saved`,
      [id, position, table, endpointId, table],
    );
  return id;
}
