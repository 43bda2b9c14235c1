/** Warns of pools that a handler names, and that have no service. */

import { isRust } from '../../model/file-paths.js';
import { namedPools } from '../../model/named-pools.js';
import type { HandlerSource } from '../../model/source-files.js';
import { listBindings } from '../../store/bindings.js';
import type { Store } from '../../store/database.js';
import { readSourceFiles } from '../../store/source-files.js';
import { findVersion } from '../../store/versions.js';

/** A sentence for each pool that a version names literally, and under which no service is bound to the endpoint. */
export async function unboundPoolsOf(
  store: Store,
  endpointId: string,
  version: number | null | undefined,
): Promise<string[]> {
  const stored = typeof version === 'number' ? await findVersion(store, endpointId, version) : undefined;
  return stored ? unboundPools(store, endpointId, stored) : [];
}

/** Names of all its files of Rust. */
async function poolsNamedIn(
  store: Store,
  { code, files }: Pick<HandlerSource, 'code' | 'files'>,
): Promise<string[]> {
  const rust = Object.fromEntries(Object.entries(files ?? {}).filter(([path]) => isRust(path)));
  const names = new Set(namedPools(code));
  for (const content of (await readSourceFiles(store, rust)).values())
    for (const name of namedPools(content.toString())) names.add(name);
  return [...names].sort();
}

/** The same for a source. */
export async function unboundPools(
  store: Store,
  endpointId: string,
  source: Pick<HandlerSource, 'code' | 'files'>,
): Promise<string[]> {
  const named = await poolsNamedIn(store, source);
  if (named.length === 0) return [];
  const bound = new Set((await listBindings(store, endpointId)).map(({ pool_id }) => pool_id));
  return named
    .filter((name) => !bound.has(name))
    .map((name) => {
      const advice = `Bind one with \`edge service bind\`, or POST /api/endpoints/${endpointId}/services`;
      return `The code names the pool "${name}", under which no service is bound: calls of it will fail. ${advice}`;
    });
}
