/** The table `source_files`: contents of the files of sources, each once. Who has a source has paths and digests. */
import type { Scope } from '../model/permission.js';
import type { FileRef, FileRefs } from '../model/source-files.js';
import type { Store } from './database.js';
import { visible } from './visibility.js';

/** Longer than a request or an apply waits between storing a file and storing who has it. */
const UNUSED_KEPT = '1 day';

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
  for (const [digest, content] of contents)
    if (!known.has(digest))
      await store.knex.raw(
        `INSERT INTO source_files (digest, content, unused_since) VALUES (?, ?, clock_timestamp())
         ON CONFLICT (digest) DO NOTHING`,
        [digest, Buffer.from(content.buffer, content.byteOffset, content.byteLength)],
      );
}

/** The contents of files, by their paths. */
export async function readSourceFiles({ knex }: Store, files: FileRefs | null): Promise<Map<string, Buffer>> {
  if (files === null) return new Map();
  const digests = [...new Set(Object.values(files).map(({ digest }) => digest))];
  const rows = await knex('source_files')
    .whereIn('digest', digests)
    .select<{ digest: string; content: Buffer }[]>('digest', 'content');
  const contents = new Map(rows.map(({ digest, content }) => [digest, content]));
  return new Map(
    Object.entries(files).map(([path, { digest }]) => {
      const content = contents.get(digest);
      if (!content) throw new Error(`the file ${path} (${digest}) of a source is not stored`);
      return [path, content];
    }),
  );
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
  const query = knex
    .from(
      knex.raw(
        `(SELECT key AS path, value->>'digest' AS digest, (value->>'size')::float8 AS size
            FROM endpoints, jsonb_each(files) WHERE id = ?) AS own`,
        [endpointId],
      ) as never,
    )
    .select<ListedFile[]>('own.*', {
      shared_with: visible(
        knex('endpoints')
          .whereNot({ id: endpointId })
          .whereRaw("files->own.path->>'digest' = own.digest")
          .select(knex.raw('count(*)::integer')),
        'endpoint',
        scope,
      ) as never,
    });
  return (await query).sort((left, right) => (left.path < right.path ? -1 : 1));
}

/** SQL: digests of the files of all sources, also of those that a rollback brings back. */
const USED = [
  ...['endpoints', 'endpoint_versions', 'builds'].map(
    (table) => `SELECT file.value->>'digest' AS digest FROM ${table}, jsonb_each(files) AS file`,
  ),
  `SELECT file.value->>'digest' FROM apply_undo, jsonb_each(nullif(row->'files', 'null')) AS file
    WHERE table_name IN ('endpoints', 'endpoint_versions')`,
  `SELECT jsonb_path_query(changes, '$[*].*.files.*.digest') #>> '{}' FROM applies`,
].join('\n   UNION ALL\n');

/** Deletes contents that no source has had for a day. @returns how many */
export async function dropUnusedSourceFiles({ knex }: Store): Promise<number> {
  const { rowCount } = await knex.raw<{ rowCount: number }>(
    `WITH used AS MATERIALIZED (${USED}),
     found AS (
       UPDATE source_files SET unused_since = NULL
        WHERE unused_since IS NOT NULL AND digest IN (SELECT digest FROM used)),
     lost AS (
       UPDATE source_files SET unused_since = clock_timestamp()
        WHERE unused_since IS NULL AND digest NOT IN (SELECT digest FROM used))
     DELETE FROM source_files
      WHERE unused_since < clock_timestamp() - interval '${UNUSED_KEPT}' AND digest NOT IN (SELECT digest FROM used)`,
  );
  return rowCount;
}
