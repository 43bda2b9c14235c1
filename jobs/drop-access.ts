/** Deletes old entries of the audit, sessions that are over, counts of failed logins, and credentials nobody uses. */
import type { Config } from '../src/config.js';
import { pruneAudit } from '../src/store/audit.js';
import type { Store } from '../src/store/database.js';
import { forgetKnownCredentials } from '../src/store/known-credentials.js';
import { pruneSessions } from '../src/store/sessions.js';

/** One run. */
export async function dropAccess(
  store: Store,
  config: Pick<Config, 'AUDIT_RETENTION_DAYS' | 'SESSION_IDLE_MINUTES' | 'SESSION_MAX_HOURS'>,
): Promise<void> {
  await pruneSessions(store, {
    idleMinutes: config.SESSION_IDLE_MINUTES,
    maxHours: config.SESSION_MAX_HOURS,
  });
  await forgetKnownCredentials(store);
  await pruneAudit(store, config.AUDIT_RETENTION_DAYS);
}
