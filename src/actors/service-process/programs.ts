/** The programs of services, by type. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { ServiceType } from '../../model/service-configs.js';
import { nodeProgram, type Program } from './limited-process.js';

/** In Rust, from `rust/postgres-service`: calls of databases are many and small. */
export const POSTGRES_PROGRAM = fileURLToPath(new URL('../../../native/postgres-service', import.meta.url));
/** The others: a driver in Node. */
const NODE_PROGRAM = fileURLToPath(new URL('../../processes/service.js', import.meta.url));
/**
 * For an idle service that takes 15 MiB instead of 30: a small young generation, machine code only for what is used
 * much, and no threads for them.
 */
const NODE_FLAGS = ['--max-semi-space-size=1', '--optimize-for-size', '--v8-pool-size=0'];
/** Data that a native program maps for itself, MiB, its stacks included. */
const NATIVE_MB = 16;

/**
 * @param id of the service, for the list of processes
 * @param memoryMb its limit
 * @throws Error when it was not built
 */
export function programOf(type: ServiceType, id: string, memoryMb: number): Program {
  if (type === 'postgres' && !existsSync(POSTGRES_PROGRAM))
    throw new Error(`there is no ${POSTGRES_PROGRAM}: run \`npm run build\``);
  if (type === 'postgres') return { command: [POSTGRES_PROGRAM, id], ownMb: NATIVE_MB };
  return nodeProgram([NODE_PROGRAM, id], [...NODE_FLAGS, `--max-old-space-size=${memoryMb}`]);
}
