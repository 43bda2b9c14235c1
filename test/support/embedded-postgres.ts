/** The embedded server as a process, in a data folder of its own for each test. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdir, realpath, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import pg from 'pg';
import { eventually } from './eventually.js';
import { descendantsOf, processesWith } from './process-state.js';
import { type TempDir, tempDir } from './temp.js';

const ENTRY = fileURLToPath(new URL('../../src/processes/postgres.js', import.meta.url));

export interface EmbeddedPostgres {
  /** `DATA_DIR`. */
  readonly dataDir: string;
  /** A folder around it, or itself. */
  readonly folder: string;
  /** What the process has printed that was started last. */
  readonly output: string;
  /** Makes the data folder one like the home folders of many systems, that no other user may enter. */
  makePrivate(): Promise<void>;
  start(): ChildProcess;
  /** Resolves with the URL of the server when it is ready. */
  started(child: ChildProcess): Promise<string>;
  end(child: ChildProcess, signal: NodeJS.Signals): Promise<void>;
  /** Waits until `initdb` is in the middle of its work. @returns its processes */
  initialising(child: ChildProcess): Promise<number[]>;
  /** Runs a statement on the server that it starts, and ends it again. @returns the rows */
  query(sql: string): Promise<unknown[]>;
  expectWorking(): Promise<void>;
  /** Makes data. */
  keep(): Promise<void>;
  /** The data is still there. */
  expectKept(): Promise<void>;
}

/** Makes an empty data folder before each test of a suite, and removes what is left of it after each. */
export function useEmbeddedPostgres(): EmbeddedPostgres {
  let data: TempDir;
  let dataDir: string;
  let output: string;

  beforeEach(async () => {
    data = await tempDir('embedded');
    dataDir = data.path;
  });
  afterEach(async () => {
    for (const pid of ours()) process.kill(pid, 'SIGKILL');
    await eventually(() => expect(ours()).to.deep.equal([]));
    const folder = dirname(await realpath(join(dataDir, 'postgres')).catch(() => join(dataDir, 'postgres')));
    if (folder !== dataDir) await rm(folder, { recursive: true });
    await data.remove();
  });

  /** The entry, and the server with its sessions, whose environment is not ours. */
  const ours = () => [
    ...new Set([...processesWith(`DATA_DIR=${dataDir}\0`), ...processesWith(`PGDATA=${dataDir}`)]),
  ];
  const start = () => {
    const child = fork(ENTRY, {
      env: { ...process.env, DATA_DIR: dataDir },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    }
    return child;
  };
  const started = async (child: ChildProcess) => {
    const [message] = (await Promise.race([
      once(child, 'message'),
      once(child, 'close').then(() => {
        throw new Error(`It ended before it was ready:\n${output}`);
      }),
    ])) as [{ url: string }];
    return message.url;
  };
  const end = async (child: ChildProcess, signal: NodeJS.Signals) => {
    const closed = once(child, 'close');
    child.kill(signal);
    await closed;
  };
  const initialising = async (child: ChildProcess) => {
    await eventually(() => {
      if (!existsSync(join(dataDir, 'postgres.new/data/PG_VERSION')))
        throw new Error(`Nothing initialised yet:\n${output}`);
    });
    const processes = descendantsOf(child.pid ?? 0).filter(({ command }) => /initdb|--boot/.test(command));
    expect(processes, output).not.to.deep.equal([]);
    return processes.map(({ pid }) => pid);
  };
  const query = async (sql: string): Promise<unknown[]> => {
    const child = start();
    const client = new pg.Client(await started(child));
    await client.connect();
    const { rows } = await client.query(sql);
    await client.end();
    await end(child, 'SIGTERM');
    await eventually(() => expect(ours()).to.deep.equal([]));
    return rows;
  };
  const expectWorking = async () => {
    expect(await query('SELECT current_database() AS name')).to.deep.equal([{ name: 'edge_gateway' }]);
  };
  const makePrivate = async () => {
    dataDir = join(data.path, 'home of somebody', 'data');
    await mkdir(dataDir, { recursive: true });
    await chmod(dirname(dataDir), 0o700);
  };
  const keep = async () => {
    await query('CREATE TABLE kept AS SELECT 42 AS value');
  };
  const expectKept = async () => {
    expect(await query('SELECT value FROM kept')).to.deep.equal([{ value: 42 }]);
  };

  return {
    get dataDir() {
      return dataDir;
    },
    get folder() {
      return data.path;
    },
    get output() {
      return output;
    },
    ...{ makePrivate, start, started, end, initialising, query, expectWorking, keep, expectKept },
  };
}
