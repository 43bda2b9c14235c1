/** The program that starts processes of services, `rust/starter`: its command line, and its start. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { channelFolder, objectFolder, serviceFolder } from '../../bootstrap/run-directory.js';
import type { NodeProgram } from '../../bootstrap/service-program.js';
import { isolatedEnvironment } from '../../config.js';
import type { Settings } from '../../contracts/starter.js';
import type { SqliteFolders } from '../../model/sqlite-folders.js';
import { LAUNCHER } from '../../sandbox/launcher.js';
import {
  HAS_UNTRUSTED_USERS,
  PRODUCT_GROUP,
  SERVICE_GROUP,
  SERVICE_USERS,
  SQLITE_USER,
  UNTRUSTED_GROUP,
} from '../../util/untrusted-users.js';
import { programs } from './programs.js';

const STARTER = fileURLToPath(new URL('../../../native/starter', import.meta.url));
/** Its descriptor of the channel to the actor host. */
const CONTROL = 3;

/** What is the same for all processes. */
export interface StarterSettings {
  /** That of the services in Node, where their users can read it. */
  readonly node: NodeProgram;
  /** The folder in which users in use are recorded, and below which sockets are. */
  readonly runDir: string;
  readonly sqliteFolders: SqliteFolders;
}

/** The socket to which channels of processes are opened, that of this process. */
export async function channelSocket(runDir: string): Promise<string> {
  return join(await channelFolder(runDir), `${process.pid}.sock`);
}

/**
 * The path of the program, and its arguments.
 * @throws Error when it was not built
 */
export async function starterCommand(settings: StarterSettings): Promise<[string, ...string[]]> {
  if (!existsSync(STARTER)) throw new Error(`there is no ${STARTER}: run \`npm run build\``);
  const { node, runDir, sqliteFolders } = settings;
  const { first, count } = SERVICE_USERS;
  const users = {
    ...{ first, count, group: UNTRUSTED_GROUP, groups: [UNTRUSTED_GROUP, SERVICE_GROUP] },
    ...{ sqlite: SQLITE_USER, product: PRODUCT_GROUP },
  };
  const starterSettings: Settings = {
    ...{ launcher: LAUNCHER, users: HAS_UNTRUSTED_USERS ? users : null, records: runDir, sqliteFolders },
    channels: await channelSocket(runDir),
    handlerFolder: await serviceFolder(runDir),
    objectFolder: await objectFolder(runDir),
    ...{ programs: programs(node), environment: isolatedEnvironment() },
  };
  return [STARTER, JSON.stringify(starterSettings)];
}

/** Starts it as a child of this process. @returns the channel to it, which closes when it has ended */
export function spawnStarter([file, ...args]: readonly [string, ...string[]]): Duplex {
  const child = spawn(file, args, { stdio: ['ignore', 'ignore', 'inherit', 'pipe'], env: {} });
  const control = child.stdio[CONTROL] as Duplex;
  child.once('error', (error) => control.destroy(error));
  return control;
}
