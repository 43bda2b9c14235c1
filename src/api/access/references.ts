/**
 * The objects that a request names, in its path, its query and its body. What somebody may not see does not exist for
 * them, wherever it is named.
 */
import { AppError, notFound } from '../../errors.js';
import type { Scope } from '../../model/permission.js';
import type { Store } from '../../store/database.js';
import { isHostOfDomain } from '../../store/domains.js';
import { isOwn, isVisible, type ResourceKind } from '../../store/visibility.js';

/** Kinds of objects, by the segments of paths after which their ids come. */
export const KIND_OF_SEGMENT: Readonly<Record<string, ResourceKind>> = {
  ...{ domains: 'domain', collections: 'collection', endpoints: 'endpoint', services: 'service' },
  ...{ builds: 'build', imports: 'import', jobs: 'job', alerts: 'alert', applies: 'apply' },
};
/** Members of queries and bodies that name an object. */
export const KIND_OF_MEMBER: Readonly<Record<string, ResourceKind>> = {
  ...{ domain_id: 'domain', collection_id: 'collection', endpoint_id: 'endpoint', service_id: 'service' },
  ...{ service: 'service', domain: 'host', host: 'host' },
};

/** The kinds of the objects that parameters of a path name: `/api/domains/{id}` names a domain. */
export function kindsInPath(path: string): readonly (readonly [name: string, kind: ResourceKind])[] {
  const segments = path.split('/');
  return segments.flatMap((segment, at) => {
    const name = /^\{(\w+)\}$/.exec(segment)?.[1];
    const kind = KIND_OF_SEGMENT[segments[at - 1] ?? ''];
    return name !== undefined && kind ? [[name, kind] as const] : [];
  });
}

/** An object that does not exist for who asks; the audit has such requests. */
export class HiddenError extends AppError {
  constructor(kind: ResourceKind, id: string) {
    super('not_found', notFound(kind, id).message);
  }
}

/** @throws HiddenError, or AppError forbidden for a change of what others have a share in */
export async function requireInPath(
  store: Store,
  kinds: ReturnType<typeof kindsInPath>,
  params: Readonly<Record<string, string>>,
  isChange: boolean,
  scope: Scope,
): Promise<void> {
  if (!scope) return;
  for (const [at, [name, kind]] of kinds.entries()) {
    const id = params[name] ?? '';
    if (!(await isVisible(store, kind, id, scope))) throw new HiddenError(kind, id);
    if (isChange && at === 0 && !(await isOwn(store, kind, id, scope)))
      throw new AppError('forbidden', `The ${kind} ${id} is shared with others, or has endpoints of others`);
  }
}

/** The same for the members of a query or a body. @throws HiddenError */
export async function requireInMembers(
  store: Store,
  members: Readonly<Record<string, unknown>>,
  scope: Scope,
): Promise<void> {
  if (!scope) return;
  for (const [name, value] of Object.entries(members)) {
    if (name === 'scope' && typeof value === 'object' && value !== null) {
      await requireInMembers(store, value as Record<string, unknown>, scope);
      continue;
    }
    const kind = KIND_OF_MEMBER[name];
    if (!kind || typeof value !== 'string') continue;
    const id = kind === 'host' ? value.replace(/:\d*$/, '') : value;
    if (!(await isVisible(store, kind, id, scope))) throw new HiddenError(kind, value);
    // What is of a host without a domain is not for them either, so they put nothing there.
    if (name === 'domain' && !(await isHostOfDomain(store, id.toLowerCase())))
      throw new AppError(
        'not_found',
        `${name}: there is no domain with the host "${value}"; create it first (POST /api/domains)`,
      );
  }
}

/** Whether all objects that the path and the query of a request name still exist for who reads them. */
export async function seesAll(
  store: Store,
  kinds: ReturnType<typeof kindsInPath>,
  params: Readonly<Record<string, string>>,
  query: Readonly<Record<string, unknown>>,
  scope: Scope,
): Promise<boolean> {
  try {
    await requireInPath(store, kinds, params, false, scope);
    await requireInMembers(store, query, scope);
    return true;
  } catch (thrown) {
    if (thrown instanceof AppError) return false;
    throw thrown;
  }
}
