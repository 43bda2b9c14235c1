/** `npm run up`, as a new user runs it: it builds the product, and is killed and interrupted at all times. */
import { mkdir, readFile, rmdir } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { expect } from 'chai';
import { runDirectory } from '../../src/bootstrap/run-directory.js';
import { UNTRUSTED_GROUP } from '../../src/util/untrusted-users.js';
import { eventually } from '../support/eventually.js';
import { call } from '../support/http.js';
import { freePort } from '../support/ports.js';
import { descendantsOf, isRunning } from '../support/process-state.js';
import type { TempDir } from '../support/temp.js';
import { BUILT_UP, checkoutCopy, START_LIMIT_MS, type UpSite, upSite } from '../support/up.js';

describe('npm run up', function () {
  this.timeout(START_LIMIT_MS + 60_000);
  let checkout: TempDir;
  let site: UpSite;

  before(async () => {
    checkout = await checkoutCopy();
    site = await upSite(checkout.path);
  });
  after(async () => {
    await site?.remove();
    await checkout?.remove();
  });

  const run = (script: string, env: Record<string, string> = {}) => site.run(process.execPath, [script], env);
  const endpoints = async (headers: Record<string, string> = {}) => {
    const { status: answered, text } = await call(`http://127.0.0.1:${site.port}/api/endpoints`, { headers });
    expect(answered, text).to.equal(200);
    const { data: found } = JSON.parse(text) as { data: { id: string; build_id: string; status: string }[] };
    return found.map(({ id, build_id, status }) => ({ id, build_id, status }));
  };

  let tried: { url: string; text: string };
  let deployed: { id: string; build_id: string; status: string }[];

  it('npm run up builds and starts everything from nothing, and shows a request that works', async () => {
    const up = run('scripts/up.mjs');
    tried = await up.curl();
    for (const step of [
      'Building',
      'Starting PostgreSQL',
      'Migrating',
      'Starting worker',
      'Deploying the sample',
    ])
      expect(up.output()).to.include(step);
    expect(up.output()).to.include(`http://127.0.0.1:${site.port}/api`);
    expect(up.output()).to.match(/^ {2}Sandbox +namespaces$/m);
    deployed = await endpoints();
    expect(deployed.map(({ status }) => status)).to.deep.equal(['running']);

    // While it runs, nothing else may run in its folder or on its ports.
    const second = run(BUILT_UP, { PORT: '0', GATEWAY_PORT: '0' });
    expect(await second.ended).to.deep.equal({ code: 1, signal: null });
    expect(second.output()).to.match(new RegExp(`already runs in ${site.dataDir} \\(process ${up.pid}\\)`));
    expect((await call(tried.url)).text, 'the first goes on').to.equal(tried.text);

    const all = [up.pid, ...descendantsOf(up.pid).map(({ pid }) => pid)];
    expect(all.length).to.be.at.least(6);
    up.interrupt('SIGINT');
    expect(await up.ended, up.output()).to.deep.equal({ code: 0, signal: null });
    expect(up.output()).to.match(/Stopped\.\n$/);
    await site.expectNothingLeft(all);
  });

  it('npm run up says which port is in use, and starts nothing', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(site.port, '127.0.0.1', resolve));
    try {
      const up = run(BUILT_UP);
      expect(await up.ended).to.deep.equal({ code: 1, signal: null });
      expect(up.output()).to.match(
        new RegExp(
          `Cannot listen on 127\\.0\\.0\\.1:${site.port} \\(it is in use\\); set PORT to another port`,
        ),
      );
      await site.expectNothingLeft([]);
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });

  it('npm run up releases its lock when it cannot end what killed processes have left', async () => {
    const record = join(await runDirectory(site.dataDir), `user-${UNTRUSTED_GROUP + 1}`);
    await mkdir(record); // instead of a link
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(site.port, '127.0.0.1', resolve));
    try {
      const up = run(BUILT_UP);
      expect(await up.ended).to.deep.equal({ code: 1, signal: null });
      expect(up.output()).to.include('Not everything could be stopped: EINVAL');
      await site.expectNothingLeft([]);
    } finally {
      await new Promise((resolve) => taken.close(resolve));
      await rmdir(record);
    }
  });

  it('npm run up restores everything without compiling, honours API_KEY, and leaves nothing when killed', async () => {
    const up = run(BUILT_UP, { API_KEY: 'the-key' });
    expect(await up.curl()).to.deep.equal(tried);
    expect(up.output()).not.to.match(/Deploying the sample|makes its data folder/);
    expect((await call(`http://127.0.0.1:${site.port}/api/endpoints`)).status).to.equal(401);
    expect(await endpoints({ authorization: 'Bearer the-key' })).to.deep.equal(deployed);

    const all = descendantsOf(up.pid).map(({ pid }) => pid);
    up.interrupt('SIGKILL');
    expect((await up.ended).signal).to.equal('SIGKILL');
    await eventually(() => expect([...all.filter(isRunning), ...site.processes()]).to.deep.equal([]), 40_000);
  });

  it('npm run up says how the first admin is made on a public HOST, and ends on a second Ctrl-C', async () => {
    // All processes inherit the settings: one port for the metrics of all of them would be taken.
    const up = run(BUILT_UP, { HOST: '0.0.0.0', METRICS_PORT: String(await freePort()) });
    expect((await up.curl()).text).to.equal(tried.text);
    expect(up.output()).to.match(
      /HOST is not a loopback address and API_KEY is not set.*npm run user -- create-admin/s,
    );

    const all = descendantsOf(up.pid);
    const worker = all.find(({ command }) => command.includes('jobs/worker'));
    // It will not end when it is asked to.
    process.kill(worker?.pid ?? 0, 'SIGSTOP');
    up.interrupt('SIGINT');
    await up.printed(/Stopping/);
    await eventually(() => {
      if (isRunning(up.pid)) up.interrupt('SIGINT');
      expect(isRunning(up.pid), up.output()).to.equal(false);
    });
    expect(await up.ended, up.output()).to.deep.equal({ code: 0, signal: null });
    expect(up.output()).to.match(/Killing what has not ended[\s\S]*Stopped\.\n$/);
    await site.expectNothingLeft(all.map(({ pid }) => pid));
  });

  it('npm run up shows the whole route of the sample, also when its collection has a base path', async () => {
    const up = run(BUILT_UP);
    await up.curl();
    expect(up.output()).not.to.include('WARNING');
    const collections = `http://127.0.0.1:${site.port}/api/collections`;
    const { data: found } = JSON.parse((await call(collections)).text) as { data: { id: string }[] };
    const changed = await call(`${collections}/${found[0]?.id}`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: '{"base_path": "/samples"}',
    });
    expect(changed.status, changed.text).to.equal(200);
    up.interrupt('SIGINT');
    await up.ended;

    const again = run(BUILT_UP);
    expect((await again.curl()).url).to.equal(tried.url.replace('/hello/', '/samples/hello/'));
    await call(`${collections}/${found[0]?.id}`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: '{"base_path": null}',
    });
    again.interrupt('SIGINT');
    await again.ended;
  });

  it('npm run up restarts a process that was killed, and ends on SIGTERM', async () => {
    const up = run(BUILT_UP);
    expect(await up.curl()).to.deep.equal(tried);
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
    await site.expectNothingLeft(all);
  });

  it('npm run up ends cleanly when it is interrupted while it starts', async () => {
    for (const step of [/Starting PostgreSQL/, /Migrating/, /Starting worker/]) {
      const up = run(BUILT_UP);
      await up.printed(step);
      const all = descendantsOf(up.pid).map(({ pid }) => pid);
      up.interrupt('SIGINT');
      expect(await up.ended, up.output()).to.deep.equal({ code: 0, signal: null });
      expect(up.output()).not.to.include('could not start');
      await site.expectNothingLeft(all);
    }
  });

  it('npm run up leaves nothing running when it is killed while it starts', async () => {
    for (const step of [/Starting PostgreSQL/, /Migrating/, /Starting worker/]) {
      const up = run(BUILT_UP);
      await up.printed(step);
      const all = descendantsOf(up.pid).map(({ pid }) => pid);
      up.interrupt('SIGKILL');
      await up.ended;
      await eventually(
        () => expect([...all.filter(isRunning), ...site.processes()]).to.deep.equal([]),
        40_000,
      );
    }
  });

  it('npm run up ends when the reader of its output ends', async () => {
    for (const step of [/Starting PostgreSQL/, /Starting worker/, /Try it/]) {
      const up = run(BUILT_UP);
      await up.printed(step);
      const all = descendantsOf(up.pid).map(({ pid }) => pid);
      up.stopReading();
      // It notices when it has something to print; when all is started, that is the end of a process.
      const worker = descendantsOf(up.pid).find(({ command }) => command.includes('jobs/worker'));
      if (step.source === 'Try it') process.kill(worker?.pid ?? 0, 'SIGKILL');
      expect(await up.ended, up.output()).to.deep.equal({ code: 0, signal: null });
      expect(up.output()).not.to.match(/EPIPE|^ +at /m);
      await site.expectNothingLeft(all);
    }
  });

  it('npm run up prints sentences on a terminal, logs to a file, and ends when the terminal is closed', async () => {
    const terminal = site.run('script', ['-qefc', `"${process.execPath}" ${BUILT_UP}`, '/dev/null']);
    await terminal.curl();
    const all = descendantsOf(terminal.pid);
    const pidOf = (entry: string) => all.find(({ command }) => command.includes(entry))?.pid ?? 0;
    process.kill(pidOf('actor-host'), 'SIGKILL');
    await terminal.printed(/actor-host ended by SIGKILL; starting it again/);
    expect(terminal.output()).not.to.match(/^\{/m);
    const file = join(site.dataDir, 'log', 'up.log');
    expect(terminal.output()).to.include(file);
    await eventually(async () =>
      expect(await readFile(file, 'utf8')).to.match(/^\{.*"name":"actor-host".*"ready"\}$/m),
    );
    terminal.interrupt('SIGKILL');
    await terminal.ended;
    await site.expectNothingLeft(all.map(({ pid }) => pid));
  });

  it('npm run up completes a deployment of the sample that was interrupted at an earlier start', async () => {
    const first = run(BUILT_UP);
    await first.curl();
    const [sample] = await endpoints();
    const removed = await call(`http://127.0.0.1:${site.port}/api/endpoints/${sample?.id}`, {
      method: 'DELETE',
    });
    expect(removed.status, removed.text).to.equal(200);
    first.interrupt('SIGINT');
    await first.ended;

    const second = run(BUILT_UP);
    await second.printed(/Deploying the sample/);
    second.interrupt('SIGKILL');
    await second.ended;
    await eventually(() => expect(site.processes()).to.deep.equal([]), 40_000);

    const third = run(BUILT_UP);
    expect(await third.curl()).to.deep.equal(tried);
    third.interrupt('SIGINT');
    await third.ended;
  });

  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    it(`npm run up ends the compiler when it gets ${signal} while it builds`, async () => {
      const up = run('scripts/up.mjs');
      const compiler = await eventually(() => {
        const all = descendantsOf(up.pid);
        expect(all.map(({ command }) => command).join(), up.output()).to.include('bin/tsc');
        return all;
      });
      process.kill(up.pid, signal);
      expect(await up.ended, up.output()).to.deep.equal({ code, signal: null });
      await eventually(() => expect(compiler.filter(({ pid }) => isRunning(pid))).to.deep.equal([]));
    });
  }
});
