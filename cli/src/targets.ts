/** The domain and the endpoint that edge.yaml names: found on the gateway, or made there. */
import { UsageError } from './errors.js';
import { idIfKnown, routeName } from './names.js';
import type { ProjectEndpoint } from './project.js';
import { isCode, type Session } from './session.js';

/** An endpoint on the gateway. */
export interface Target {
  readonly id: string;
  readonly isNew: boolean;
}

/** @returns true when the domain was made */
export async function ensureDomain(session: Session, host: string): Promise<boolean> {
  if (host === '*' || (await idIfKnown(session, 'domain', host)) !== undefined) return false;
  try {
    await session.api.call('POST /api/domains', { body: { name: host, host } });
    return true;
  } catch (thrown) {
    // Somebody else has just made it.
    if (isCode(thrown, 'host_taken')) return false;
    throw thrown;
  }
}

/** Finds the endpoint with this method, host and route, or makes it. */
export async function ensureEndpoint(session: Session, endpoint: ProjectEndpoint): Promise<Target> {
  const { name, method, route, host } = endpoint;
  const found = await idIfKnown(session, 'endpoint', routeName(endpoint));
  if (found !== undefined) return { id: found, isNew: false };
  const { data } = await session.api.call('POST /api/endpoints', {
    body: { name, method, path: route, domain: host },
  });
  return { id: data.id, isNew: true };
}

/** @throws UsageError when none fits */
export function requireSome<T>(items: readonly T[], message: string): void {
  if (items.length === 0) throw new UsageError(message);
}
