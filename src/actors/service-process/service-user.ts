/** Whom the process of a service runs as where root has started the actor host. */
import type { ServiceType } from '../../model/service-configs.js';
import type { Identity } from '../../sandbox/launcher.js';
import { RunUser } from '../../sandbox/run-user.js';
import { HAS_UNTRUSTED_USERS, SERVICE_GROUP, UNTRUSTED_GROUP } from '../../util/untrusted-users.js';

export interface ServiceUser {
  readonly identity: Identity;
  /** To be called when the process has ended: kills what it may have left, and frees the user. */
  end(): Promise<void>;
}

/**
 * A user that no other program has.
 * @param records for `RunUser`
 * @returns undefined where a process has the user of the actor host
 */
export function claimUser(type: ServiceType, records: string): ServiceUser | undefined {
  if (!HAS_UNTRUSTED_USERS) return undefined;
  // Whose files are those of root, without its rights.
  if (type === 'sqlite') return { identity: identityOf(0), end: async () => undefined };
  const user = new RunUser(records);
  user.claim();
  return { identity: identityOf(user.id), end: () => user.end() };
}

function identityOf(user: number): Identity {
  return { user, group: UNTRUSTED_GROUP, groups: [SERVICE_GROUP] };
}
