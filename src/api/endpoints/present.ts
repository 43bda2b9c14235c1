/** Endpoints: from row to answer. */
import type { Static } from '@sinclair/typebox';
import type { Endpoint } from '../../store/endpoints.js';
import { presenter } from '../present.js';
import { EndpointSummary, EndpointView } from './schema.js';

const present = presenter(EndpointView);

export function presentEndpoint(endpoint: Endpoint): Static<typeof EndpointView> {
  const { artifact, artifact_source_key, source_key, serving, deployment, last_failure } = endpoint;
  const [first] = serving.flat();
  return present({
    ...endpoint,
    needs_compile: artifact !== null && artifact_source_key !== source_key,
    // One entry for each gateway; an empty one where its handlers are asleep.
    running: serving.length > 0,
    pid: first?.pid ?? null,
    running_version: first?.version ?? null,
    deployment: deployment && {
      ...deployment,
      targets: deployment.targets.map(({ version, percent }) => ({ version, percent })),
      created_at: new Date(deployment.created_at).toISOString(),
    },
    last_failure: last_failure && { ...last_failure, at: new Date(last_failure.at).toISOString() },
  });
}

export const presentEndpointSummary = presenter(EndpointSummary);
