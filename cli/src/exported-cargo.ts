/** The Cargo project of an export, for editors: edge.yaml has the crates of each handler, and applies without it. */
import { basename } from 'node:path';
import {
  CARGO_CONFIG,
  type Crates,
  cargoConfig,
  cargoToml,
  givenCrates,
  type Program,
  packageName,
  type Registry,
} from './cargo-project.js';
import { usesAsync } from './generated/cargo-package.js';
import { type Crate, PROJECT_FILE } from './project.js';
import type { FileContent } from './sources.js';

type Files = Readonly<Record<string, FileContent>>;

interface ExportedEndpoint {
  readonly handler?: string;
  readonly root?: string;
  readonly edition?: string;
  readonly dependencies?: Crates;
}

const HEAD = `# For cargo and editors. The crates of each handler are those in ${PROJECT_FILE}.`;

export interface ExportedCargo {
  readonly files: Files;
  /** What one package cannot say of all handlers. */
  readonly notes: readonly string[];
}

/** @param name of the folder */
export async function exportedCargo(name: string, files: Files, registry: Registry): Promise<ExportedCargo> {
  const { parse } = await import('yaml');
  const { endpoints = [] } = (parse(String(files[PROJECT_FILE] ?? '')) ?? {}) as {
    readonly endpoints?: readonly ExportedEndpoint[];
  };
  const ours = endpoints.filter(({ handler }) => handler !== undefined && !isInPackage(handler, files));
  if (ours.length === 0) return { files: {}, notes: [] };
  const notes: string[] = [];
  const crates = new Map<string, Crate>();
  for (const { dependencies = {}, root } of ours)
    for (const [crate, said] of Object.entries(dependencies)) {
      const placed = placedCrate(said, root);
      const other = crates.get(crate);
      if (other === undefined) crates.set(crate, placed);
      else if (JSON.stringify(other) !== JSON.stringify(placed))
        notes.push(
          `Handlers have ${crate} in several ways; Cargo.toml has the first: ${JSON.stringify(other)}.`,
        );
    }
  const sources = Object.entries(files).filter(([path]) => path.endsWith('.rs'));
  const isAsync = usesAsync(sources.map(([, content]) => String(content)));
  const edition = ours.every((one) => one.edition === '2024') ? '2024' : '2021';
  const text = cargoToml(HEAD, {
    ...{ name: packageName(name), edition, programs: programsOf(ours, edition) },
    crates: { ...givenCrates(isAsync), ...Object.fromEntries(crates) },
  });
  return { files: { 'Cargo.toml': text, [CARGO_CONFIG]: cargoConfig(registry) }, notes: [...new Set(notes)] };
}

/** A handler that came with its package has it. */
function isInPackage(handler: string, files: Files): boolean {
  const names = handler.split('/').slice(0, -1);
  return [...names.keys(), names.length].some((count) =>
    Object.hasOwn(files, [...names.slice(0, count), 'Cargo.toml'].join('/')),
  );
}

/** Paths of local crates are relative to the root of the source. */
function placedCrate(crate: Crate, root: string | undefined): Crate {
  if (typeof crate === 'string' || typeof crate['path'] !== 'string' || root === undefined) return crate;
  return { ...crate, path: crate['path'] === '.' ? root : `${root}/${crate['path']}` };
}

/** Each handler once, with a name of its own. */
function programsOf(endpoints: readonly ExportedEndpoint[], edition: string): Program[] {
  const programs = new Map<string, Program>();
  const names = new Set<string>();
  for (const { handler = '', edition: own = '2021' } of endpoints) {
    if (programs.has(handler)) continue;
    const plain = basename(handler, '.rs').replace(/\W+/g, '_') || 'handler';
    let name = plain;
    for (let count = 2; names.has(name); count++) name = `${plain}_${count}`;
    names.add(name);
    programs.set(handler, { name, path: handler, ...(own !== edition && { edition: own }) });
  }
  return [...programs.values()];
}
