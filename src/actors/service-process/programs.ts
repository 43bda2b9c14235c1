/** The programs of services, by type. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { NodeProgram } from '../../bootstrap/service-program.js';
import type { Program } from '../../contracts/starter.js';
import type { ServiceType } from '../../model/service-configs.js';

/** Programs in Rust, from `rust/`: calls of these databases are many and small. */
const NATIVE_PROGRAMS = {
  postgres: nativeProgram('postgres-service'),
  sqlite: nativeProgram('sqlite-service'),
} as const satisfies { readonly [T in ServiceType]?: string };

/**
 * Flags of Node for an idle service that takes 15 MiB instead of 30: a small young generation, machine code only for
 * what is used much, and no threads for them. Drivers with large buffers ask for collections (`objstore/buffers.ts`).
 */
const NODE_FLAGS = ['--max-semi-space-size=1', '--optimize-for-size', '--v8-pool-size=0', '--expose-gc'];
/** Data that Node maps for itself and for one thread, MiB, of which it uses some 60: 0.2 GiB, and 1.1 since Node 24. */
const NODE_MB = Number(process.versions.node.split('.')[0]) >= 24 ? 1280 : 256;
/** Data that a native program maps for itself, MiB, its stacks included. */
const NATIVE_MB = 24;

/** Addresses of memory that SQLite has given back to the system in pieces, MiB. The kernel counts them as data. */
const SQLITE_FREED_MB = 1024;

/** MiB. A value of SQLite, and an answer, may have 64, and some of both are held at a time. */
const SQLITE_MEMORY_MB = 1024;

/** The limit of memory of a service, MiB. @param memoryMb the setting */
export function memoryOf(type: ServiceType, memoryMb: number): number {
  return type === 'sqlite' ? SQLITE_MEMORY_MB : memoryMb;
}

/** Why services of a type cannot run yet; undefined when they can. `npm run up` builds their programs last. */
export function missingProgram(type: ServiceType): string | undefined {
  const native = type in NATIVE_PROGRAMS ? NATIVE_PROGRAMS[type as keyof typeof NATIVE_PROGRAMS] : undefined;
  if (native === undefined || existsSync(native)) return undefined;
  const builders = '`npm run up` builds it in the minutes after its first start, and `npm run build` at once';
  return `the program of ${type} services is not built yet: ${builders}`;
}

/** The name by which the starter knows the program of a type. */
export function programName(type: ServiceType): string {
  return type in NATIVE_PROGRAMS ? type : 'node';
}

/** All programs by their names. @param node that of the services in Node */
export function programs({ node, script }: NodeProgram): Readonly<Record<string, Program>> {
  const native = { arguments: [], ownMb: NATIVE_MB, writesFiles: false, sockets: 'internet' } as const;
  return {
    node: {
      file: node,
      arguments: [...NODE_FLAGS, '--max-old-space-size={memoryMb}', script],
      ...{ ownMb: NODE_MB, writesFiles: false, sockets: 'internet' },
    },
    postgres: { ...native, file: NATIVE_PROGRAMS.postgres },
    sqlite: {
      ...{ ...native, file: NATIVE_PROGRAMS.sqlite, ownMb: NATIVE_MB + SQLITE_FREED_MB },
      ...{ writesFiles: true, sockets: 'unix' },
    },
  };
}

function nativeProgram(name: string): string {
  return fileURLToPath(new URL(`../../../native/${name}`, import.meta.url));
}
