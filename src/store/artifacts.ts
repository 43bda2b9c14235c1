/** The table `artifacts`: the executable for each source and toolchain, and the libraries of sets of crates. */
import type { Diagnostic } from '../model/diagnostic.js';
import type { FileRef } from '../model/source-files.js';
import { type Store, transaction } from './database.js';
import { PINNED_ARTIFACTS } from './versions.js';

/** A row. */
export interface Artifact {
  /** Of the build (`buildKey`). */
  readonly source_key: string;
  readonly toolchain: string;
  /** sha256 of the executable. */
  readonly digest: string;
  /** Bytes. */
  readonly size: number;
  /** Warnings of its build. */
  readonly diagnostics: readonly Diagnostic[];
  /** The lock that its crates were resolved to; left out or null: not known. */
  readonly resolved_lock?: FileRef | null;
}

/** The artifact that a toolchain made for the key of a build, if it is known. */
export async function findArtifact(
  store: Store,
  sourceKey: string,
  toolchain: string,
): Promise<Artifact | undefined> {
  return store.knex<Artifact>('artifacts').where({ source_key: sourceKey, toolchain }).first();
}

/**
 * Records the source of an artifact, or renews the record, so that it is kept for a while. Waits while the same
 * artifact is being deleted: check the artifact store after this call, not before.
 */
export async function saveArtifact(
  store: Store,
  { source_key, toolchain, digest, size, diagnostics, resolved_lock }: Artifact,
): Promise<void> {
  await store.knex.raw(
    `WITH same AS (SELECT digest FROM artifacts WHERE digest = ? FOR KEY SHARE)
     INSERT INTO artifacts (source_key, toolchain, digest, size, diagnostics, resolved_lock)
     -- A query that is not used would not be carried out, and not wait.
     SELECT ?, ?, ?, ?, ?::jsonb, ?::jsonb FROM (SELECT count(*) FROM same) AS waited
     ON CONFLICT (source_key, toolchain) DO UPDATE SET
       digest = excluded.digest, size = excluded.size, diagnostics = excluded.diagnostics,
       resolved_lock = excluded.resolved_lock, created_at = excluded.created_at`,
    [
      ...[digest, source_key, toolchain, digest, size, JSON.stringify(diagnostics)],
      resolved_lock ? JSON.stringify(resolved_lock) : null,
    ] as never[],
  );
}

const IS_UNUSED = `max(created_at) < clock_timestamp() - ? * interval '1 millisecond'
        AND NOT EXISTS (SELECT FROM builds WHERE builds.artifact = artifacts.digest)
        AND artifacts.digest NOT IN (${PINNED_ARTIFACTS})`;

/**
 * Artifacts that were last recorded longer ago than this, that no stored build produced, and that no endpoint runs or
 * may soon run again.
 */
export async function unusedArtifacts(store: Store, olderThanMs: number): Promise<string[]> {
  const { rows } = await store.knex.raw<{ rows: { digest: string }[] }>(
    `SELECT digest FROM artifacts GROUP BY digest HAVING ${IS_UNUSED}`,
    [olderThanMs],
  );
  return rows.map(({ digest }) => digest);
}

/**
 * Deletes an artifact if it is still unused. Concurrent users of it wait: then it is either kept for them, or deleted
 * together with its file.
 * @param remove deletes the file
 * @returns whether it was unused
 */
export async function forgetArtifact(
  store: Store,
  digest: string,
  olderThanMs: number,
  remove: () => Promise<void>,
): Promise<boolean> {
  return transaction(store, async ({ knex }) => {
    await knex('artifacts')
      .where({ digest })
      .orderBy(['source_key', 'toolchain'])
      .forUpdate()
      .select('digest');
    // A separate statement, whose snapshot includes changes made while the first one waited for row locks.
    const { rowCount } = await knex.raw<{ rowCount: number }>(
      `DELETE FROM artifacts WHERE digest IN (SELECT digest FROM artifacts WHERE digest = ? GROUP BY digest HAVING ${IS_UNUSED})`,
      [digest, olderThanMs],
    );
    if (rowCount > 0) await remove();
    return rowCount > 0;
  });
}
