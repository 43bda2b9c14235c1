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

/** Where an endpoint of a project lives, with what is missing. */
export interface Place extends Target {
  /** Whether its domain was made. */
  readonly isNewDomain: boolean;
}

/**
 * Finds the endpoint with this method, host and route, or makes it, and its domain.
 * @throws UsageError when it is missing and in a collection; nothing is made then
 */
export async function ensurePlace(session: Session, endpoint: ProjectEndpoint): Promise<Place> {
  const found = await idIfKnown(session, 'endpoint', routeName(endpoint));
  if (found === undefined && endpoint.collection !== undefined)
    throw new UsageError(
      `There is no endpoint "${routeName(endpoint)}" yet, and it is in the collection "${endpoint.collection}"`,
      '`edge apply` makes collections and what is in them.',
    );
  const isNewDomain = await ensureDomain(session, endpoint.host);
  return {
    ...(found === undefined ? await makeEndpoint(session, endpoint) : { id: found, isNew: false }),
    isNewDomain,
  };
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

async function makeEndpoint(
  session: Session,
  { name, method, route, host }: ProjectEndpoint,
): Promise<Target> {
  const { data } = await session.api.call('POST /api/endpoints', {
    body: { name, method, path: route, domain: host },
  });
  return { id: data.id, isNew: true };
}

/** @throws UsageError when none fits */
export function requireSome<T>(items: readonly T[], message: string): void {
  if (items.length === 0) throw new UsageError(message);
}
