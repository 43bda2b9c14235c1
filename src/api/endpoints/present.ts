/** Endpoints: from row to answer. */
import type { Static } from '@sinclair/typebox';
import type { Endpoint } from '../../store/endpoints.js';
import type { EndpointSummary, EndpointView } from './schema.js';

export function presentEndpoint(endpoint: Endpoint): Static<typeof EndpointView> {
  return {
    id: endpoint.id,
    name: endpoint.name,
    path: endpoint.path,
    method: endpoint.method,
    domain: endpoint.domain,
    collection_id: endpoint.collection_id,
    description: endpoint.description,
    enabled: endpoint.enabled,
    code: endpoint.code,
    dependencies: endpoint.dependencies,
    limits: endpoint.limits,
    status: endpoint.status,
    last_error: endpoint.last_error,
    needs_compile: endpoint.artifact !== null && endpoint.artifact_source_key !== endpoint.source_key,
    running: endpoint.running_pids.length > 0,
    pid: endpoint.running_pids[0] ?? null,
    build_id: endpoint.build_id,
    created_at: endpoint.created_at.toISOString(),
    updated_at: endpoint.updated_at.toISOString(),
  };
}

export function presentEndpointSummary(endpoint: Endpoint): Static<typeof EndpointSummary> {
  return {
    id: endpoint.id,
    name: endpoint.name,
    path: endpoint.path,
    method: endpoint.method,
    domain: endpoint.domain,
    collection_id: endpoint.collection_id,
    description: endpoint.description,
    enabled: endpoint.enabled,
  };
}
