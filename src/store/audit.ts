/** The table `audit`: who changed what, and what was refused. Rows are only added, and deleted when they are old. */
import type { StoredActor } from '../model/actor.js';
import { changedPaths, type FileRefs, fileAt, filesAt } from '../model/source-files.js';
import type { Store } from './database.js';
import { type ListOptions, type ListOrder, type Page, readPage } from './pages.js';

/** A row. */
export interface AuditEntry {
  readonly id: number;
  readonly at: Date;
  readonly actor: StoredActor;
  readonly address: string;
  readonly request_id: string;
  readonly method: string;
  /** The route, or the path where there is none. */
  readonly action: string;
  readonly outcome: 'changed' | 'refused';
  readonly status: number;
  readonly object_kind: string | null;
  readonly object_id: string | null;
  readonly before: Readonly<Record<string, unknown>> | null;
  readonly after: Readonly<Record<string, unknown>> | null;
}

export interface AuditFilter {
  readonly actor_id?: string | undefined;
  readonly outcome?: AuditEntry['outcome'] | undefined;
  readonly object_kind?: string | undefined;
  readonly object_id?: string | undefined;
  readonly request_id?: string | undefined;
  readonly address?: string | undefined;
  readonly since?: Date | undefined;
  readonly until?: Date | undefined;
}

const ORDER: ListOrder = {
  key: { column: 'audit.at', type: 'timestamptz' },
  tie: { column: 'audit.id', type: 'bigint' },
  direction: 'desc',
  searched: ['audit.action', 'audit.object_id', 'audit.request_id', 'audit.address'],
};

export async function addToAudit(store: Store, entry: Omit<AuditEntry, 'id' | 'at'>): Promise<void> {
  // Without RETURNING: the user of the database need not be allowed to read what it adds.
  await store.knex('audit').insert({
    ...entry,
    actor: JSON.stringify(entry.actor),
    before: entry.before && JSON.stringify(entry.before),
    after: entry.after && JSON.stringify(entry.after),
  });
  store.announce('audit', 'all');
}

/** Whether rows can be added: the table is there, and the user of the database may do so. */
export async function canWriteAudit({ knex }: Store): Promise<boolean> {
  const { rows } = await knex.raw<{ rows: { can: boolean }[] }>(
    `SELECT has_table_privilege('audit', 'INSERT')
        AND has_sequence_privilege(pg_get_serial_sequence('audit', 'id'), 'USAGE') AS can`,
  );
  return rows[0]?.can === true;
}

/** Entries, the newest first. */
export async function listAudit(
  store: Store,
  { actor_id, since, until, ...equal }: AuditFilter,
  options: ListOptions,
): Promise<Page<AuditEntry>> {
  const given = Object.entries(equal).filter(([, value]) => value !== undefined);
  const query = store.knex('audit').select('audit.*').where(Object.fromEntries(given));
  if (actor_id !== undefined) query.whereRaw("actor->>'id' = ?", [actor_id]);
  if (since) query.where('at', '>=', since);
  if (until) query.where('at', '<', until);
  return readPage(store, query, ORDER, options);
}

/** Deletes what is older than this. */
export async function pruneAudit({ knex }: Store, days: number): Promise<void> {
  await knex('audit').whereRaw("at < clock_timestamp() - ? * interval '1 day'", [days]).delete();
}

/** Tables whose rows the audit compares. */
const TABLES: Readonly<Record<string, string>> = {
  ...{ domain: 'domains', collection: 'collections', endpoint: 'endpoints', service: 'services' },
  ...{ alert: 'alerts', user: 'users', token: 'tokens', schedule: 'schedules' },
};
/** Columns that nobody has set. */
const UNSET = [
  'created_at',
  'updated_at',
  'version',
  'seen_at',
  'last_used_at',
  'build_id',
  'build_actor',
  'hash',
  'key_hash',
  'route_key',
];
/** Columns of which only a digest is compared, and nothing is kept: what is secret, and what is long. */
const HIDDEN = [
  ...['password_hash', 'config_encrypted', 'url_encrypted', 'secret_encrypted'],
  ...['code', 'headers', 'body', 'subject'],
];

/** A row as the audit compares it; undefined when there is none, or it is not compared. */
export async function auditedRow(
  { knex }: Store,
  kind: string,
  id: string,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const table = TABLES[kind];
  if (table === undefined) return undefined;
  const { rows } = await knex.raw<{ rows: { row: Record<string, unknown> }[] }>(
    `SELECT to_jsonb(${table}) - ?::text[] || coalesce((
       SELECT jsonb_object_agg(key, '#' || md5(value::text)) FROM jsonb_each(to_jsonb(${table}))
        WHERE key = ANY(?) AND value <> 'null'), '{}') AS row
       FROM ${table} WHERE id = ?`,
    [UNSET, HIDDEN, id],
  );
  return rows[0]?.row;
}

/** The members that differ, before and after, without what is hidden. */
export function differences(
  before: Readonly<Record<string, unknown>> | undefined,
  after: Readonly<Record<string, unknown>> | undefined,
): Pick<AuditEntry, 'before' | 'after'> {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  const changed = names.filter((name) => JSON.stringify(before?.[name]) !== JSON.stringify(after?.[name]));
  const filesOf = (row: Readonly<Record<string, unknown>> | undefined) =>
    (row?.['files'] ?? null) as FileRefs | null;
  const [old, next] = [filesOf(before), filesOf(after)];
  const changedFiles = changedPaths(old, next);
  // What was there before comes first: new files beside it do not hide it.
  const paths = [
    ...changedFiles.filter((path) => fileAt(old, path)),
    ...changedFiles.filter((path) => !fileAt(old, path)),
  ].slice(0, MAX_PATHS);
  const more = changedFiles.length - paths.length;
  const kept = (name: string, value: unknown) => {
    if (HIDDEN.includes(name)) return '***';
    return name === 'files' ? filesAt(value as FileRefs, paths) : value;
  };
  const pick = (row: Readonly<Record<string, unknown>> | undefined) =>
    row && {
      ...Object.fromEntries(changed.map((name) => [name, row[name] == null ? null : kept(name, row[name])])),
      ...(more > 0 && { more_files: more }),
    };
  return { before: pick(before) ?? null, after: pick(after) ?? null };
}

/** Of files that differ. */
const MAX_PATHS = 100;
