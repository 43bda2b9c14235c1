/** DATA_DIR: the folder with all that this machine keeps for the product, most of which is nobody else's business. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Config } from './config.js';

const CHECKOUT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

/**
 * Root lets others pass, but not look around: the embedded PostgreSQL runs as another user, and has its folder in
 * there.
 */
const PASSABLE = 0o711;
const PRIVATE = 0o700;
/** Those that nobody else has to reach. */
const PRIVATE_FOLDERS = ['artifacts', 'handlers', 'uploads'];

/** Makes the folder if there is none. One that is there stays as it is: its modes are the operator's. */
export async function makeDataDirectory(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: process.getuid?.() === 0 ? PASSABLE : PRIVATE });
  for (const name of PRIVATE_FOLDERS) await mkdir(join(path, name), { recursive: true, mode: PRIVATE });
}

/** What of cargo's folder can hold passwords. */
const CARGO_SECRETS = ['credentials.toml', 'credentials', 'config.toml', 'config'];

/**
 * Files and folders that programs of strangers must not see, wherever they are.
 * @param tools the environment of cargo
 */
export function secretPaths(
  { DATA_DIR, SQLITE_DIR }: Pick<Config, 'DATA_DIR' | 'SQLITE_DIR'>,
  tools: Readonly<Record<string, string>>,
): string[] {
  const cargo = tools['CARGO_HOME'] ?? join(tools['HOME'] ?? '/', '.cargo');
  return [
    DATA_DIR,
    CHECKOUT,
    ...(SQLITE_DIR === undefined ? [] : [SQLITE_DIR]),
    ...CARGO_SECRETS.map((name) => join(cargo, name)),
  ];
}
