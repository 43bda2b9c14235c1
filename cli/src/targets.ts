/** The domain and the endpoint that edge.yaml names: found on the gateway, or made there. */
import { CliError, UsageError } from './errors.js';
import { idIfKnown, routeName } from './names.js';
import type { Project, ProjectEndpoint } from './project.js';
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
 * Finds the endpoint with this method, host and route, or makes it, and its domain, each as its stack's.
 * @throws UsageError when it is missing and in a collection, CliError when another stack has it; nothing is made then
 */
export async function ensurePlace(
  session: Session,
  project: Project,
  endpoint: ProjectEndpoint,
): Promise<Place> {
  const existingId = await idIfKnown(session, 'endpoint', routeName(endpoint));
  if (existingId !== undefined) await requireOwn(session, project, endpoint, existingId);
  if (existingId === undefined && endpoint.collection !== undefined)
    throw new UsageError(
      `There is no endpoint "${routeName(endpoint)}" yet, and it is in the collection "${endpoint.collection}"`,
      '`edge apply` makes collections and what is in them.',
    );
  const isNewDomain = await ensureDomain(session, project, endpoint.host);
  return {
    ...(existingId === undefined
      ? await makeEndpoint(session, project.file, endpoint)
      : { id: existingId, isNew: false }),
    isNewDomain,
  };
}

/** What another stack has made, its files say. @throws CliError */
async function requireOwn(
  session: Session,
  { file, stack }: Project,
  endpoint: ProjectEndpoint,
  id: string,
): Promise<void> {
  const { stack: owner } = await session.api.get('GET /api/endpoints/{id}', { params: { id } });
  if (owner === null || owner === stack) return;
  throw new CliError(
    `The endpoint "${routeName(endpoint)}" belongs to the stack "${owner}", and ${file} is of ${
      stack === null ? 'none' : `the stack "${stack}"`
    }; it was not changed`,
    { code: 'apply_conflict', hint: `Deploy it from the folder of the stack "${owner}".` },
  );
}

/** @returns true when the domain was made: as the stack's of which edge.yaml has it, else as nobody's */
export async function ensureDomain(session: Session, { domains }: Project, host: string): Promise<boolean> {
  if (host === '*' || (await idIfKnown(session, 'domain', host)) !== undefined) return false;
  try {
    const stack = domains.get(host) ?? null;
    await session.api.call('POST /api/domains', { body: { name: host, host, stack } });
    return true;
  } catch (thrown) {
    // Somebody else has just made it.
    if (isCode(thrown, 'host_taken')) return false;
    throw thrown;
  }
}

async function makeEndpoint(session: Session, file: string, endpoint: ProjectEndpoint): Promise<Target> {
  const { name, method, route, host, stack } = endpoint;
  try {
    const { data } = await session.api.call('POST /api/endpoints', {
      body: { name, method, path: route, domain: host, stack },
    });
    return { id: data.id, isNew: true };
  } catch (thrown) {
    if (!(thrown instanceof CliError)) throw thrown;
    const message = `${file}: "${routeName(endpoint)}" was not made: ${thrown.message}`;
    throw new CliError(message, thrown.facts, thrown.exitCode);
  }
}

/** @throws UsageError when none fits */
export function requireSome<T>(items: readonly T[], message: string, hint?: string): void {
  if (items.length === 0) throw new UsageError(message, hint);
}
