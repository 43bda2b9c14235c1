/**
 * Forgets artifacts that nobody can need any more: those that no endpoint runs, ran or would run, and no build has made
 * that is still kept. As builds are kept for a month, so is at least every artifact.
 */
import type { ArtifactStore, Digest } from '../src/artifacts/artifact-store.js';
import type { Logger } from '../src/log.js';
import { forgetArtifact, unusedArtifacts } from '../src/store/artifacts.js';
import type { Store } from '../src/store/database.js';
import { KEEP_BUILDS_MS } from './recover.js';

export class ArtifactSweep {
  /** What the last look found unused. */
  #unused: ReadonlySet<Digest> = new Set();

  constructor(
    private readonly store: Store,
    private readonly artifacts: ArtifactStore,
    private readonly log: Logger,
    private readonly keepMs = KEEP_BUILDS_MS,
  ) {}

  /**
   * One look. What it finds unused is deleted by the next one, unless it is used by then: a compile may have found it just
   * now, and be about to say so.
   */
  async run(): Promise<void> {
    const unused = await unusedArtifacts(this.store, this.keepMs);
    const unusedTwice = unused.filter((digest) => this.#unused.has(digest));
    this.#unused = new Set(unused);
    let deleted = 0;
    for (const digest of unusedTwice) {
      // Looked at again there: deleting many takes its time.
      if (await forgetArtifact(this.store, digest, this.keepMs, () => this.artifacts.remove(digest)))
        deleted++;
    }
    if (deleted > 0) this.log.info({ artifacts: deleted }, 'artifacts that nothing uses were deleted');
  }
}
