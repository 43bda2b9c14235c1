/** Why a sqlite service is not started: its file is not where it may be, or not there any more. */
import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import type { ServiceConfig } from '../model/service-configs.js';
import { type SqliteFolders, sqliteFile, sqliteFolder, sqlitePathProblem } from '../model/sqlite-folders.js';
import { machinesAlive } from '../reconcile/nodes.js';
import type { Store } from '../store/database.js';
import type { HostedService } from '../store/service-activity.js';
import { SQLITE_USER } from '../util/untrusted-users.js';
import type { SeenFile } from './service-process/starter.js';

/**
 * Whether the file of a sqlite service was there before: then no new one is made. A machine does not know that it had
 * another name, as a container has each time that it is made anew. So a file that was opened on others was there,
 * unless all of these are alive beside this one: then this is one more machine, which has a file of its own.
 */
export async function hadFile(
  store: Store,
  service: Pick<HostedService, 'file_hosts' | 'former_files'>,
  { path }: ServiceConfig<'sqlite'>,
  folders: SqliteFolders,
): Promise<boolean> {
  const file = sqliteFile(path, folders);
  // Paths that are written differently may mean the same file.
  const same = Object.entries(service.former_files).filter(([one]) => sqliteFile(one, folders) === file);
  const machines = [...new Set([...service.file_hosts, ...same.flatMap(([, hosts]) => hosts)])];
  if (machines.length === 0) return false;
  if (machines.includes('*') || machines.includes(hostname())) return true;
  const alive = await machinesAlive(store, 'actor-host', machines);
  return machines.some((machine) => !alive.has(machine));
}

/** A config by which no file is made. */
export function requiringExistingFile(config: ServiceConfig): ServiceConfig {
  return 'create_if_missing' in config ? { ...config, create_if_missing: false } : config;
}

/**
 * A service whose file was there never starts with a new empty one: its data are somewhere else.
 * @param hasFile whether it was opened before with this path
 * @param seen what there is of it
 * @returns undefined when it can be started
 */
export function sqliteRefusal(
  { path }: ServiceConfig<'sqlite'>,
  hasFile: boolean,
  folders: SqliteFolders,
  { belongsToRoot, exists }: SeenFile,
): string | undefined {
  const problem = sqlitePathProblem(path, folders);
  if (problem !== undefined) return `its file, ${resolve(path)}, is not opened: config.path ${problem}`;
  if (belongsToRoot) return refusalOfRootsFolder(sqliteFolder(path, folders));
  const file = sqliteFile(path, folders);
  if (!hasFile || exists) return undefined;
  const before = resolve(path);
  const place =
    before !== file && existsSync(before)
      ? `${before} is there, where earlier versions looked for it: move it, or name its folder in SQLITE_DIR`
      : 'if it is in another folder, move it, or name that folder in SQLITE_DIR';
  return (
    `its file, ${file}, does not exist, and no empty one takes its place: ${place}. Then activate it again; ` +
    'to begin without data, give it another path, or make an empty file there'
  );
}

/** A process of a service runs as the owner of its folder, and never as root. */
function refusalOfRootsFolder(folder: string): string {
  return (
    `the folder ${folder} belongs to root, and no service runs as root: give it and its files to another user, such as ` +
    `\`chown -R ${SQLITE_USER}:${SQLITE_USER} ${folder}\`, which can enter the folders above. Then activate it again`
  );
}
