/** Whether a credential still is what it was, for answers that go on for long. */
import { isDeepStrictEqual } from 'node:util';
import type { Principal } from './principal.js';

/** Whether they are the same, and may do and see the same. */
export function isSamePrincipal(one: Principal, other: Principal): boolean {
  return isDeepStrictEqual(comparable(one), comparable(other));
}

function comparable({ actor, permissions, scope, session }: Principal) {
  return {
    actor,
    session: session?.id,
    permissions: [...permissions].sort(),
    scope: scope && [...scope].sort(),
  };
}
