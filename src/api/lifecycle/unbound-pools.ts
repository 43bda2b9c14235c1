/** Warns of pools that a handler names, and that have no service. */
import { namedPools } from '../../model/named-pools.js';
import { listBindings } from '../../store/bindings.js';
import type { Store } from '../../store/database.js';
import { findVersion } from '../../store/versions.js';

/** A sentence for each pool that a version names literally, and under which no service is bound to the endpoint. */
export async function unboundPoolsOf(
  store: Store,
  endpointId: string,
  version: number | null | undefined,
): Promise<string[]> {
  const stored = typeof version === 'number' ? await findVersion(store, endpointId, version) : undefined;
  return unboundPools(store, endpointId, stored?.code);
}

/** The same for a source. */
export async function unboundPools(
  store: Store,
  endpointId: string,
  code: string | null | undefined,
): Promise<string[]> {
  const named = namedPools(code ?? '');
  if (named.length === 0) return [];
  const bound = new Set((await listBindings(store, endpointId)).map(({ pool_id }) => pool_id));
  return named
    .filter((name) => !bound.has(name))
    .map((name) => {
      const advice = `Bind one with \`edge service bind\`, or POST /api/endpoints/${endpointId}/services`;
      return `The code names the pool "${name}", under which no service is bound: calls of it will fail. ${advice}`;
    });
}
