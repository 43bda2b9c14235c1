/** From source to a stored executable: dependency set, rustc, artifact store. */
import { stat } from 'node:fs/promises';
import { type ArtifactStore, type Digest, digestFile } from '../artifacts/artifact-store.js';
import type { Dependencies } from '../dependencies.js';
import type { Limiter } from '../limiter.js';
import { NoRoomError, tellsOfNoRoom } from '../no-room.js';
import type { Sandbox } from '../sandbox/sandbox.js';
import type { DependencySets } from './dependency-sets.js';
import type { Diagnostic, FailedTool } from './diagnostics.js';
import type { ToolLimits } from './run-tool.js';
import { compileHandler } from './rustc.js';
import type { Toolchain } from './toolchain.js';

/** What a builder works with. */
export interface BuilderOptions {
  readonly toolchain: Toolchain;
  readonly sandbox: Sandbox;
  readonly sets: DependencySets;
  readonly artifacts: ArtifactStore;
  /** An existing folder for the files of builds in progress. */
  readonly scratch: string;
  readonly env: Readonly<Record<string, string>>;
  readonly limits: ToolLimits;
  /** How many compilers may run at a time. */
  readonly slots: Limiter;
}

/** Milliseconds of the parts of a build. */
export interface Timings {
  readonly dependencies_ms: number;
  readonly compile_ms: number;
  readonly store_ms: number;
}

/** How a build ended. */
export type Built = { readonly diagnostics: readonly Diagnostic[]; readonly timings: Timings } & (
  | { readonly ok: true; readonly digest: Digest; readonly size: number }
  | { readonly ok: false; readonly timedOut: boolean }
);

/** Compiles handlers. */
export class Builder {
  constructor(private readonly options: BuilderOptions) {}

  /** Builds one handler. A source that does not compile is a result, not an error. */
  async build(code: string, dependencies: Dependencies, signal?: AbortSignal): Promise<Built> {
    const { toolchain, sandbox, sets, artifacts, scratch, env, limits, slots } = this.options;
    const lap = stopwatch();
    const set = await sets.prepare({ dependencies, async: usesAsync(code) });
    const dependencies_ms = lap();
    if (!set.ok) refuseNoRoom(set);
    if (!set.ok)
      return {
        ok: false,
        timedOut: set.timedOut,
        diagnostics: set.diagnostics,
        timings: { dependencies_ms, compile_ms: 0, store_ms: 0 },
      };

    const job = { toolchain, sandbox, code, libraries: set.libraries, env, limits, slots, signal };
    return compileHandler(scratch, job, async (compilation): Promise<Built> => {
      const { diagnostics, ms: compile_ms } = compilation;
      lap();
      if (!compilation.ok) {
        refuseNoRoom(compilation);
        return {
          ok: false,
          timedOut: compilation.timedOut,
          diagnostics,
          timings: { dependencies_ms, compile_ms, store_ms: 0 },
        };
      }
      const digest = await digestFile(compilation.executable);
      const { size } = await stat(compilation.executable);
      if (!(await artifacts.has(digest))) await artifacts.put(digest, compilation.executable);
      return {
        ok: true,
        digest,
        size,
        diagnostics,
        timings: { dependencies_ms, compile_ms, store_ms: lap() },
      };
    });
  }
}

/**
 * A full disk says nothing about the source. Only what has no place in it counts, and only while there is little room:
 * an author, or a crate, could write such words.
 * @throws NoRoomError
 */
function refuseNoRoom({ mayLackRoom, diagnostics }: FailedTool): void {
  if (!mayLackRoom) return;
  const told = diagnostics.find(({ line, rendered }) => line === null && tellsOfNoRoom(rendered));
  if (told) throw new NoRoomError(`The compiler ran out of room on the disk: ${told.message}`);
}

/** The async macros need the SDK with tokio. A mention in a comment only links a little more than needed. */
function usesAsync(code: string): boolean {
  return /\bhandler_loop(_async|_async_result|_result_async)\s*!/.test(code);
}

/** Each call returns the whole milliseconds since the one before. */
function stopwatch(): () => number {
  let last = performance.now();
  return () => {
    const elapsed = performance.now() - last;
    last += elapsed;
    return Math.round(elapsed);
  };
}
