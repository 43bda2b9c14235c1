/** The target of an import, validated without the database, and who may import into it. */
import { AppError } from '../../errors.js';
import type { Permission } from '../../model/permission.js';
import type { ImportTarget } from '../../store/import-scope.js';
import type { Principal } from '../access/principal.js';

interface TargetInput {
  readonly domain: string;
  readonly domain_id?: string | null;
  readonly collection_id?: string | null;
}

/**
 * @param location of the members, for messages: `body` or `query`
 * @throws AppError invalid_input when the members contradict each other
 */
export function targetOf(location: string, input: TargetInput, createCollection: boolean): ImportTarget {
  const { domain, domain_id: domainId = null, collection_id: collectionId = null } = input;
  if (createCollection && domainId === null) {
    throw new AppError(
      'invalid_input',
      `${location}.domain_id: is required with create_collection: the collection belongs to a domain`,
    );
  }
  if (createCollection && collectionId !== null) {
    throw new AppError(
      'invalid_input',
      `${location}.collection_id: must not be given with create_collection; give one of the two`,
    );
  }
  return { domain: domain.toLowerCase(), domainId, collectionId, createCollection };
}

/**
 * An import writes what other requests write: whoever may not send those may not do it by an import either, nor see in
 * a dry run what it would do.
 * @param location of the members, for messages
 * @throws AppError forbidden
 */
export function requireMayImport(
  { permissions }: Pick<Principal, 'permissions'>,
  location: 'body' | 'query',
  does: { readonly createCollection: boolean; readonly compile: boolean },
): void {
  const needed: readonly (readonly [what: string, permission: Permission])[] = [
    ['An import of endpoints', 'endpoints:write'],
    ...(does.createCollection ? [[`${location}.create_collection`, 'collections:write'] as const] : []),
    ...(does.compile ? [[`${location}.compile`, 'endpoints:deploy'] as const] : []),
  ];
  for (const [what, permission] of needed)
    if (!permissions.has(permission))
      throw new AppError('forbidden', `${what}: the permission ${permission} is missing`, {
        details: { permission },
      });
}
