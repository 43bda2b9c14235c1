/** What processes of services are started with, as an actor host does. */
import type { ServicePrograms } from '../../src/actors/service-process/service-user.js';
import { runDirectory } from '../../src/bootstrap/run-directory.js';
import { reachableNodeProgram } from '../../src/bootstrap/service-program.js';

/** @param folder where users in use are recorded, below it */
export async function servicePrograms(folder: string): Promise<ServicePrograms> {
  return { node: await reachableNodeProgram(), runDir: await runDirectory(folder) };
}
