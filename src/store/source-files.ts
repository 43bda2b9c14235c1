/**
 * The table `source_files`: contents of the files of sources, and of locks, each once. Who has a source has paths and
 * digests.
 */
import type { Scope } from '../model/permission.js';
import { type FileRef, type FileRefs, fileRef } from '../model/source-files.js';
import { type Store, transaction } from './database.js';
import { visible } from './visibility.js';

/** Longer than a request or an apply waits between storing a file and storing who has it. */
const UNUSED_KEPT = '1 hour';

/**
 * Stores contents, each once. Not within the transaction that stores who has them: two that store the same files would
 * wait for each other.
 */
export async function keepSourceFiles(
  store: Store,
  contents: ReadonlyMap<string, Uint8Array>,
): Promise<void> {
  if (contents.size === 0) return;
  const digests = [...contents.keys()];
  await store.knex.raw(
    `UPDATE source_files SET unused_since = clock_timestamp()
       FROM (SELECT digest FROM source_files WHERE digest = ANY(?) AND unused_since IS NOT NULL
              ORDER BY digest FOR UPDATE) AS unused
      WHERE source_files.digest = unused.digest`,
    [digests],
  );
  const known = new Set(
    await store.knex('source_files').whereIn('digest', digests).pluck<string[]>('digest'),
  );
  // In order, so that two that store the same files do not wait for each other.
  const added = digests.filter((digest) => !known.has(digest)).sort();
  if (added.length === 0) return;
  await transaction(store, async ({ knex }) => {
    for (const digest of added) {
      const { buffer, byteOffset, byteLength } = contents.get(digest) as Uint8Array;
      await knex.raw(
        `INSERT INTO source_files (digest, content, unused_since) VALUES (?, ?, clock_timestamp())
         ON CONFLICT (digest) DO NOTHING`,
        [digest, Buffer.from(buffer, byteOffset, byteLength)],
      );
    }
  });
}

/**
 * The contents of files, by their paths.
 * @param known contents by their digests, which are not read again; those that are read are added
 */
export async function readSourceFiles(
  { knex }: Store,
  files: FileRefs | null,
  known = new Map<string, Buffer>(),
): Promise<Map<string, Buffer>> {
  const entries = Object.entries(files ?? {});
  const digests = new Set(entries.map(([, { digest }]) => digest).filter((digest) => !known.has(digest)));
  if (digests.size > 0) {
    const rows = await knex('source_files')
      .whereIn('digest', [...digests])
      .select<{ digest: string; content: Buffer }[]>('digest', 'content');
    for (const { digest, content } of rows) known.set(digest, content);
  }
  return new Map(
    entries.map(([path, { digest }]) => {
      const content = known.get(digest);
      if (!content) throw new Error(`the file ${path} (${digest}) of a source is not stored`);
      return [path, content];
    }),
  );
}

/** The text of a lock. */
export async function readLock(store: Store, lock: FileRef): Promise<string> {
  const name = 'Cargo.lock';
  return String((await readSourceFiles(store, { [name]: lock })).get(name));
}

/** Stores the text of a lock, as files of sources are. */
export async function keepLock(store: Store, text: string): Promise<FileRef> {
  const contents = new Map<string, Uint8Array>();
  const lock = fileRef(Buffer.from(text), contents);
  await keepSourceFiles(store, contents);
  return lock;
}

/** A file of an endpoint, without its content. */
export interface ListedFile extends FileRef {
  readonly path: string;
  /** How many other endpoints have the same file at this path, as far as somebody may see them. */
  readonly shared_with: number;
}

