/** Why a dependency set could not be built, in sentences for the author of a handler. */
import { realpath } from 'node:fs/promises';
import type { Diagnostic } from '../model/diagnostic.js';
import { INSIDE_NAMES } from './build-view.js';
import { cargoDiagnostics } from './cargo-output.js';
import { type FailedTool, type FolderNames, plain, whyEnded, withoutMachinePaths } from './diagnostics.js';
import { missingTool } from './missing-tools.js';
import type { ToolLimits, ToolResult } from './run-tool.js';
import type { SetProgress } from './set-progress.js';
import type { Toolchain } from './toolchain.js';

/** Why a set could not be built, and in which step. */
export interface FailedSet extends FailedTool {
  readonly step: 'download' | 'compile';
  /** How many crates were compiled before, in this try. */
  readonly built: number;
  /** It was not cargo that has failed: what was asked for is not accepted. */
  readonly isRefused?: true;
}

/** What has failed, and where. */
interface Failure {
  readonly step: FailedSet['step'];
  readonly limits: ToolLimits;
  readonly toolchain: Toolchain;
  /** The folders that are shown as the project's own, and as that of the libraries. */
  readonly projects: readonly string[];
  readonly target?: string;
  /** The folder of cargo's downloads. */
  readonly cargoHome: string;
  /** How far it was, and how many crates it had compiled itself. */
  readonly progress?: { readonly state: SetProgress; readonly built: number };
}

/** Build scripts whose processes wait this long wait for ever: there is no network, and nobody who types. */
const MOST_IDLE_MS = 60_000;

/** How long a set that has this limit may wait without using the processor, milliseconds. */
export function idleMsOf(timeoutMs: number): number {
  return Math.min(timeoutMs, MOST_IDLE_MS);
}

export async function failedSet(result: ToolResult, failure: Failure): Promise<FailedSet> {
  const { step, limits, progress } = failure;
  const ended = whyUnfinished(result.outcome, limits, progress?.state) ?? whyEnded(result.outcome, limits);
  return {
    ok: false,
    outcome: result.outcome,
    diskMayBeFull: result.diskMayBeFull,
    ...{ step, built: progress?.built ?? 0 },
    diagnostics: ended ? [ended] : await whatCargoSays(result, failure),
  };
}

/** A failure that no tool has reported. */
export function refusedSet(message: string): FailedSet {
  return {
    ...{ ok: false, outcome: 'exited', diskMayBeFull: false, step: 'download', built: 0 },
    isRefused: true,
    diagnostics: [plain(message)],
  };
}

async function whatCargoSays(result: ToolResult, failure: Failure): Promise<readonly Diagnostic[]> {
  const missing = NOT_LET_IN.test(result.stderr) ? NO_CREDENTIAL : missingTool(result.stderr);
  const said = withoutMachinePaths(cargoDiagnostics(result), await namesOf(failure));
  return missing ? [missing, ...said] : said;
}

/** What cargo and git say of a host that wants to know who asks. */
const NOT_LET_IN =
  /could not read Username|failed to authenticate|authentication failed|no token found|response code:? 40[13]|returned error: 40[13]|got 40[13]/i;
const NO_CREDENTIAL = plain(
  'A host of crates does not let the gateway in: the operator gives it a secret for that (CARGO_CREDENTIALS), or the ' +
    'one that it has is wrong.',
);

async function namesOf({ projects, target, toolchain, cargoHome }: Failure): Promise<FolderNames> {
  const names: FolderNames = [
    ...projects.map((project) => [project, '.'] as const),
    ...(target === undefined ? [] : [[target, 'dependencies'] as const]),
    [toolchain.sdk, 'rust-edge-gateway-sdk'],
    [cargoHome, 'cargo'],
  ];
  // Tools resolve symbolic links inconsistently.
  const resolved = names.map(async ([path, name]) => [await realpath(path).catch(() => path), name] as const);
  return [...names, ...(await Promise.all(resolved)), ...INSIDE_NAMES];
}

/** The message for crates that took too long; undefined when they ended otherwise. */
function whyUnfinished(
  outcome: ToolResult['outcome'],
  { timeoutMs }: ToolLimits,
  progress: SetProgress | undefined,
): Diagnostic | undefined {
  const crate = progress?.crate ? `The crate ${progress.crate}` : 'A crate';
  const kept = progress ? ` The ${progress.crates} of ${progress.of} crates that are built are kept.` : '';
  switch (outcome) {
    case 'timed-out':
      return plain(`The crates were not downloaded within ${timeoutMs / 1000} s (CRATES_TIMEOUT_MS).`);
    case 'no-progress':
      return plain(
        `${crate} was not built within ${timeoutMs / 1000} s of processor time, and was stopped ` +
          `(CRATES_TIMEOUT_MS).${kept}`,
      );
    case 'idle':
      return plain(
        `${crate} waited for ${idleMsOf(timeoutMs) / 1000} s without using the processor, and was stopped: its build script may ` +
          `want a network, or an input, which builds do not have.${kept}`,
      );
    default:
      return undefined;
  }
}
