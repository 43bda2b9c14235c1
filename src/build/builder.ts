/** How source becomes a stored executable: dependency set, rustc, artifact store. */
import { stat } from 'node:fs/promises';
import { type ArtifactStore, type Digest, digestFile } from '../artifacts/artifact-store.js';
import type { Dependencies } from '../model/crates.js';
import type { Diagnostic } from '../model/diagnostic.js';
import type { Sandbox } from '../sandbox/sandbox.js';
import { DiskFullError, reportsDiskFull } from '../util/disk-full.js';
import type { Turn, Turns } from '../util/turns.js';
import type { DependencySets } from './dependency-sets.js';
import type { FailedTool } from './diagnostics.js';
import type { ToolLimits } from './run-tool.js';
import { compileHandler } from './rustc.js';
import { hasText, type SourceTree } from './source-tree.js';
import type { Toolchain } from './toolchain.js';

/** The dependencies of a builder. */
export interface BuilderOptions {
  readonly toolchain: Toolchain;
  readonly sandbox: Sandbox;
  readonly sets: DependencySets;
  readonly artifacts: ArtifactStore;
  /** An existing folder for the files of builds in progress. */
  readonly scratch: string;
  readonly env: Readonly<Record<string, string>>;
  readonly limits: ToolLimits;
  /** Turns at compiling. */
  readonly turns: Turns;
}

/** Milliseconds of the parts of a build. */
export interface Timings {
  readonly dependencies_ms: number;
  readonly compile_ms: number;
  readonly store_ms: number;
}

/** How a build ended. */
export type BuiltHandler = { readonly diagnostics: readonly Diagnostic[]; readonly timings: Timings } & (
  | { readonly ok: true; readonly digest: Digest; readonly size: number }
  | { readonly ok: false; readonly timedOut: boolean }
);

/** A handler to build. */
export interface Buildable extends SourceTree {
  readonly turn: Turn;
  readonly dependencies: Dependencies;
}

/** Compiles handlers. */
export class Builder {
  readonly #options: BuilderOptions;

  constructor(options: BuilderOptions) {
    this.#options = options;
  }

  /**
   * Builds one handler. A source that does not compile is a result, not an error.
   * @param turn that it takes
   */
  async build({ turn, dependencies, ...source }: Buildable, signal?: AbortSignal): Promise<BuiltHandler> {
    const { toolchain, sandbox, sets, artifacts, scratch, env, limits, turns } = this.#options;
    const lap = stopwatch();
    const set = await sets.prepare({ dependencies, async: usesAsync(source) }, turn);
    const dependencies_ms = lap();
    if (!set.ok) throwIfDiskFull(set);
    if (!set.ok)
      return {
        ok: false,
        timedOut: set.outcome === 'timed-out',
        diagnostics: set.diagnostics,
        timings: { dependencies_ms, compile_ms: 0, store_ms: 0 },
      };

    const inTurn = <T>(work: () => Promise<T>) => turns.run(turn, work);
    const job = { toolchain, sandbox, source, libraries: set.libraries, env, limits, inTurn, signal };
    return compileHandler(scratch, job, async (compilation): Promise<BuiltHandler> => {
      const { diagnostics, ms: compile_ms } = compilation;
      lap();
      if (!compilation.ok) {
        throwIfDiskFull(compilation);
        return {
          ok: false,
          timedOut: compilation.outcome === 'timed-out',
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
 * A full disk says nothing about the source. Only diagnostics without a position count, and only while free space is
 * low: an author, or a crate, could print the same words.
 * @throws DiskFullError
 */
function throwIfDiskFull({ diskMayBeFull, diagnostics }: FailedTool): void {
  if (!diskMayBeFull) return;
  const report = diagnostics.find(({ line, rendered }) => line === null && reportsDiskFull(rendered));
  if (report) throw new DiskFullError(`The compiler ran out of room on the disk: ${report.message}`);
}

/** The async macros need the SDK with tokio. A mention in a comment is harmless: it only links more than needed. */
function usesAsync(source: SourceTree): boolean {
  return hasText(source, /\bhandler_(loop(_async|_async_result|_result_async)|ws_async)\s*!/);
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
