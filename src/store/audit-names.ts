/** The names of what entries of the audit have by id: objects, and people. */
import { isObjectId } from '../model/object-name.js';
import type { AuditEntry } from './audit.js';
import type { Store } from './database.js';

/** What an id is of. */
export interface NamedInAudit {
  readonly kind: string;
  readonly name: string;
}

/** What a deployment has serve: `version 2`, or `version 2 (90 %) and version 3 (10 %)`. */
const VERSIONS = `(
  SELECT string_agg(concat('version ', target->>'version',
                           CASE WHEN jsonb_array_length(targets) > 1 THEN concat(' (', target->>'percent', ' %)') END),
                    ' and ')
    FROM jsonb_array_elements(targets) AS target)`;

/** For each kind: the table, and the SQL of the name. Ids are unique among all of them. */
const NAMES: Readonly<Record<string, readonly [table: string, name: string]>> = {
  domain: ['domains', 'host'],
  collection: ['collections', 'name'],
  endpoint: ['endpoints', "concat(method, ' ', nullif(domain, '*'), route)"],
  service: ['services', 'name'],
  user: ['users', 'email'],
  token: ['tokens', 'name'],
  schedule: ['schedules', 'cron'],
  alert: ['alerts', 'condition'],
  import: ['imports', 'title'],
  apply: ['applies', 'stack'],
  deployment: ['deployments', VERSIONS],
};
const NOW = Object.entries(NAMES)
  .map(
    ([kind, [table, name]]) =>
      `SELECT id, '${kind}' AS kind, ${name} AS name FROM ${table} WHERE id = ANY(?::uuid[])`,
  )
  .join(' UNION ALL ');
/** SQL: names of what is deleted: its address where a row has it, else what it was called when it last changed. */
const BEFORE = `
  SELECT DISTINCT ON (object_id) object_id AS id, object_kind AS kind,
         coalesce(CASE WHEN last \\? 'route'
                       THEN concat(last->>'method', ' ', nullif(last->>'domain', '*'), last->>'route') END,
                  last->>'host', last->>'email', last->>'name', last->>'title', last->>'cron') AS name
    FROM (SELECT id, object_id, object_kind, coalesce(before, '{}') || coalesce(after, '{}') AS last
            FROM audit WHERE object_id = ANY(?)) AS changed
   WHERE last \\?| ARRAY['host', 'email', 'name', 'title', 'cron']
   ORDER BY object_id, last \\?| ARRAY['host', 'route'] DESC, id DESC`;

/** Names by id; what never had a name, or none that is still known, is missing. */
export async function namesInAudit(
  { knex }: Store,
  entries: readonly AuditEntry[],
): Promise<ReadonlyMap<string, NamedInAudit>> {
  const ids = [...new Set(entries.flatMap(idsIn))];
  if (ids.length === 0) return new Map();
  const read = async (sql: string, bindings: readonly string[][]) => {
    const { rows } = await knex.raw<{ rows: { id: string; kind: string; name: string | null }[] }>(
      sql,
      bindings,
    );
    return rows.flatMap(({ id, kind, name }) => (name === null ? [] : [[id, { kind, name }] as const]));
  };
  const byId = new Map<string, NamedInAudit>(
    await read(
      NOW,
      Object.keys(NAMES).map(() => ids),
    ),
  );
  const gone = ids.filter((id) => !byId.has(id));
  if (gone.length > 0) for (const [id, named] of await read(BEFORE, [gone])) byId.set(id, named);
  return byId;
}

/** All ids that an entry has. */
export function idsIn({ object_id, actor, before, after }: AuditEntry): readonly string[] {
  const values = [object_id, ...[actor, before, after].flatMap((members) => Object.values(members ?? {}))];
  return values.flat().filter((value): value is string => typeof value === 'string' && isObjectId(value));
}
