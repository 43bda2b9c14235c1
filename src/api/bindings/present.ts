/** Bindings: from row to answer. */
import type { Static } from '@sinclair/typebox';
import type { Binding } from '../../store/bindings.js';
import type { BindingView } from './schema.js';

export function presentBinding(binding: Binding): Static<typeof BindingView> {
  return {
    endpoint_id: binding.endpoint_id,
    service_id: binding.service_id,
    pool_id: binding.pool_id,
    created_at: binding.created_at.toISOString(),
  };
}
