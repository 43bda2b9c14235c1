/** Adds what handlers need to files of cargo that are there: lines of their own, so that all else stays as it is. */
import { isDeepStrictEqual } from 'node:util';
import {
  type Crates,
  cargoConfig,
  crateLines,
  givenCrates,
  type Program,
  programText,
  REGISTRY,
  type Registry,
} from './cargo-project.js';
import { isTable, type TomlTable, tableIn } from './generated/cargo-manifest.js';

export interface Addition {
  /** The file with what was missing; undefined: nothing was, or it cannot be added. */
  readonly text?: string;
  /** What its author has to add. */
  readonly missing?: string;
}

/** @param program of a new handler */
export async function addToCargoToml(
  text: string,
  isAsync: boolean,
  program: Program | undefined,
): Promise<Addition> {
  const before = await parsed(text);
  if (!before) return { missing: `[dependencies]\n${crateLines(givenCrates(isAsync))}` };
  const dependencies = tableIn(before, 'dependencies');
  const crates = Object.fromEntries(
    Object.entries(givenCrates(isAsync)).filter(([name]) => !Object.hasOwn(dependencies, name)),
  );
  const hasProgram = programsOf(before).some(({ path }) => path === program?.path);
  const bin = program === undefined || hasProgram ? '' : programText(program);
  if (Object.keys(crates).length === 0 && bin === '') return {};
  const missing = `${bin}[dependencies]\n${crateLines(crates)}`;
  if (!isTable(before['package'])) return { missing };
  const added = `${withCrates(text, crates)}${bin === '' ? '' : `\n${bin}`}`;
  const after = await parsed(added);
  const expected = {
    ...before,
    dependencies: { ...dependencies, ...((await parsed(crateLines(crates))) ?? {}) },
    ...(program && bin !== '' && { bin: [...programsOf(before), program] }),
  };
  return after && isDeepStrictEqual(plain(after), plain(expected)) ? { text: added } : { missing };
}

export async function addToConfig(text: string, registry: Registry): Promise<Addition> {
  const lines = cargoConfig(registry);
  const before = await parsed(text);
  if (before && Object.hasOwn(tableIn(before, 'registries'), REGISTRY)) return {};
  const added = `${withLineEnd(text)}${text.trim() === '' ? '' : '\n'}${lines}`;
  return before && (await parsed(added)) ? { text: added } : { missing: lines };
}

/** Below the title of the table, or in a table of their own at the end. */
function withCrates(text: string, crates: Crates): string {
  const lines = crateLines(crates);
  if (lines === '') return withLineEnd(text);
  const title = /^\[dependencies\][ \t]*(?:#.*)?\r?\n/m.exec(text);
  if (!title) return `${withLineEnd(text)}\n[dependencies]\n${lines}`;
  const at = title.index + title[0].length;
  return withLineEnd(text.slice(0, at) + lines + text.slice(at));
}

function withLineEnd(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`;
}

function programsOf({ bin }: TomlTable): readonly TomlTable[] {
  return Array.isArray(bin) ? bin.filter(isTable) : [];
}

/** Undefined: it is not TOML. */
async function parsed(text: string): Promise<TomlTable | undefined> {
  const { parse } = await import('smol-toml');
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}

function plain(table: object): unknown {
  return JSON.parse(JSON.stringify(table));
}
