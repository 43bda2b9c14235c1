/** Domains: from row to answer. */
import type { Static } from '@sinclair/typebox';
import type { Domain } from '../../store/domains.js';
import type { DomainView } from './schema.js';

export function presentDomain(domain: Domain): Static<typeof DomainView> {
  return {
    id: domain.id,
    name: domain.name,
    host: domain.host,
    description: domain.description,
    enabled: domain.enabled,
    created_at: domain.created_at.toISOString(),
    updated_at: domain.updated_at.toISOString(),
  };
}
