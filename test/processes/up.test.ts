/** `npm run up`, as somebody who has just got the product uses it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, readdir, symlink } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { call } from '../support/http.js';
import { freePort } from '../support/postgres.js';
import { descendantsOf, isRunning, processesWith } from '../support/process-state.js';
import { BUILD_CACHE } from '../support/processes.js';
import { type TempDir, tempDir } from '../support/temp.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const BUILT = 'dist/src/processes/up.js';
const START_LIMIT_MS = 240_000;

interface Running {
  readonly pid: number;
  readonly output: () => string;
  readonly ended: Promise<{ code: number | null; signal: string | null }>;
  /** To the whole process group, as Ctrl-C in a terminal does. */
  interrupt(signal: NodeJS.Signals): void;
}

describe('npm run up', function () {
  this.timeout(START_LIMIT_MS + 60_000);
  let data: TempDir;
  let port: number;
  let gatewayPort: number;
  const children = new Set<ChildProcess>();

  before(async () => {
    data = await tempDir('up');
    await mkdir(BUILD_CACHE, { recursive: true });
    await symlink(BUILD_CACHE, join(data.path, 'build'));
    [port, gatewayPort] = [await freePort(), await freePort()];
  });
  after(async () => {
    // Only when a test has failed is anything left.
    for (const child of children) {
      child.kill('SIGKILL');
      await new Promise((resolve) => child.once('close', resolve));
    }
    await data.remove();
  });

  const run = (script: string, env: Record<string, string> = {}): Running => {
    const { DATABASE_URL, REDIS_URL, API_KEY, ...inherited } = process.env;
    const child = spawn(process.execPath, [script], {
      cwd: ROOT,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...inherited,
        DATA_DIR: data.path,
        PORT: String(port),
        GATEWAY_PORT: String(gatewayPort),
        ...env,
      },
    });
    children.add(child);
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    }
    const { pid = 0 } = child;
    return {
      pid,
      output: () => output,
      ended: new Promise((resolve) => {
        child.once('close', (code, signal) => {
          children.delete(child);
          resolve({ code, signal });
        });
      }),
      interrupt: (signal) => process.kill(-pid, signal),
    };
  };
  /** Waits until it prints what the pattern describes, and returns the first group of it. */
  const printed = async (running: Running, pattern: RegExp) => {
    const match = await eventually(() => {
      const found = pattern.exec(running.output());
      // What has ended prints no more.
      if (!found && isRunning(running.pid)) throw new Error(`Not printed: ${pattern}\n${running.output()}`);
      return found;
    }, START_LIMIT_MS);
    if (!match) throw new Error(`It ended before it printed ${pattern}:\n${running.output()}`);
    return match[1] ?? '';
  };
  /** Waits for the line to try, and tries it. */
  const curl = async (running: Running) => {
    const url = await printed(running, /Try it: +curl (http:\S+)/);
    const answer = await call(url);
    expect(answer.status, answer.text).to.equal(200);
    return { url, text: answer.text };
  };
  const endpoints = async (headers: Record<string, string> = {}) => {
    const { status: answered, text } = await call(`http://127.0.0.1:${port}/api/endpoints`, { headers });
    expect(answered, text).to.equal(200);
    const { data: found } = JSON.parse(text) as { data: { id: string; build_id: string; status: string }[] };
    return found.map(({ id, build_id, status }) => ({ id, build_id, status }));
  };
  const family = () => processesWith(`DATA_DIR=${data.path}\0`);
  const expectNothingLeft = async (before: readonly number[]) => {
    await eventually(() => {
      expect(before.filter(isRunning)).to.deep.equal([]);
      expect(family()).to.deep.equal([]);
    }, 40_000);
    expect(await readdir(data.path)).not.to.include('up.pid');
  };

  let tried: { url: string; text: string };
  let deployed: { id: string; build_id: string; status: string }[];

  it('starts everything from nothing, and shows a line to try that answers', async () => {
    const up = run('scripts/up.mjs');
    tried = await curl(up);
    for (const step of [
      'Building',
      'Starting PostgreSQL',
      'Migrating',
      'Starting worker',
      'Deploying the sample',
    ])
      expect(up.output()).to.include(step);
    expect(up.output()).to.include(`http://127.0.0.1:${port}/api`);
    expect(up.output()).to.match(/^ {2}Sandbox +bubblewrap$/m);
    deployed = await endpoints();
    expect(deployed.map(({ status }) => status)).to.deep.equal(['running']);

    // While it runs, nothing else may run in its folder or on its ports.
    const second = run(BUILT, { PORT: '0', GATEWAY_PORT: '0' });
    expect(await second.ended).to.deep.equal({ code: 1, signal: null });
    expect(second.output()).to.match(new RegExp(`already runs in ${data.path} \\(process ${up.pid}\\)`));
    expect((await call(tried.url)).text, 'the first goes on').to.equal(tried.text);

    const all = [up.pid, ...descendantsOf(up.pid).map(({ pid }) => pid)];
    expect(all.length).to.be.at.least(6);
    up.interrupt('SIGINT');
    expect(await up.ended, up.output()).to.deep.equal({ code: 0, signal: null });
    expect(up.output()).to.match(/Stopped\.\n$/);
    await expectNothingLeft(all);
  });

  it('says which port is taken, and starts nothing', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    try {
      const up = run(BUILT);
      expect(await up.ended).to.deep.equal({ code: 1, signal: null });
      expect(up.output()).to.match(
        new RegExp(`Cannot listen on 127\\.0\\.0\\.1:${port} \\(it is in use\\); set PORT to another port`),
      );
      await expectNothingLeft([]);
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });

  it('finds it all again, without compiling, and honours API_KEY; killed, it leaves nothing running', async () => {
    const up = run(BUILT, { API_KEY: 'the-key' });
    expect(await curl(up)).to.deep.equal(tried);
    expect(up.output()).not.to.match(/Deploying the sample|makes its data folder/);
    expect((await call(`http://127.0.0.1:${port}/api/endpoints`)).status).to.equal(401);
    expect(await endpoints({ authorization: 'Bearer the-key' })).to.deep.equal(deployed);

    const all = descendantsOf(up.pid).map(({ pid }) => pid);
    up.interrupt('SIGKILL');
    expect((await up.ended).signal).to.equal('SIGKILL');
    await eventually(() => expect(all.filter(isRunning)).to.deep.equal([]), 40_000);
  });

  it('can be open to others, but warns; ends at once when it is told twice', async () => {
    // All processes inherit the settings: one port for the metrics of all of them would be taken.
    const up = run(BUILT, { HOST: '0.0.0.0', METRICS_PORT: String(await freePort()) });
    expect((await curl(up)).text).to.equal(tried.text);
    expect(up.output()).to.match(/WARNING: HOST is not a loopback address and API_KEY is not set/);

    const all = descendantsOf(up.pid);
    const worker = all.find(({ command }) => command.includes('jobs/worker'));
    // It will not end when it is asked to.
    process.kill(worker?.pid ?? 0, 'SIGSTOP');
    up.interrupt('SIGINT');
    await printed(up, /Stopping/);
    await eventually(() => {
      if (isRunning(up.pid)) up.interrupt('SIGINT');
      expect(isRunning(up.pid), up.output()).to.equal(false);
    });
    expect(await up.ended, up.output()).to.deep.equal({ code: 0, signal: null });
    expect(up.output()).to.match(/Killing what has not ended[\s\S]*Stopped\.\n$/);
    await expectNothingLeft(all.map(({ pid }) => pid));
  });

  it('shows the whole route of the sample, also when its collection has a base path', async () => {
    const up = run(BUILT);
    await curl(up);
    expect(up.output()).not.to.include('WARNING');
    const collections = `http://127.0.0.1:${port}/api/collections`;
    const { data: found } = JSON.parse((await call(collections)).text) as { data: { id: string }[] };
    const changed = await call(`${collections}/${found[0]?.id}`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: '{"base_path": "/samples"}',
    });
    expect(changed.status, changed.text).to.equal(200);
    up.interrupt('SIGINT');
    await up.ended;

    const again = run(BUILT);
    expect((await curl(again)).url).to.equal(tried.url.replace('/hello/', '/samples/hello/'));
    await call(`${collections}/${found[0]?.id}`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: '{"base_path": null}',
    });
    again.interrupt('SIGINT');
    await again.ended;
  });

  it('starts after it was killed, restarts a process that ends, and ends on SIGTERM', async () => {
    const up = run(BUILT);
    expect(await curl(up)).to.deep.equal(tried);
    const worker = () => descendantsOf(up.pid).find(({ command }) => command.includes('jobs/worker'));
    const first = worker();
    process.kill(first?.pid ?? 0, 'SIGKILL');
    await eventually(() => {
      expect(up.output()).to.include('worker ended by SIGKILL; starting it again');
      expect(worker()?.pid).to.be.a('number').and.not.equal(first?.pid);
    });
    const all = descendantsOf(up.pid).map(({ pid }) => pid);
    up.interrupt('SIGTERM');
    expect(await up.ended, up.output()).to.deep.equal({ code: 0, signal: null });
    await expectNothingLeft(all);
  });

  it('ends cleanly when it is interrupted while it starts', async () => {
    for (const step of [/Starting PostgreSQL/, /Migrating/, /Starting worker/]) {
      const up = run(BUILT);
      await printed(up, step);
      const all = descendantsOf(up.pid).map(({ pid }) => pid);
      up.interrupt('SIGINT');
      expect(await up.ended, up.output()).to.deep.equal({ code: 0, signal: null });
      expect(up.output()).not.to.include('could not start');
      await expectNothingLeft(all);
    }
  });

  it('says what is wrong with its settings', async () => {
    const up = run(BUILT, { PORT: 'eighty' });
    expect(await up.ended).to.deep.equal({ code: 1, signal: null });
    expect(up.output()).to.match(/PORT: must be a whole number from 0 to 65535, not "eighty"/);
  });
});
