/** Collections: from row to answer. */
import type { Static } from '@sinclair/typebox';
import type { Collection } from '../../store/collections.js';
import type { CollectionView } from './schema.js';

export function presentCollection(collection: Collection): Static<typeof CollectionView> {
  return {
    id: collection.id,
    domain_id: collection.domain_id,
    name: collection.name,
    description: collection.description,
    base_path: collection.base_path,
    enabled: collection.enabled,
    created_at: collection.created_at.toISOString(),
    updated_at: collection.updated_at.toISOString(),
  };
}
