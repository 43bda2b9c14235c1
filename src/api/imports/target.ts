/** Where an import goes: what the client says about it, checked in itself. */
import { AppError } from '../../errors.js';
import type { ImportTarget } from '../../store/import-scope.js';

interface TargetInput {
  readonly domain: string;
  readonly domain_id?: string | null;
  readonly collection_id?: string | null;
}

/**
 * @param place where the client has written it: `body` or `query`
 * @throws AppError invalid_input when the members contradict each other
 */
export function targetOf(place: string, input: TargetInput, createCollection: boolean): ImportTarget {
  const { domain, domain_id: domainId = null, collection_id: collectionId = null } = input;
  if (createCollection && domainId === null) {
    throw new AppError(
      'invalid_input',
      `${place}.domain_id: is required with create_collection: the collection belongs to a domain`,
    );
  }
  if (createCollection && collectionId !== null) {
    throw new AppError(
      'invalid_input',
      `${place}.collection_id: must not be given with create_collection; give one of the two`,
    );
  }
  return { domain: domain.toLowerCase(), domainId, collectionId, createCollection };
}
