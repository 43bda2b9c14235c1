/** Names of objects, which the API resolves; an id is taken as it is. */
import { CliError, UsageError } from './errors.js';
import { findProject } from './project.js';
import { isCode, type Session } from './session.js';

export type Kind = 'endpoint' | 'collection' | 'domain' | 'service';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** @throws CliError not_found, which names the nearest, or ambiguous_name */
export async function idOf(session: Session, kind: Kind, name: string): Promise<string> {
  if (UUID.test(name)) return name;
  try {
    return (await session.api.get('GET /api/resolve', { query: { kind, name } })).id;
  } catch (thrown) {
    if (!(thrown instanceof CliError) || !isCode(thrown, 'not_found')) throw thrown;
    throw new CliError(thrown.message, { ...thrown.facts, hint: `\`edge ${kind} list\` lists all of them.` });
  }
}

/** The same; undefined when nothing has the name. */
export async function idIfKnown(session: Session, kind: Kind, name: string): Promise<string | undefined> {
  try {
    return await idOf(session, kind, name);
  } catch (thrown) {
    if (isCode(thrown, 'not_found')) return undefined;
    throw thrown;
  }
}

/**
 * Where there is nothing for a host: it may be mistyped. There are endpoints and entries of hosts without a domain, so
 * this is no check in advance.
 * @throws CliError not_found, which names the nearest
 */
export async function requireHost(session: Session, host: string | undefined): Promise<void> {
  if (host === undefined || host === '*') return;
  await idOf(session, 'domain', host).catch((thrown: unknown) => {
    // Not everybody may see domains.
    if (!isCode(thrown, 'forbidden')) throw thrown;
  });
}

/** The endpoint that an argument names, or the only one of the folder. */
export async function endpointId(session: Session, name: string | undefined): Promise<string> {
  if (name !== undefined) return idOf(session, 'endpoint', name);
  const project = await findProject('.');
  const [first, ...others] = project?.endpoints ?? [];
  if (!project || !first)
    throw new UsageError(
      'Which endpoint?',
      'Name it: HOST/NAME, or "METHOD HOST/ROUTE". Or go to a folder with edge.yaml.',
    );
  if (others.length > 0) {
    const names = project.endpoints.map(routeName).join('", "');
    throw new UsageError(`${project.file} has several endpoints: "${names}"`, 'Name the one that you mean.');
  }
  return idOf(session, 'endpoint', routeName(first));
}

/** An endpoint by its method, host and route. */
export function routeName({ method, host, route }: { method: string; host: string; route: string }): string {
  return `${method} ${host}${route}`;
}

/** Whose variables or secrets options name; undefined: nobody's. */
export async function ownerOf(
  session: Session,
  options: { readonly domain?: string; readonly collection?: string; readonly endpoint?: string },
): Promise<{ readonly resource: 'domains' | 'collections' | 'endpoints'; readonly id: string } | undefined> {
  const given = (['domain', 'collection', 'endpoint'] as const).filter((kind) => options[kind] !== undefined);
  if (given.length > 1) throw new UsageError(`Give one of ${given.map((kind) => `--${kind}`).join(', ')}`);
  const [kind] = given;
  if (kind === undefined) return undefined;
  return { resource: `${kind}s`, id: await idOf(session, kind, options[kind] ?? '') };
}

export function requireOwner<T>(owner: T | undefined): T {
  if (owner === undefined) throw new UsageError('Whose?', 'Give --domain, --collection or --endpoint.');
  return owner;
}
