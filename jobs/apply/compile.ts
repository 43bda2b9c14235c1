/**
 * The first step of an apply: all code that is to serve is compiled. Builds are recorded, and no endpoint is touched.
 * Any worker compiles them, as those of imports.
 */

import pLimit from 'p-limit';
import { titleOf } from '../../src/apply/keys.js';
import type { EndpointObject, ObjectChange } from '../../src/apply/objects.js';
import { AppError } from '../../src/errors.js';
import { buildStart } from '../../src/lifecycle/build-start.js';
import { awaitBuild, compilable, requestBuildOf } from '../../src/lifecycle/compile.js';
import { WITHOUT_DOMAIN } from '../../src/model/owner.js';
import { sourceKey } from '../../src/model/source-key.js';
import { compileJob } from '../../src/queues/jobs.js';
import type { CompiledHandler } from '../../src/store/apply-context.js';
import { findBuild } from '../../src/store/builds.js';
import { type ApplyContext, type ApplyTry, actorOfApply } from './context.js';

/** Builds that are waited for at a time; how many compile is limited by the workers. */
const AT_A_TIME = 32;
/** A build may be queued behind many others, and be queued again after its worker ended. */
const BUILD_WAIT_MS = 3600_000;
/** The error lists so many of the endpoints whose code does not compile. */
const MAX_LISTED = 50;

interface Target {
  readonly id: string;
  readonly endpoint: EndpointObject;
}

/** Endpoints whose newest code is to serve, and does not yet. */
export function endpointsToDeploy(changes: readonly ObjectChange[]): Target[] {
  return changes.flatMap(({ id, before, after }) => {
    if (after?.kind !== 'endpoint' || after.running !== true || id === null) return [];
    const old = before?.kind === 'endpoint' ? before : undefined;
    const isSame = old?.running === true && sourceKey(old) === sourceKey(after);
    return isSame ? [] : [{ id, endpoint: after }];
  });
}

/**
 * @returns what was made of each, by the ids of the endpoints
 * @throws AppError compile_failed and its like, with what the compiler says of each endpoint
 */
export async function compileAll(
  context: ApplyContext,
  { apply, signal, progress }: ApplyTry,
): Promise<ReadonlyMap<string, CompiledHandler>> {
  const targets = endpointsToDeploy(apply.changes);
  const slots = pLimit(AT_A_TIME);
  const compiled = new Map<string, CompiledHandler>();
  const failures: { readonly endpoint: EndpointObject; readonly error: AppError }[] = [];
  await progress('compiling', 'compiled', 0, targets.length);
  await Promise.all(
    targets.map(({ id, endpoint }) =>
      slots(async () => {
        signal.throwIfAborted();
        try {
          compiled.set(id, await compileOne(context, apply, { id, endpoint }, signal));
          await progress('compiling', 'compiled', compiled.size, targets.length);
        } catch (thrown) {
          if (signal.aborted || !(thrown instanceof AppError)) throw thrown;
          failures.push({ endpoint, error: thrown });
        }
      }),
    ),
  );
  const [first] = failures;
  if (!first) return compiled;
  const more = failures.length > 1 ? `${failures.length} handlers cannot be compiled; the first: ` : '';
  throw new AppError(
    first.error.code,
    `${more}The ${titleOf(first.endpoint)}: ${first.error.message}`,
    {
      details: {
        endpoints: failures.slice(0, MAX_LISTED).map(({ endpoint, error }) => ({
          endpoint: titleOf(endpoint),
          ...{ code: error.code, error: error.message },
          diagnostics: error.extras.diagnostics ?? [],
        })),
      },
    },
    { cause: first.error },
  );
}

async function compileOne(
  { lifecycle, queues, toolchain, log }: ApplyContext,
  apply: ApplyTry['apply'],
  { id: endpointId, endpoint }: Target,
  signal: AbortSignal,
): Promise<CompiledHandler> {
  const source = compilable(endpoint);
  const start = await buildStart(lifecycle.store, endpointId, source);
  const origin = { requestId: apply.request_id, actor: actorOfApply(apply) };
  const owner = newOwnerOf(endpoint.host, apply.changes);
  const request = {
    ...{ endpointId: null, ...source, start, host: endpoint.host, origin },
    ...(owner !== undefined && { owner }),
  };
  const { id, attempt, state } = await requestBuildOf(lifecycle, request, {
    toolchains: [toolchain],
    canBuild: true,
  });
  if (state === 'new')
    await queues
      .enqueue('compile', compileJob({ id, attempt }, apply.request_id, endpoint.name))
      .catch((error: unknown) => {
        // Recovery finds it.
        log.warn({ err: error, build_id: id }, 'a build of an apply could not be queued yet');
      });
  if (state !== 'known') await awaitBuild(lifecycle, id, null, BUILD_WAIT_MS, signal);
  const built = await findBuild(lifecycle.store, id);
  if (!built?.artifact) throw new Error(`the build ${id} has no artifact`);
  const { artifact, resolved_lock: resolvedLock } = built;
  return { sourceKey: source.sourceKey, buildId: id, artifact, resolvedLock };
}

/** Who takes turns for a host after these changes; undefined when they make no difference. */
export function newOwnerOf(host: string, changes: readonly ObjectChange[]): string | undefined {
  const isDomain = (object: ObjectChange['after']) => object?.kind === 'domain' && object.host === host;
  if (changes.some(({ after }) => isDomain(after))) return host;
  return changes.some(({ before }) => isDomain(before)) ? WITHOUT_DOMAIN : undefined;
}
