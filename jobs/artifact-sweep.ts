/**
 * Deletes unused artifacts: those that no endpoint runs, ran or would run, and that no stored build produced. Builds
 * are kept for a month, and so are artifacts.
 */
import type { ArtifactStore, Digest } from '../src/artifacts/artifact-store.js';
import { forgetArtifact, unusedArtifacts } from '../src/store/artifacts.js';
import type { Store } from '../src/store/database.js';
import type { Logger } from '../src/util/log.js';
import { KEEP_BUILDS_MS } from './recover-builds.js';

export class ArtifactSweep {
  readonly #store: Store;
  readonly #artifacts: ArtifactStore;
  readonly #log: Logger;
  readonly #keepMs: number;
  /** Artifacts that were unused in the last run. */
  #unused: ReadonlySet<Digest> = new Set();

  constructor(store: Store, artifacts: ArtifactStore, log: Logger, keepMs = KEEP_BUILDS_MS) {
    this.#store = store;
    this.#artifacts = artifacts;
    this.#log = log;
    this.#keepMs = keepMs;
  }

  /**
   * Deletes artifacts that were unused in the last run and still are. The delay protects an artifact that a compile has
   * just found but not yet recorded.
   */
  async run(): Promise<void> {
    const unused = await unusedArtifacts(this.#store, this.#keepMs);
    const unusedTwice = unused.filter((digest) => this.#unused.has(digest));
    this.#unused = new Set(unused);
    let deleted = 0;
    for (const digest of unusedTwice) {
      // Checked again there: deleting many takes time.
      if (await forgetArtifact(this.#store, digest, this.#keepMs, () => this.#artifacts.remove(digest)))
        deleted++;
    }
    if (deleted > 0) this.#log.info({ artifacts: deleted }, 'artifacts that nothing uses were deleted');
  }
}
