/** What the management API works with. Assembled by the process that serves it, or by a test. */
import type { Config } from '../config.js';
import type { Logger } from '../log.js';
import type { SecretBox } from '../secrets.js';
import type { Database } from '../store/database.js';

export interface ApiDependencies {
  readonly store: Database;
  readonly config: Config;
  readonly log: Logger;
  readonly secrets: SecretBox;
}
