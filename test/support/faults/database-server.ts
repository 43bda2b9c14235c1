/** A separate PostgreSQL server, which can be stopped, restarted and suspended. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runMigrations } from 'bullmq';
import pg from 'pg';
import { migrate } from '../../../src/store/database.js';
import { openTestServer } from '../postgres.js';
import { descendantsOf } from '../process-state.js';

export interface DatabaseServer {
  /** A migrated database, including that of the queues. */
  readonly url: string;
  /** Stops the server; clients are disconnected with an error. */
  stop(): Promise<void>;
  /** Resolves when it accepts connections again. */
  start(): Promise<void>;
  /** Suspends all its processes: connections stay open, without responses. */
  hang(): Promise<void>;
  /** Resumes them. */
  wake(): Promise<void>;
  remove(): Promise<void>;
}

export async function startDatabaseServer(): Promise<DatabaseServer> {
  const { server, remove } = await openTestServer('postgres-of-its-own');
  await server.start();
  const url = `postgres://postgres:postgres@127.0.0.1:${server.port}/postgres`;
  await migrate(url);
  const client = new pg.Client(url);
  await client.connect();
  await runMigrations(client);
  await client.end();

  const signal = async (name: 'SIGSTOP' | 'SIGCONT') => {
    const postmaster = Number((await readFile(join(server.data, 'postmaster.pid'), 'utf8')).split('\n')[0]);
    process.kill(postmaster, name);
    // With a suspended postmaster no session begins; sessions may still end.
    for (const { pid } of descendantsOf(postmaster)) {
      try {
        process.kill(pid, name);
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
      }
    }
  };
  return {
    url,
    stop: () => server.stop(),
    start: () => server.start(),
    hang: () => signal('SIGSTOP'),
    wake: () => signal('SIGCONT'),
    remove,
  };
}
