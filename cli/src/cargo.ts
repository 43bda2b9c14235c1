/** What cargo knows of the handlers of a project, read without cargo. */
import { dirname, join } from 'node:path';
import { tripleOf } from './generated/cargo-cfg.js';
import { type FoundPackage, type PackagedHandler, packageOf } from './generated/cargo-package.js';
import type { Session } from './session.js';
import type { SourceReads } from './source-reads.js';

export interface PackageOnDisk extends FoundPackage {
  /** Folders in which a change may change it. */
  readonly folders: ReadonlySet<string>;
}

/**
 * The package of a handler.
 * @param folder of edge.yaml, out of which nothing leads
 */
export async function packageIn(
  folder: string,
  handler: PackagedHandler,
  reads: SourceReads,
): Promise<PackageOnDisk> {
  const folders = new Set<string>();
  const problems: string[] = [];
  const {
    found,
    problems: others,
    paths,
  } = await packageOf(handler, {
    read: async (path) => reads.file(folder, path),
    pathsBelow: (within) => {
      const below = reads.paths(join(folder, within));
      for (const one of below.folders) folders.add(one);
      problems.push(...below.problems);
      return below.files.map((path) => within + path);
    },
    parseToml: await reads.parseToml(),
    look: reads.rust,
    target: reads.target,
  });
  for (const path of paths) folders.add(dirname(join(folder, path)));
  return { found, problems: [...problems, ...others], paths, folders };
}

/** The target that a gateway compiles for; it is asked once, when that matters. */
export function targetOfGateway(session: Session): () => Promise<string> {
  let target: Promise<string> | undefined;
  return () => {
    target ??= session.api.get('GET /api/health').then(({ rustc }) => rustc[0]?.host ?? tripleOf('x64'));
    return target;
  };
}

/** The file of cargo's settings of a project. */
export const CONFIG_FILE = /(^|\/)\.cargo\/config(\.toml)?$/;

/** What of cargo's settings is sent: the addresses of registries, and nothing that may be secret. */
export async function registriesOf(config: string): Promise<string> {
  const { parse, stringify } = await import('smol-toml');
  let registries: unknown;
  try {
    registries = parse(config)['registries'];
  } catch {
    return config === '' ? '' : '# not TOML\n[';
  }
  const indexes = Object.entries((registries ?? {}) as Record<string, { readonly index?: unknown }>).flatMap(
    ([name, one]) => (typeof one?.index === 'string' ? [[name, { index: one.index }] as const] : []),
  );
  return stringify({ registries: Object.fromEntries(indexes) });
}
