/** The target of an import, validated without the database. */
import type { Config } from '../../config.js';
import { AppError } from '../../errors.js';
import { policyLimit } from '../../model/policies/room.js';
import type { ImportTarget } from '../../store/import-scope.js';

interface TargetInput {
  readonly domain: string;
  readonly domain_id?: string | null;
  readonly collection_id?: string | null;
}

/**
 * @param location of the members, for messages: `body` or `query`
 * @throws AppError invalid_input when the members contradict each other
 */
export function targetOf(
  location: string,
  input: TargetInput,
  createCollection: boolean,
  config: Pick<Config, 'POLICY_MEMORY_MB'>,
): ImportTarget {
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
  return {
    ...{ domain: domain.toLowerCase(), domainId, collectionId, createCollection },
    policyLimit: policyLimit(config),
  };
}
