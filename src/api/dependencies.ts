/** What the management API works with. Assembled by the process that serves it, or by a test. */
import type { ArtifactStore } from '../artifacts/artifact-store.js';
import type { Config } from '../config.js';
import type { Logger } from '../log.js';
import type { Queues } from '../queues/queues.js';
import type { Changes } from '../reconcile/changes.js';
import type { SecretBox } from '../secrets.js';
import type { Database } from '../store/database.js';

export interface ApiDependencies {
  readonly store: Database;
  readonly config: Config;
  readonly log: Logger;
  readonly secrets: SecretBox;
  readonly queues: Queues;
  /** Announcements of builds and observations. */
  readonly changes: Changes;
  readonly artifacts: ArtifactStore;
  /** Where the processes of this machine offer their metrics. */
  readonly runDir: string;
}
