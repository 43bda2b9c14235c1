/** Endpoints: from row to answer. */
import type { Static } from '@sinclair/typebox';
import type { Store } from '../../store/database.js';
import { type Endpoint, needsCompile } from '../../store/endpoints.js';
import type { VersionState } from '../../store/observations.js';
import { presenter } from '../response/present.js';
import { sourceWithContents, sourceWithDigests } from '../response/sources.js';
import { EndpointSummary, EndpointView, ListedEndpoint, type TargetInForce } from './endpoints.schema.js';

const present = presenter(EndpointView);
const presentListed = presenter(ListedEndpoint);
export const presentEndpointSummary = presenter(EndpointSummary);

/** With the contents of its files. */
export async function showEndpoint(store: Store, endpoint: Endpoint): Promise<Static<typeof EndpointView>> {
  return present({ ...withState(endpoint), ...(await sourceWithContents(store, endpoint)) });
}

/** As lists show it. */
export function listedEndpoint(endpoint: Endpoint): Static<typeof ListedEndpoint> {
  return presentListed({ ...withState(endpoint), ...sourceWithDigests(endpoint) });
}

/** With what its columns say together. */
function withState(endpoint: Endpoint) {
  const { serving, observed, deployment, last_failure } = endpoint;
  const [first] = serving.flat();
  return {
    ...endpoint,
    needs_compile: needsCompile(endpoint),
    // One entry for each gateway; an empty one where its handlers are asleep.
    running: serving.length > 0,
    pid: first?.pid ?? null,
    running_version: first?.version ?? null,
    deployment: deployment && {
      ...deployment,
      targets: deployment.targets.map(({ version, percent }) => ({
        version,
        percent,
        ...stateOf(observed.filter((state) => state.version === version)),
      })),
      created_at: new Date(deployment.created_at).toISOString(),
    },
    last_failure: last_failure && { ...last_failure, at: new Date(last_failure.at).toISOString() },
  };
}

/** The state of a version on several gateways: the one where it stands worst speaks for it. */
function stateOf(observed: readonly VersionState[]): Pick<Static<typeof TargetInForce>, 'state' | 'error'> {
  const worst = (['failed', 'starting', 'running'] as const).flatMap(
    (state) => observed.find((one) => one.state === state) ?? [],
  );
  return { state: worst[0]?.state ?? null, error: worst[0]?.error ?? null };
}
