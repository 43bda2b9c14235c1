/** The dependencies of compiling and starting endpoints, in the management API and in jobs. */
import type { ArtifactStore } from '../artifacts/artifact-store.js';
import type { Config } from '../config.js';
import type { Changes } from '../reconcile/changes.js';
import type { Store } from '../store/database.js';

export interface LifecycleDependencies {
  readonly store: Store;
  /** Announcements of builds and observations. */
  readonly changes: Changes;
  readonly artifacts: ArtifactStore;
  readonly config: Pick<Config, 'CARGO_SOURCES' | 'START_TIMEOUT_MS' | 'REQUEST_TIMEOUT_MS'>;
}
