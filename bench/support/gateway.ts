/** The product under test: its real processes on an embedded PostgreSQL with the settings of `npm run up`. */
import { startEmbeddedPostgres } from '../../src/up/embedded-postgres.js';
import { stopServer } from '../../test/support/postgres.js';
import { type Stack, type StackOptions, startStack } from '../../test/support/processes.js';
import { tempDir } from '../../test/support/temp.js';

/** Runs a measurement with a database server and stacks on it; removes all of them afterwards. */
export async function withStacks<T>(
  options: readonly StackOptions[],
  measure: (...stacks: Stack[]) => Promise<T>,
): Promise<T> {
  const folder = await tempDir('bench');
  const server = await startEmbeddedPostgres(folder.path, () => undefined);
  process.env['TEST_DATABASE_URL'] = server.url;
  const stacks: Stack[] = [];
  try {
    for (const each of options) {
      stacks.push(await startStack({ ...each, env: { LOG_LEVEL: 'warn', ...each.env } }));
    }
    return await measure(...stacks);
  } finally {
    for (const stack of stacks) await stack.close();
    await stopServer();
    await server.stop();
    await folder.remove();
  }
}
