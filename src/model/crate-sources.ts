/** Where the crates of a handler are from, as far as its other files and the operator have a say in it. */
import { AppError } from '../errors.js';
import type { Dependencies, Dependency } from './crates.js';
import { describeProblem, type Problem } from './problems.js';
import { type FileRefs, fileAt } from './source-files.js';

/** What crates depend on. */
export interface CrateSurroundings {
  /** The files of the source. */
  readonly files: FileRefs | null;
  /** Origins of the git repositories and registries that crates may come from (CARGO_SOURCES). */
  readonly allowed: readonly string[];
}

/** Where a crate may be from instead of crates.io. */
const PLACES = ['git', 'registry', 'path'] as const;
/** Crates that the SDK has. */
const OF_THE_SDK = new Set(['serde', 'serde_json']);

/** The first thing that is wrong with where crates are from; undefined: nothing. */
export function crateProblem(
  dependencies: Dependencies | null,
  surroundings: CrateSurroundings,
): Problem | undefined {
  for (const [name, crate] of Object.entries(dependencies ?? {})) {
    if (typeof crate === 'string') continue;
    for (const [member, problemOf] of Object.entries(RULES)) {
      const message = problemOf(crate, surroundings, name);
      if (message !== undefined) return { path: [name, member], message };
    }
  }
  return undefined;
}

/**
 * @param place of the dependencies, for messages
 * @throws AppError invalid_dependency that names what is wrong
 */
export function requireCrateSources(
  place: string,
  dependencies: Dependencies | null,
  surroundings: CrateSurroundings,
): void {
  const problem = crateProblem(dependencies, surroundings);
  if (problem) throw new AppError('invalid_dependency', describeProblem(place, problem));
}

/** Whether there is a crate that is among the files of its source. */
export function hasLocalCrates(dependencies: Dependencies | null | undefined): boolean {
  return Object.values(dependencies ?? {}).some(
    (crate) => typeof crate === 'object' && crate.path !== undefined,
  );
}

type Rule = (crate: Dependency, surroundings: CrateSurroundings, name: string) => string | undefined;

/** By the member that is wrong. */
const RULES: Readonly<Record<string, Rule>> = {
  package: ({ package: given }, _, name) => (given === undefined ? undefined : notOfTheSdk(name)),
  git: (crate, { allowed }, name) =>
    crate.git === undefined
      ? undefined
      : (notOfTheSdk(name) ?? besideOthers('git', crate) ?? notAllowed(crate.git, allowed)),
  rev: ({ git, rev }) => {
    if (git === undefined) return rev === undefined ? undefined : 'is only for a crate with `git`';
    return rev === undefined
      ? 'is required with `git`: a whole revision, so that the crate stays what it is'
      : undefined;
  },
  registry: (crate, { allowed }, name) =>
    crate.registry === undefined
      ? undefined
      : (notOfTheSdk(name) ?? besideOthers('registry', crate) ?? notAllowed(crate.registry, allowed)),
  path: ({ path }, { files }, name) => {
    if (path === undefined) return undefined;
    const needed = path === '.' ? 'src/lib.rs' : `${path}/Cargo.toml`;
    const missing = fileAt(files, needed) ? undefined : `there is no ${needed} among the files of the source`;
    return notOfTheSdk(name) ?? missing;
  },
};

function notOfTheSdk(name: string): string | undefined {
  return OF_THE_SDK.has(name) ? 'is not accepted: the SDK has this crate, of crates.io' : undefined;
}

function besideOthers(member: (typeof PLACES)[number], crate: Dependency): string | undefined {
  const other = PLACES.find((place) => place !== member && crate[place] !== undefined);
  return other === undefined ? undefined : `cannot be beside \`${other}\`: a crate is from one place`;
}

function notAllowed(address: string, allowed: readonly string[]): string | undefined {
  const { origin } = new URL(address.replace(/^sparse\+/, ''));
  if (allowed.includes(origin)) return undefined;
  const names = allowed.map((one) => one.replace(/^https:\/\//, ''));
  const those = names.length === 0 ? 'crates.io only' : `crates.io and ${names.join(', ')}`;
  return `is not of a host that the operator allows: crates may be from ${those} (CARGO_SOURCES)`;
}
