/** How source becomes a stored executable: dependency set, rustc, artifact store. */
import { stat } from 'node:fs/promises';
import { type ArtifactStore, type Digest, digestFile } from '../artifacts/artifact-store.js';
import { CargoProblem } from '../model/cargo-manifest.js';
import { usesAsync } from '../model/cargo-package.js';
import { type Dependencies, hasCrates } from '../model/crates.js';
import type { Diagnostic } from '../model/diagnostic.js';
import type { Sandbox } from '../sandbox/sandbox.js';
import { DiskFullError, reportsDiskFull } from '../util/disk-full.js';
import type { Turn, Turns } from '../util/turns.js';
import type { WaitingBuild } from './building-sets.js';
import type { DependencySets, PreparedSet } from './dependency-sets.js';
import type { FailedTool } from './diagnostics.js';
import { localCratesOf } from './local-crates.js';
import type { DependencySpec } from './manifest.js';
import { markUsed } from './prepared-sets.js';
import type { ToolLimits } from './run-tool.js';
import { compileHandler } from './rustc.js';
import { refusedSet } from './set-failure.js';
import type { SourceTree } from './source-tree.js';
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
  /** Origins of the git repositories and registries that crates may come from. */
  readonly crateSources: readonly string[];
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
  | {
      readonly ok: true;
      readonly digest: Digest;
      readonly size: number;
      /** The Cargo.lock that its crates were resolved to; null: not known. */
      readonly lock: string | null;
    }
  | { readonly ok: false; readonly limit: 'compile_timeout' | 'crates_timeout' | undefined }
);

/** A handler to build. */
export interface Buildable extends SourceTree {
  /** The build, for who follows its crates. */
  readonly build: WaitingBuild;
  readonly turn: Turn;
  readonly dependencies: Dependencies;
  readonly lock: NonNullable<DependencySpec['lock']> | null;
  readonly isFresh: boolean;
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
  async build(
    { build, turn, dependencies, lock, isFresh, ...source }: Buildable,
    signal?: AbortSignal,
  ): Promise<BuiltHandler> {
    const { toolchain, sandbox, artifacts, scratch, env, limits, turns } = this.#options;
    const lap = stopwatch();
    const set = await prepareSet(this.#options, { build, turn, dependencies, lock, isFresh, ...source });
    const dependencies_ms = lap();
    if (!set.ok) throwIfDiskFull(set);
    if (!set.ok)
      return {
        ok: false,
        limit: TOOK_TOO_LONG.has(set.outcome) ? 'crates_timeout' : undefined,
        diagnostics: set.diagnostics,
        timings: { dependencies_ms, compile_ms: 0, store_ms: 0 },
      };

    const inTurn = <T>(work: () => Promise<T>) =>
      turns.run(turn, async () => {
        // It may have waited for long.
        await markUsed(set.libraries);
        return work();
      });
    const job = { toolchain, sandbox, source, libraries: set.libraries, env, limits, inTurn, signal };
    return compileHandler(scratch, job, async (compilation): Promise<BuiltHandler> => {
      const { diagnostics, ms: compile_ms } = compilation;
      lap();
      if (!compilation.ok) {
        throwIfDiskFull(compilation);
        return {
          ok: false,
          limit: compilation.outcome === 'timed-out' ? 'compile_timeout' : undefined,
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
        lock: hasCrates({ dependencies }) ? set.libraries.lock : null,
        diagnostics,
        timings: { dependencies_ms, compile_ms, store_ms: lap() },
      };
    });
  }
}

async function prepareSet(
  { sets, toolchain, crateSources }: Pick<BuilderOptions, 'sets' | 'toolchain' | 'crateSources'>,
  { build, turn, dependencies, lock, isFresh, ...source }: Buildable,
): Promise<PreparedSet> {
  try {
    const { contents } = source;
    const surroundings = { contents, allowed: crateSources, target: toolchain.host };
    const local = await localCratesOf(dependencies, surroundings);
    const spec = {
      dependencies,
      async: usesAsync([source.code, ...contents.values()]),
      lock,
      isFresh,
      local,
    };
    return await sets.prepare(spec, turn, build);
  } catch (thrown) {
    if (thrown instanceof CargoProblem) return refusedSet(thrown.message);
    throw thrown;
  }
}

/** How the build of a set ends that has taken too long. */
const TOOK_TOO_LONG = new Set<FailedTool['outcome']>(['timed-out', 'no-progress', 'idle']);

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

/** Each call returns the whole milliseconds since the one before. */
function stopwatch(): () => number {
  let last = performance.now();
  return () => {
    const elapsed = performance.now() - last;
    last += elapsed;
    return Math.round(elapsed);
  };
}
