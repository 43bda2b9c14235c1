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
