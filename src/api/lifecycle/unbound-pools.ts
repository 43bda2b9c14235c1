/** Warns of pools that a handler names, and that have no service. */

import { AppError } from '../../errors.js';
import { isRust } from '../../model/file-paths.js';
import { poolsNamedIn } from '../../model/named-pools.js';
import { filesAt, type HandlerSource, LONG_SOURCE } from '../../model/source-files.js';
import { listBindings } from '../../store/bindings.js';
import { readSourceFiles } from '../../store/source-files.js';
import { findVersion } from '../../store/versions.js';
import type { ApiDependencies } from '../api-dependencies.js';

type HintDependencies = Pick<ApiDependencies, 'store' | 'threads'>;

/**
 * A sentence for each pool that a version names literally, and under which no service is bound to the endpoint.
 * @param owner whose turn it takes to look through a long source
 */
export async function unboundPoolsOf(
  deps: HintDependencies,
  endpointId: string,
  version: number | null | undefined,
  owner: string,
): Promise<string[]> {
  const stored = typeof version === 'number' ? await findVersion(deps.store, endpointId, version) : undefined;
  return stored ? unboundPools(deps, endpointId, stored, owner) : [];
}

/** The same for a source. */
export async function unboundPools(
  deps: HintDependencies,
  endpointId: string,
  source: Pick<HandlerSource, 'code' | 'files'>,
  owner: string,
): Promise<string[]> {
  const named = await poolsOf(deps, source, owner);
  if (named.length === 0) return [];
  const bound = new Set((await listBindings(deps.store, endpointId)).map(({ pool_id }) => pool_id));
  return named
    .filter((name) => !bound.has(name))
    .map((name) => {
      const advice = `Bind one with \`edge service bind\`, or POST /api/endpoints/${endpointId}/services`;
      return `The code names the pool "${name}", under which no service is bound: calls of it will fail. ${advice}`;
    });
}

/** Names in all its files of Rust. */
async function poolsOf(
  { store, threads }: HintDependencies,
  { code, files }: Pick<HandlerSource, 'code' | 'files'>,
  owner: string,
): Promise<readonly string[]> {
  const rust = filesAt(files, Object.keys(files ?? {}).filter(isRust));
  const contents = [...(await readSourceFiles(store, rust)).values()];
  const codes = [code, ...contents.map((content) => content.toString())];
  if (codes.reduce((sum, { length }) => sum + length, 0) <= LONG_SOURCE) return poolsNamedIn(codes);
  return threads.run(owner, 'poolsNamedIn', codes).catch((thrown: unknown) => {
    // What was asked for is done; a hint is not worth more.
    if (thrown instanceof AppError && thrown.code === 'busy') return [];
    throw thrown;
  });
}
