/** The embedded server as a process, above all its first start, which makes the data folder. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { appendFile, readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
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
  });
  afterEach(async () => {
    for (const pid of ours()) process.kill(pid, 'SIGKILL');
    await eventually(() => expect(ours()).to.deep.equal([]));
    await data.remove();
  });

  const ours = () => processesWith(`DATA_DIR=${data.path}\0`);
  const start = () => {
    const child = fork(ENTRY, {
      env: { ...process.env, DATA_DIR: data.path },
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
      const folders = ['postgres', 'postgres.new'].map((name) => join(data.path, name, 'PG_VERSION'));
      if (!folders.some(existsSync)) throw new Error(`Nothing initialised yet:\n${output}`);
    });
    const processes = descendantsOf(child.pid ?? 0).filter(({ command }) => /initdb|--boot/.test(command));
    expect(processes, output).not.to.deep.equal([]);
    return processes.map(({ pid }) => pid);
  };
  /** Copies of the password where everybody can read them. */
  const passwordFiles = async () => {
    const password = await readFile(join(data.path, 'postgres.password'), 'utf8');
    const names = (await readdir(tmpdir())).filter((name) => name.startsWith('pg-password-'));
    const texts = await Promise.all(
      names.map((name) => readFile(join(tmpdir(), name), 'utf8').catch(() => '')),
    );
    return names.filter((_name, at) => texts[at]?.includes(password));
  };
  const expectWorking = async () => {
    const child = start();
    const client = new pg.Client(await started(child));
    await client.connect();
    expect((await client.query('SELECT current_database() AS name')).rows).to.deep.equal([
      { name: 'edge_gateway' },
    ]);
    await client.end();
    await end(child, 'SIGTERM');
    await eventually(() => expect(ours()).to.deep.equal([]));
  };

  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    it(`leaves nothing running when it is ended by ${signal} at its first start, and starts the next time`, async () => {
      const child = start();
      const processes = await initialising(child);
      // It shall not end because it happens to be done.
      process.kill(processes[0] ?? 0, 'SIGSTOP');
      await end(child, signal);
      await eventually(() => expect(processes.filter(isRunning)).to.deep.equal([]));
      expect(await passwordFiles()).to.deep.equal([]);
      await expectWorking();
    });
  }

  it('starts after everything was killed at its first start', async () => {
    const child = start();
    const processes = await initialising(child);
    const closed = once(child, 'close');
    for (const pid of [child.pid ?? 0, ...processes]) process.kill(pid, 'SIGKILL');
    await closed;
    await expectWorking();
    expect(await passwordFiles()).to.deep.equal([]);
  });

  it('starts after it was killed at its first start and initdb went on', async () => {
    const child = start();
    const [initdb = 0] = await initialising(child);
    process.kill(initdb, 'SIGSTOP');
    await end(child, 'SIGKILL');
    await expectWorking();
    expect(isRunning(initdb)).to.equal(false);
  });

  it('says why the server does not start', async () => {
    await expectWorking();
    const folder = join(data.path, 'postgres');
    await appendFile(join(folder, 'postgresql.conf'), 'no_such_setting = 1\n');
    const child = start();
    const [code] = (await once(child, 'close')) as [number];
    expect(code).to.equal(1);
    expect(output).to.match(/PostgreSQL did not start.*no_such_setting/);
  });
});
