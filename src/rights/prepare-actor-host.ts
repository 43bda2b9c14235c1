/** What an actor host needs before it starts, which takes the rights that it was started with. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type StarterSettings, starterCommand } from '../actors/service-process/starter-program.js';
import { warnOfClosedCertificates } from '../bootstrap/certificate-files.js';
import {
  channelFolder,
  handlerSocket,
  makeActorHostFolders,
  objectFolder,
  runDirectory,
  serviceFolder,
  tokenFolder,
} from '../bootstrap/run-directory.js';
import { reachableNodeProgram } from '../bootstrap/service-program.js';
import { makeSqliteFolder } from '../bootstrap/sqlite-folder.js';
import type { Config } from '../config.js';
import { toError } from '../errors.js';
import { refuseSecond } from '../internal/listen.js';
import { type SqliteFolders, sqliteFolders } from '../model/sqlite-folders.js';
import { removeShared } from '../sandbox/remove-tree.js';
import { killAbandoned } from '../sandbox/run-user.js';
import type { Log } from '../util/log.js';

export interface PreparedActorHost {
  readonly runDir: string;
  /** The command line of what starts the processes of services. */
  readonly starter: readonly [string, ...string[]];
}

/** @throws Error when another actor host of this DATA_DIR runs */
export async function prepareActorHost(config: Config, log: Log): Promise<PreparedActorHost> {
  const runDir = await runDirectory(config.DATA_DIR);
  await refuseSecond(handlerSocket(runDir));
  await killAbandoned(runDir);
  // Processes of services end with their actor host.
  for (const folder of [await serviceFolder(runDir), await objectFolder(runDir), await channelFolder(runDir)])
    await empty(folder);
  await makeActorHostFolders(runDir);
  await tokenFolder(runDir);
  await warnOfClosedCertificates(log);
  const settings: StarterSettings = {
    node: await reachableNodeProgram(),
    runDir,
    sqliteFolders: await sqliteFoldersOf(config, log),
  };
  return { runDir, starter: await starterCommand(settings) };
}

async function empty(folder: string): Promise<void> {
  await removeShared(...(await readdir(folder)).map((name) => join(folder, name)));
}

/** Only sqlite services do without their files; each says so. */
async function sqliteFoldersOf(config: Config, log: Log): Promise<SqliteFolders> {
  try {
    return await makeSqliteFolder(config, log);
  } catch (error) {
    log.error({ err: toError(error) }, 'the folder of sqlite services cannot be used');
    return sqliteFolders(config);
  }
}
