/** Chooses which versions serve, and offers to undo that. */
import { call, get } from '../api/client.js';
import { done, warned } from '../base/toasts.js';
import type { Endpoint, Target } from '../generated/routes.js';

/** The version that serves most; of one that is asleep, that which the next request starts. */
export function servingVersion({ running, running_version, deployment }: Endpoint): number | null {
  if (!running) return null;
  const targets = [...(deployment?.targets ?? [])].sort((one, other) => other.percent - one.percent);
  return running_version ?? targets[0]?.version ?? null;
}

/** @throws ApiError */
export async function serve(endpoint: Endpoint, targets: readonly Target[]): Promise<void> {
  const made = await set(endpoint, targets);
  done(textOf(targets), undoTo(endpoint, made));
}

/** Rolls back to a version; without one, to that which served before. @throws ApiError */
export async function rollBack(endpoint: Endpoint, version?: number): Promise<void> {
  const { data } = await call('POST /api/endpoints/{id}/rollback', {
    params: { id: endpoint.id },
    body: version === undefined ? {} : { version },
  });
  done(`Version ${data.version} serves again.`, undoTo(endpoint, data.deployment_id));
}

/** Has nothing serve. @throws ApiError */
export async function stop(endpoint: Endpoint): Promise<void> {
  await call('POST /api/endpoints/{id}/stop', { params: { id: endpoint.id } });
  done('It is stopped.', undoTo(endpoint, undefined));
}

/** @returns the id of the deployment */
async function set({ id, deployment }: Endpoint, targets: readonly Target[]): Promise<string> {
  const sticky = targets.length > 1 ? (deployment?.sticky ?? null) : null;
  const body = { targets, sticky };
  const { data } = await call('PUT /api/endpoints/{id}/deployment', { params: { id }, body });
  return data.deployment_id;
}

/**
 * Offers to restore what served when the endpoint was read; not over what others have deployed since.
 * @param made the id of the deployment that is undone; undefined when it was stopped
 */
function undoTo(before: Endpoint, made: string | undefined) {
  const targets = before.deployment?.targets.map(({ version, percent }) => ({ version, percent })) ?? [];
  const run = async () => {
    const now = await get('GET /api/endpoints/{id}', { params: { id: before.id } });
    if (now.deployment?.id !== made) return warned('Not undone: what serves was changed since.');
    if (before.running && targets.length > 0) await set(before, targets);
    else await call('POST /api/endpoints/{id}/stop', { params: { id: before.id } });
    done(before.running ? textOf(targets) : 'It is stopped, as before.');
  };
  return { label: 'Undo', run };
}

function textOf(targets: readonly Target[]): string {
  const [first, second] = targets;
  if (!second) return `Version ${first?.version} serves.`;
  return `Version ${first?.version} serves ${first?.percent} %, version ${second.version} ${second.percent} %.`;
}
