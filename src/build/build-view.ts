/** What compilers and the programs of strangers that they run see of this machine. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Mount, View } from '../sandbox/confinement.js';
import type { FolderNames } from './diagnostics.js';
import type { Toolchain } from './toolchain.js';

/** Paths inside. They stand in libraries and executables, so that they are the same wherever something is built. */
export const INSIDE = {
  toolchain: '/toolchain',
  sdk: '/sdk',
  /** The Cargo.toml of a set and its lock. */
  project: '/project',
  /** CARGO_HOME with the crates of a set. */
  cargo: '/cargo',
  /** Crates that are in folders of the machine, numbered. */
  sources: '/sources',
  /** What cargo has built of a set. */
  target: '/target',
  /** The source of a handler, and what rustc makes of it. */
  build: '/build',
} as const;

/** As the author of a handler may read of them. */
export const INSIDE_NAMES: FolderNames = [
  [INSIDE.toolchain, 'toolchain'],
  [INSIDE.sdk, 'rust-edge-gateway-sdk'],
  [INSIDE.project, '.'],
  [INSIDE.sources, 'sources'],
  [INSIDE.target, 'dependencies'],
  [INSIDE.build, '.'],
];

/** Says which compiler or linker `cc` is, on Debian and its kin. */
const ALTERNATIVES = '/etc/alternatives';
const TMP_MB = 64;

/** @param own what else there is, read-only and writable */
export function buildView(toolchain: Toolchain, own: Pick<View, 'readOnly' | 'writable'>): View {
  const mounts: Mount[] = [[toolchain.sdk, INSIDE.sdk]];
  // One of the system is where all programs are.
  if (!toolchain.sysroot.startsWith('/usr')) mounts.push([toolchain.sysroot, INSIDE.toolchain]);
  if (existsSync(ALTERNATIVES)) mounts.push([ALTERNATIVES, ALTERNATIVES]);
  return { ...own, readOnly: [...mounts, ...own.readOnly], network: false, tmpMb: TMP_MB };
}

/** Of the environment that tools get, what one needs that downloads nothing. */
const NEEDED = /^(PATH|LANG|RUSTUP_HOME|RUSTUP_TOOLCHAIN)$/;
const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/**
 * The environment of what is built: nothing of it is worth reading.
 * @param tools the environment that tools get to download crates
 * @param home a writable folder, as it is called where the tool runs
 * @param inside how paths are called there
 */
export function buildEnvironment(
  toolchain: Toolchain,
  tools: Readonly<Record<string, string>>,
  home: string,
  inside: (path: string) => string,
): Record<string, string> {
  const common = { HOME: home, TMPDIR: home };
  const bin = join(toolchain.sysroot, 'bin');
  // Where paths have other names, those of the variables mean nothing.
  if (inside(toolchain.sdk) !== toolchain.sdk) return { ...common, PATH: `${inside(bin)}:${SYSTEM_PATH}` };
  const needed = Object.entries(tools).filter(([name]) => NEEDED.test(name));
  return { ...Object.fromEntries(needed), ...common };
}
