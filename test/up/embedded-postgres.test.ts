/** The embedded server as a process, above all its first start, which makes the data folder, and where it is made. */
import { type ChildProcess, execFile, fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import {
  appendFile,
  chmod,
  mkdir,
  readlink,
  realpath,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import pg from 'pg';
import { eventually } from '../support/eventually.js';
import { descendantsOf, isRunning, processesWith } from '../support/process-state.js';
import { type TempDir, tempDir } from '../support/temp.js';

const ENTRY = fileURLToPath(new URL('../../src/processes/postgres.js', import.meta.url));

describe('the embedded PostgreSQL', () => {
  let data: TempDir;
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

  let dataDir: string;
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
  /** Waits until `initdb` is in the middle of its work. */
  const initialising = async (child: ChildProcess) => {
    await eventually(() => {
      if (!existsSync(join(dataDir, 'postgres.new/data/PG_VERSION')))
        throw new Error(`Nothing initialised yet:\n${output}`);
    });
    const processes = descendantsOf(child.pid ?? 0).filter(({ command }) => /initdb|--boot/.test(command));
    expect(processes, output).not.to.deep.equal([]);
    return processes.map(({ pid }) => pid);
  };
  /** Runs a statement on the server that it starts, and ends it again. @returns the rows */
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

  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    it(`PostgreSQL leaves nothing running after ${signal} at its first start, and starts the next time`, async () => {
      const child = start();
      const processes = await initialising(child);
      // It shall not end because it happens to be done.
      process.kill(processes[0] ?? 0, 'SIGSTOP');
      await end(child, signal);
      await eventually(() => expect(processes.filter(isRunning)).to.deep.equal([]));
      await expectWorking();
    });
  }

  it('starts PostgreSQL after everything was killed at its first start', async () => {
    const child = start();
    const processes = await initialising(child);
    const closed = once(child, 'close');
    for (const pid of [child.pid ?? 0, ...processes]) process.kill(pid, 'SIGKILL');
    await closed;
    await expectWorking();
  });

  it('starts PostgreSQL after its process was killed at its first start and initdb kept running', async () => {
    const child = start();
    const [initdb = 0] = await initialising(child);
    process.kill(initdb, 'SIGSTOP');
    await end(child, 'SIGKILL');
    await expectWorking();
    expect(isRunning(initdb)).to.equal(false);
  });

  it('reports why the PostgreSQL server does not start', async () => {
    await expectWorking();
    const folder = join(dataDir, 'postgres');
    await appendFile(join(folder, 'postgresql.conf'), 'no_such_setting = 1\n');
    const child = start();
    const [code] = (await once(child, 'close')) as [number];
    expect(code).to.equal(1);
    expect(output).to.match(/PostgreSQL did not start.*no_such_setting/);
  });

  it('ends the PostgreSQL server when its process is killed', async () => {
    const child = start();
    await started(child);
    const server = descendantsOf(child.pid ?? 0).map(({ pid }) => pid);
    expect(server).not.to.deep.equal([]);
    await end(child, 'SIGKILL');
    await eventually(() => expect(server.filter(isRunning)).to.deep.equal([]));
  });

  it('does not end the PostgreSQL server of another process', async () => {
    const child = start();
    await started(child);
    const second = start();
    const [code] = (await once(second, 'close')) as [number];
    expect(code).to.equal(1);
    expect(output).to.match(/Another Edge Gateway uses the database/);
    await end(child, 'SIGTERM');
  });

  /** A folder like the home folders of many systems. */
  const makePrivate = async () => {
    dataDir = join(data.path, 'home of somebody', 'data');
    await mkdir(dataDir, { recursive: true });
    await chmod(dirname(dataDir), 0o700);
  };
  const isRoot = process.getuid?.() === 0;
  const keep = 'CREATE TABLE kept AS SELECT 42 AS value';
  const expectKept = async () => {
    expect(await query('SELECT value FROM kept')).to.deep.equal([{ value: 42 }]);
  };

  it('runs PostgreSQL in a folder that no other user may enter, and finds its data again', async () => {
    await makePrivate();
    await query(keep);
    await expectKept();
    if (isRoot)
      expect(await readlink(join(dataDir, 'postgres'))).to.match(/^\/var\/lib\/edge-gateway-root\//);
  });

  if (isRoot) {
    it('moves the data of PostgreSQL when its folder is closed to others', async () => {
      await makePrivate();
      await chmod(dirname(dataDir), 0o755);
      await query(keep);
      expect((await stat(join(dataDir, 'postgres'))).uid).not.to.equal(0);
      await chmod(dirname(dataDir), 0o700);
      await expectKept();
      expect(await readlink(join(dataDir, 'postgres'))).to.match(/^\/var\/lib\/edge-gateway-root\//);
    });

    /** Moves the data, and leaves it as an interruption does. @returns where the data was moved to */
    const interrupted = async (state: 'copying' | 'before the link') => {
      await makePrivate();
      await query(keep);
      const own = join(dataDir, 'postgres');
      const moved = await readlink(own);
      await promisify(execFile)('cp', ['-a', moved, `${own}.before-move`]);
      await rename(own, `${own}.link`);
      if (state === 'copying') {
        await rename(`${own}.before-move`, own);
        await rm(join(moved, 'global'), { recursive: true });
      }
      return moved;
    };

    it('keeps the data of PostgreSQL when it is killed while it copies the data to another folder', async () => {
      const incomplete = await interrupted('copying');
      await expectKept();
      expect(existsSync(incomplete)).to.equal(false);
      expect(existsSync(join(dataDir, 'postgres.link'))).to.equal(false);
    });

    it('keeps the data of PostgreSQL when it is killed after it has copied the data to another folder', async () => {
      const moved = await interrupted('before the link');
      await expectKept();
      expect(await readlink(join(dataDir, 'postgres'))).to.equal(moved);
      expect(existsSync(join(dataDir, 'postgres.before-move'))).to.equal(false);
    });

    it('starts PostgreSQL after it was killed before it had made its data in another folder', async () => {
      await makePrivate();
      await query('SELECT 1');
      await rm(await readlink(join(dataDir, 'postgres')), { recursive: true });
      await query(keep);
      await expectKept();
    });

    it('finds data of PostgreSQL that an earlier version has put elsewhere', async () => {
      await query(keep);
      const digest = createHash('sha256').update(dataDir).digest('hex').slice(0, 12);
      const moved = join('/var/lib/edge-gateway', digest);
      await mkdir(moved, { recursive: true });
      await rename(join(dataDir, 'postgres'), join(moved, 'postgres'));
      await writeFile(
        join(dataDir, 'postgres.moved'),
        `The PostgreSQL data of this folder is in ${moved}: ...\n`,
      );
      await expectKept();
      await expectKept();
    });

    it('runs PostgreSQL with data that root has restored', async () => {
      await query(keep);
      await promisify(execFile)('chown', ['-R', '0:0', join(dataDir, 'postgres')]);
      await expectKept();
    });

    it('runs PostgreSQL as the same user with data restored with the ids of another machine', async () => {
      await query(keep);
      const folder = join(dataDir, 'postgres');
      const { uid } = await stat(folder);
      const outside = join(data.path, 'outside');
      await writeFile(outside, '');
      await symlink(outside, join(folder, 'link'));
      await promisify(execFile)('chown', ['-hR', '54321:54321', folder]);
      await expectKept();
      for (const path of [folder, join(folder, 'PG_VERSION')]) expect((await stat(path)).uid).to.equal(uid);
      expect((await stat(outside)).uid).to.equal(0);
    });

    it('refuses data of another user to which the folder of PostgreSQL is a link', async () => {
      await query(keep);
      const others = join(data.path, 'others');
      await rename(join(dataDir, 'postgres'), others);
      await promisify(execFile)('chown', ['-R', '54321:54321', others]);
      await symlink(others, join(dataDir, 'postgres'));
      const child = start();
      expect(await once(child, 'close')).to.include(1);
      expect(output).to.include(`chown -hR postgres: ${others}`);
      expect((await stat(others)).uid).to.equal(54321);
      await rm(join(dataDir, 'postgres'));
    });
  }

  it('makes no new password for PostgreSQL when it cannot read the existing one', async () => {
    await mkdir(join(dataDir, 'postgres.password'));
    const child = start();
    const [code] = (await once(child, 'close')) as [number];
    expect(code).to.equal(1);
    expect(output).to.include('EISDIR');
  });

  it('reports a dangling link to the data of PostgreSQL', async () => {
    await symlink(join(data.path, 'gone', 'postgres'), join(dataDir, 'postgres'));
    const child = start();
    const [code] = (await once(child, 'close')) as [number];
    expect(code).to.equal(1);
    expect(output).to.match(/The database is not there: .* is a link to .*gone/);
  });
});
