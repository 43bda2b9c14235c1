/** The table `artifacts`: which executable came of which source and toolchain. */
import type { Store } from './database.js';

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

export async function saveArtifact(store: Store, artifact: Artifact): Promise<void> {
  await store
    .knex('artifacts')
    .insert({ ...artifact, diagnostics: JSON.stringify(artifact.diagnostics) })
    .onConflict(['source_key', 'toolchain'])
    .merge(['digest', 'size', 'diagnostics']);
}

/**
 * The artifacts that were all made longer ago than this, and that no build has made which is still kept, and no endpoint runs,
 * ran or would run.
 */
export async function unusedArtifacts(store: Store, olderThanMs: number): Promise<string[]> {
  const { rows } = await store.knex.raw<{ rows: { digest: string }[] }>(
    `SELECT digest FROM artifacts GROUP BY digest
     HAVING max(created_at) < clock_timestamp() - ? * interval '1 millisecond'
        AND NOT EXISTS (SELECT FROM builds WHERE builds.artifact = artifacts.digest)
        AND NOT EXISTS (SELECT FROM endpoints
                         WHERE artifacts.digest
                            IN (endpoints.artifact, endpoints.desired_artifact, endpoints.confirmed_artifact))`,
    [olderThanMs],
  );
  return rows.map(({ digest }) => digest);
}

/** Forgets what an artifact was made from: it is not in the artifact store any more. */
export async function forgetArtifact(store: Store, digest: string): Promise<void> {
  await store.knex('artifacts').where({ digest }).delete();
}