/** The files of an endpoint beside its code, in the order of their paths. */
export async function listSourceFiles(
  { knex }: Store,
  endpointId: string,
  scope: Scope,
): Promise<ListedFile[]> {
  const others = visible(
    knex('endpoints')
      .joinRaw('CROSS JOIN jsonb_each(files) AS file')
      .whereNot('endpoints.id', endpointId)
      .groupByRaw('1, 2')
      .select(
        knex.raw("file.key AS path, file.value->>'digest' AS digest, count(*)::integer AS shared_with"),
      ),
    'endpoint',
    scope,
  );
  const { rows } = await knex.raw<{ rows: ListedFile[] }>(
    `SELECT own.key AS path, own.value->>'digest' AS digest, (own.value->>'size')::float8 AS size,
            coalesce(others.shared_with, 0) AS shared_with
       FROM endpoints CROSS JOIN jsonb_each(files) AS own
       LEFT JOIN (?) AS others ON others.path = own.key AND others.digest = own.value->>'digest'
      WHERE endpoints.id = ?`,
    [others as never, endpointId],
  );
  return rows.sort((left, right) => (left.path < right.path ? -1 : 1));
}

/** Columns with locks, by their tables. */
const LOCKS = {
  endpoints: ['lock'],
  endpoint_versions: ['lock', 'resolved_lock'],
  builds: ['lock', 'base_lock', 'resolved_lock'],
  artifacts: ['resolved_lock'],
} as const;

/** SQL: digests of the files and locks of all sources, also of those that a rollback brings back. */
const USED = [
  ...['endpoints', 'endpoint_versions', 'builds'].map(
    (table) => `SELECT file.value->>'digest' AS digest FROM ${table}, jsonb_each(files) AS file`,
  ),
  ...Object.entries(LOCKS).flatMap(([table, columns]) =>
    columns.map((column) => `SELECT ${column}->>'digest' FROM ${table}`),
  ),
  ...(['lock', 'resolved_lock'] as const).map(
    (column) => `SELECT row->'${column}'->>'digest' FROM apply_undo
    WHERE table_name IN ('endpoints', 'endpoint_versions')`,
  ),
  `SELECT file.value->>'digest' FROM apply_undo, jsonb_each(nullif(row->'files', 'null')) AS file
    WHERE table_name IN ('endpoints', 'endpoint_versions')`,
  ...['files.*', 'lock'].map(
    (member) => `SELECT jsonb_path_query(changes, '$[*].*.${member}.digest') #>> '{}' FROM applies`,
  ),
].join('\n   UNION ALL\n');

/** What becomes of contents: some are used again, some no more, and some have not been used for long. */
const FATES = {
  found: { condition: 'unused_since IS NOT NULL', change: 'UPDATE source_files SET unused_since = NULL' },
  lost: {
    condition: 'unused_since IS NULL',
    change: 'UPDATE source_files SET unused_since = clock_timestamp()',
  },
  gone: {
    condition: `unused_since < clock_timestamp() - interval '${UNUSED_KEPT}'`,
    change: 'DELETE FROM source_files',
  },
} as const;

/** So many are changed at once: those who store files wait no longer for that. */
const CHUNK = 200;

/** Deletes contents that no source has had for a while. @returns how many */
export async function dropUnusedSourceFiles({ knex }: Store): Promise<number> {
  const { rows } = await knex.raw<{ rows: { digest: string; fate: keyof typeof FATES }[] }>(
    `SELECT digest, CASE WHEN used.digest IS NOT NULL THEN 'found' WHEN ${FATES.lost.condition} THEN 'lost' ELSE 'gone' END
              AS fate
       FROM source_files LEFT JOIN (SELECT DISTINCT digest FROM (${USED}) AS every) AS used USING (digest)
      WHERE (used.digest IS NOT NULL AND ${FATES.found.condition})
         OR (used.digest IS NULL AND (${FATES.lost.condition} OR ${FATES.gone.condition}))`,
  );
  let deleted = 0;
  for (const [fate, { condition, change }] of Object.entries(FATES)) {
    const digests = rows.filter((row) => row.fate === fate).map(({ digest }) => digest);
    for (let at = 0; at < digests.length; at += CHUNK) {
      // One that somebody stores again just now is left to the next time.
      const { rowCount } = await knex.raw<{ rowCount: number }>(
        `${change} WHERE digest IN (
           SELECT digest FROM source_files WHERE digest = ANY(?) AND ${condition}
            ORDER BY digest FOR UPDATE SKIP LOCKED)`,
        [digests.slice(at, at + CHUNK)],
      );
      if (fate === 'gone') deleted += rowCount;
    }
  }
  return deleted;
}
