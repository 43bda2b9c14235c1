/** Becomes another program. Node itself can do so since version 22.15; this one is for all versions. */
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

/** See `rust/execute`. */
const MODULE = fileURLToPath(new URL('../../native/execute.node', import.meta.url));

const FIRST_STREAMS = [0, 1, 2];

/**
 * This process becomes a program, with the same process id and the standard streams that it has.
 * @param keeps other descriptors that stay open
 * @throws Error when it cannot; otherwise it does not return
 */
export function execute(
  file: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  keeps: readonly number[],
): never {
  const become = createRequire(import.meta.url)(MODULE) as (request: string) => never;
  return become(
    JSON.stringify({
      file,
      arguments: [file, ...args],
      environment: Object.entries(environment),
      keeps: [...FIRST_STREAMS, ...keeps],
    }),
  );
}
