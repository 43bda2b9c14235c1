/** What starts processes of services, as for an actor host. */
import { Starter } from '../../src/actors/service-process/starter.js';
import {
  channelSocket,
  spawnStarter,
  starterCommand,
} from '../../src/actors/service-process/starter-program.js';
import { runDirectory } from '../../src/bootstrap/run-directory.js';
import { reachableNodeProgram } from '../../src/bootstrap/service-program.js';
import type { SqliteFolders } from '../../src/model/sqlite-folders.js';

/** @param folder below which users in use are recorded, and sockets are */
export async function openStarter(folder: string, sqliteFolders: SqliteFolders = [folder]): Promise<Starter> {
  const runDir = await runDirectory(folder);
  const command = await starterCommand({ sqliteFolders, node: await reachableNodeProgram(), runDir });
  return Starter.open(spawnStarter(command), await channelSocket(runDir), () => {
    throw new Error('what starts processes of services has ended');
  });
}
