/** The table `artifacts`: which executable came of which source and toolchain. */
import { type Store, transaction } from './database.js';

/** A row. */
export interface Artifact {
  readonly source_key: string;
  readonly toolchain: string;
  /** sha256 of the executable. */
  readonly digest: string;
  /** Bytes. */
  readonly size: number;
  /** Warnings of its build. */
  readonly diagnostics: readonly unknown[];
}

/** What a toolchain has already made of a source. */
export async function findArtifact(
  store: Store,
  sourceKey: string,
  toolchain: string,
): Promise<Artifact | undefined> {
  return store.knex<Artifact>('artifacts').where({ source_key: sourceKey, toolchain }).first();
}

/**
 * Notes, or notes again, what an artifact was made from, so that it is kept for a while. Waits while the same artifact is
 * being forgotten: whether the artifact store still has it is to be asked after this, not before.
 */
export async function saveArtifact(
  store: Store,
  { source_key, toolchain, digest, size, diagnostics }: Artifact,
): Promise<void> {
  await transaction(store, async ({ knex }) => {
    await knex('artifacts').where({ digest }).forKeyShare().select('digest');
    await knex('artifacts')
      .insert({ source_key, toolchain, digest, size, diagnostics: JSON.stringify(diagnostics) })
      .onConflict(['source_key', 'toolchain'])
      .merge(['digest', 'size', 'diagnostics', 'created_at']);
  });
}

const IS_UNUSED = `max(created_at) < clock_timestamp() - ? * interval '1 millisecond'
        AND NOT EXISTS (SELECT FROM builds WHERE builds.artifact = artifacts.digest)
        AND NOT EXISTS (SELECT FROM endpoints
                         WHERE artifacts.digest
                            IN (endpoints.artifact, endpoints.desired_artifact, endpoints.confirmed_artifact))`;

/**
 * The artifacts that were all made longer ago than this, and that no build has made which is still kept, and no endpoint runs,
 * ran or would run.
 */
export async function unusedArtifacts(store: Store, olderThanMs: number): Promise<string[]> {
  const { rows } = await store.knex.raw<{ rows: { digest: string }[] }>(
    `SELECT digest FROM artifacts GROUP BY digest HAVING ${IS_UNUSED}`,
    [olderThanMs],
  );
  return rows.map(({ digest }) => digest);
}

/**
 * Forgets an artifact, if it is still unused. Whoever would use it waits until that is over: it is either kept for them, or
 * gone with its file.
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
    // A statement of its own: it has to see what happened while this one waited for the rows.
    const { rowCount } = await knex.raw<{ rowCount: number }>(
      `DELETE FROM artifacts WHERE digest IN (SELECT digest FROM artifacts WHERE digest = ? GROUP BY digest HAVING ${IS_UNUSED})`,
      [digest, olderThanMs],
    );
    if (rowCount > 0) await remove();
    return rowCount > 0;
  });
}
