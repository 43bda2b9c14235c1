/** Endpoints: from row to answer. */
import type { Static } from '@sinclair/typebox';
import type { Endpoint } from '../../store/endpoints.js';
import { presenter } from '../present.js';
import { EndpointSummary, EndpointView } from './schema.js';

const present = presenter(EndpointView);

export function presentEndpoint(endpoint: Endpoint): Static<typeof EndpointView> {
  const { artifact, artifact_source_key, source_key, running_pids } = endpoint;
  return present({
    ...endpoint,
    needs_compile: artifact !== null && artifact_source_key !== source_key,
    running: running_pids.length > 0,
    pid: running_pids[0] ?? null,
  });
}

export const presentEndpointSummary = presenter(EndpointSummary);
