/** The files of this machine that compilers, and the untrusted programs they run, can see. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Mount } from '../contracts/launcher.js';
import type { Confinement, View } from '../sandbox/confinement.js';
import type { FolderNames } from './diagnostics.js';
import type { Toolchain } from './toolchain.js';

/**
 * Paths inside the sandbox. They become part of libraries and executables, so that these are the same wherever
 * something is built.
 */
export const INSIDE = {
  toolchain: '/toolchain',
  sdk: '/sdk',
  /** The Cargo.toml of a set and its lock. */
  project: '/project',
  /** CARGO_HOME with the crates of a set. */
  cargo: '/cargo',
  /** Crates that are in folders of the machine, numbered. */
  sources: '/sources',
  /** The output of cargo for a set. */
  target: '/target',
  /** The source of a handler, and the output of rustc. */
  build: '/build',
} as const;

/** The names under which diagnostics show these folders. */
export const INSIDE_NAMES: FolderNames = [
  [INSIDE.toolchain, 'toolchain'],
  [INSIDE.sdk, 'rust-edge-gateway-sdk'],
  [INSIDE.project, '.'],
  [INSIDE.sources, 'sources'],
  [INSIDE.target, 'dependencies'],
  [`${INSIDE.build}/source`, '.'],
  [INSIDE.build, 'build'],
];

/** Links that say which compiler or linker `cc` is, on Debian and its derivatives. */
const ALTERNATIVES = '/etc/alternatives';
const TMP_MB = 64;

/** @param own further paths, read-only and writable */
export function buildView(toolchain: Toolchain, own: Pick<View, 'readOnly' | 'writable'>): View {
  const mounts: Mount[] = [[toolchain.sdk, INSIDE.sdk]];
  // A toolchain of the system is in /usr, which is mounted anyway.
  if (!toolchain.sysroot.startsWith('/usr')) mounts.push([toolchain.sysroot, INSIDE.toolchain]);
  if (existsSync(ALTERNATIVES)) mounts.push([ALTERNATIVES, ALTERNATIVES]);
  return {
    ...own,
    readOnly: [...mounts, ...own.readOnly],
    network: false,
    tmpMb: TMP_MB,
    showsOvercommit: true,
    changesAttributes: true,
  };
}

/** The part of the environment that tools without network access need. */
const NEEDED = /^(PATH|LANG|RUSTUP_HOME|RUSTUP_TOOLCHAIN)$/;
const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/**
 * The environment of build steps. It holds no secrets.
 * @param tools the environment that tools get to download crates
 * @param home a writable folder
 */
export function buildEnvironment(
  toolchain: Toolchain,
  tools: Readonly<Record<string, string>>,
  home: string,
  confinement: Confinement,
): Record<string, string> {
  const common = { HOME: confinement.inside(home), TMPDIR: confinement.inside(home) };
  // In the sandbox, other programs cannot be reached.
  if (confinement.level !== 'limits') {
    const bin = confinement.inside(join(toolchain.sysroot, 'bin'));
    return { ...common, PATH: `${bin}:${SYSTEM_PATH}` };
  }
  const needed = Object.entries(tools).filter(([name]) => NEEDED.test(name));
  return { ...Object.fromEntries(needed), ...common };
}
