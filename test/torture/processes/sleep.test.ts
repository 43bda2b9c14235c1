/** Handlers that are ended while nobody calls them, and started by the next request, over HTTP with real processes. */
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { type Database, openDatabase } from '../../../src/store/database.js';
import { HAS_UNTRUSTED_USERS } from '../../../src/util/untrusted-users.js';
import { eventually } from '../../support/eventually.js';
import { expectData, expectFailure } from '../../support/expect.js';
import { call } from '../../support/http.js';
import { outcomes, startLoad } from '../../support/load.js';
import { frontOf, isRunning } from '../../support/process-state.js';
import { must, type Stack, startStack } from '../../support/processes.js';
import { type TempDir, tempDir } from '../../support/temp.js';

/** Less than the tests wait for anything. */
const IDLE_MS = 300;

/** Answers with its number, or as the query says; does not start while it has the variable `BROKEN`. */
function sleeper(number: number): string {
  return `
use rust_edge_gateway_sdk::prelude::*;
fn handle(req: Request) -> Response {
    match req.query_param("do").map(String::as_str) {
        Some("greeting") => Response::text(200, std::env::var("GREETING").unwrap_or_default()),
        Some("wait") => {
            while !std::path::Path::new("/tmp/go-on").exists() {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            Response::text(200, "waited")
        }
        _ => Response::text(200, "${number}"),
    }
}
mod real { use super::*; handler_loop!(handle); pub fn run() { main() } }
fn main() {
    if std::env::var("BROKEN").is_ok() {
        eprintln!("broken by its variables");
        std::process::exit(9);
    }
    real::run()
}
`;
}

interface View {
  readonly id: string;
  readonly status: string;
  readonly running: boolean;
  readonly pid: number | null;
  readonly last_error: string | null;
  readonly artifact?: string;
}

describe('handlers that sleep', function () {
  this.timeout(120_000);
  let stack: Stack;
  let database: Database;
  let count = 0;
  /** Endpoints that have fallen asleep together: a deployment keeps handlers awake for two seconds. */
  let sleeping: { readonly id: string; readonly path: string }[];
  before(async () => {
    const env = { HANDLER_IDLE_MS: String(IDLE_MS), GATEWAY_CONCURRENCY: '3', LOG_LEVEL: 'debug' };
    stack = await startStack({ env });
    database = openDatabase(stack.databaseUrl, () => undefined);
    sleeping = await Promise.all(Array.from({ length: 8 }, () => deploy()));
    await Promise.all(sleeping.map(({ id }) => asleep(id)));
  });
  after(async () => {
    await database?.close();
    await stack?.close();
  });

  const gateway = () => stack.processes.get('gateway') ?? expect.fail('no gateway');
  const view = async (id: string) => expectData<View>(await stack.api.get(`/api/endpoints/${id}`));
  const start = async (id: string) =>
    expectData<{ pid: number }>(await stack.api.post(`/api/endpoints/${id}/start`)).pid;
  const limit = (id: string, limits: object | null) =>
    must(stack.api.put(`/api/endpoints/${id}`, { limits }));
  const variables = (id: string, values: object) =>
    must(stack.api.put(`/api/endpoints/${id}/variables`, values));
  const get = (path: string, query = '') => call(`${stack.gatewayUrl}${path}${query}`);
  const expectAnswer = async (path: string, text: string, query = '') => {
    const answer = await get(path, query);
    expect([answer.status, answer.text]).to.deep.equal([200, text]);
  };
  /** Deploys one that answers with its number. */
  const deploy = async (number = 1, more: object = {}) => {
    const path = `/sleeper/${++count}`;
    return { path, id: await stack.deploy({ path, code: sleeper(number), ...more }) };
  };
  /** One that is asleep, and that no other test has. */
  const nextSleeping = () => sleeping.pop() ?? expect.fail('too few endpoints are asleep');
  const asleep = (id: string) =>
    eventually(async () => {
      const seen = await view(id);
      expect([seen.status, seen.running, seen.pid]).to.deep.equal(['running', true, null]);
    });
  /** The process of one that runs, or that a request to `path` starts. */
  const awake = (id: string, path?: string) =>
    eventually(async () => {
      const { pid } = await view(id);
      if (pid === null && path !== undefined) await get(path);
      return pid ?? expect.fail('it is still asleep');
    });
  /** Resolves when the gateway has reconciled the last change of an endpoint. */
  const observed = (id: string) =>
    eventually(async () => {
      const found = await database
        .knex('observations')
        .join('endpoints', 'endpoints.id', 'observations.endpoint_id')
        .where({ endpoint_id: id })
        .whereRaw('observations.version = endpoints.version');
      expect(found).to.have.length(1);
    });
  const running = async () =>
    expectData<{ endpoints_running: number }>(await stack.api.get('/api/stats')).endpoints_running;
  const gauge = async () =>
    Number(
      /^edge_gateway_endpoints_asleep (\d+)$/m.exec(String((await stack.api.get('/metrics')).body))?.[1],
    );
  /** How often the gateway has said so of an endpoint. */
  const said = (id: string, message: string) =>
    gateway().logged.lines.filter(({ msg, endpoint_id }) => msg === message && endpoint_id === id).length;

  it('ends a handler that has had no request for a while, and starts it with the next one', async () => {
    const { id, path } = await deploy();
    const first = await awake(id, path);
    const [counted, sleeping] = [await running(), await gauge()];
    await asleep(id);
    await eventually(() => expect(isRunning(first)).to.equal(false));
    expect(await running()).to.equal(counted);
    await eventually(async () => expect(await gauge()).to.be.greaterThan(sleeping));
    await expectAnswer(path, '1');
    const second = await awake(id, path);
    expect(second).not.to.equal(first);
    await asleep(id);
    // The second start is that of a request, and not worth an entry at level info.
    const ready = gateway().logged.lines.filter(
      ({ msg, endpoint_id }) => msg === 'handler ready' && endpoint_id === id,
    );
    const [, ...later] = ready.map(({ level }) => level);
    expect(ready[0]?.level).to.equal(30);
    expect(new Set(later)).to.deep.equal(new Set([20]));
    // It was never an error or a crash.
    expect(said(id, 'handler crashed')).to.equal(0);
    expect((await view(id)).last_error).to.equal(null);
  });

  it('keeps a handler awake while a request is in it, however long that takes', async () => {
    const { id, path } = nextSleeping();
    const waiting = get(path, '?do=wait');
    const pid = await awake(id);
    // Others come and go meanwhile, and it is idle but for this one for longer than it may be.
    const other = nextSleeping();
    await get(other.path);
    await asleep(other.id);
    expect((await view(id)).pid).to.equal(pid);
    await writeFile(`/proc/${pid}/root/tmp/go-on`, '');
    expect((await waiting).text).to.equal('waited');
    await asleep(id);
  });

  it('starts a sleeping handler by `start`, which returns its process, and leaves an awake one alone', async () => {
    const { id, path } = nextSleeping();
    const pid = await start(id);
    expect(isRunning(pid)).to.equal(true);
    expect(await start(id)).to.equal(pid);
    await expectAnswer(path, '1');
    await asleep(id);
    const [one, other] = await Promise.all([start(id), start(id)]);
    expect(one).to.equal(other).and.not.equal(pid);
  });

  it('applies changed limits and variables to a sleeping handler with its next request, and not before', async () => {
    const { id, path } = await deploy(1, { limits: { timeout_ms: 20_000 } });
    await variables(id, { GREETING: 'hello' });
    await eventually(() => expectAnswer(path, 'hello', '?do=greeting'));
    await asleep(id);
    const starts = said(id, 'handler ready');
    await variables(id, { GREETING: 'good morning' });
    await limit(id, { timeout_ms: 100, memory_mb: 200 });
    await limit(id, { timeout_ms: 10_000, memory_mb: 200, open_files: 100 });
    await observed(id);
    expect(said(id, 'handler ready')).to.equal(starts);
    expect(await view(id)).to.include({ status: 'running', pid: null });
    await expectAnswer(path, 'good morning', '?do=greeting');
    await eventually(() => expect(said(id, 'handler ready')).to.equal(starts + 1));
    await eventually(async () => {
      // It may fall asleep before its process is looked at.
      const limits = await readFile(`/proc/${await awake(id, path)}/limits`, 'utf8');
      expect(/^Max open files\s+(\d+)/m.exec(limits)?.[1]).to.equal('100');
    });
  });

  it('redeploys a sleeping handler without a failed request', async () => {
    const { id, path } = await deploy(1);
    await asleep(id);
    const code = sleeper(2);
    const load = await startLoad({
      targets: [stack.gatewayUrl],
      clients: 3,
      request: () => ({ path, text: /^[12]$/ }),
      pauseMs: IDLE_MS * 2,
    });
    expectData(await stack.api.post(`/api/endpoints/${id}/deploy`, { code }), 200);
    await expectAnswer(path, '2');
    expect(outcomes(await load.stop())).to.deep.equal({});
    await asleep(id);
    await expectAnswer(path, '2');
  });

  it('keeps a sleeping handler answering as before when its new version does not start', async () => {
    const { id, path } = await deploy(1);
    await asleep(id);
    const load = await startLoad({
      targets: [stack.gatewayUrl],
      clients: 3,
      request: () => ({ path, text: '1' }),
      pauseMs: IDLE_MS * 2,
    });
    await asleep(id);
    const code = sleeper(3).replace('is_ok()', 'is_err()');
    expectFailure(await stack.api.post(`/api/endpoints/${id}/deploy`, { code }), 'handler_start_failed');
    await expectAnswer(path, '1');
    expect(outcomes(await load.stop())).to.deep.equal({});
    expect(await view(id)).to.include({ status: 'running', last_error: null });
  });

  it('stops, starts and deletes an endpoint whose handler sleeps', async () => {
    const { id, path } = nextSleeping();
    await must(stack.api.post(`/api/endpoints/${id}/stop`));
    expect(await view(id)).to.include({ status: 'stopped', running: false, pid: null });
    expect((await get(path)).status).to.equal(503);
    expect(await start(id)).to.be.a('number');
    await expectAnswer(path, '1');
    await asleep(id);
    await must(stack.api.delete(`/api/endpoints/${id}`));
    await eventually(async () => expect((await get(path)).status).to.equal(404));
  });

  it('keeps a handler with `min_instances: 1` awake, and starts one that sleeps', async () => {
    const { id } = nextSleeping();
    const kept = await deploy(1, { limits: { min_instances: 1 } });
    const pid = await awake(kept.id);
    await limit(id, { min_instances: 1 });
    const started = await awake(id);
    const other = await deploy();
    await asleep(other.id);
    expect((await view(id)).pid).to.equal(started);
    expect((await view(kept.id)).pid).to.equal(pid);
    await limit(id, null);
    await limit(kept.id, null);
    await Promise.all([asleep(id), asleep(kept.id)]);
  });

  it('allows an endpoint a shorter `idle_ms` than that of the configuration, and no longer one', async () => {
    const put = (limits: object) => stack.api.put(`/api/endpoints/${id}`, { limits });
    const { id } = await deploy(1, { limits: { idle_ms: 50 } });
    await asleep(id);
    for (const idle_ms of [0, IDLE_MS + 1]) {
      const reason = new RegExp(`limits.idle_ms: must be at most ${IDLE_MS}.*HANDLER_IDLE_MS`);
      expectFailure(await put({ idle_ms }), 'invalid_input', reason);
    }
    for (const limits of [{ idle_ms: -1 }, { min_instances: 2 }, { min_instances: null }])
      expectFailure(await put(limits), 'invalid_input');
  });

  it('answers 503 for a sleeping handler that no longer starts, shows the error, and recovers', async () => {
    const { id, path } = nextSleeping();
    await variables(id, { BROKEN: 'yes' });
    await eventually(async () => expect((await get(path)).status).to.equal(503));
    await eventually(async () => {
      const { status, last_error } = await view(id);
      expect(status).to.equal('error');
      expect(last_error).to.match(/did not start: it ended with exit code 9.*broken by its variables/s);
    });
    expect((await get(path)).status).to.equal(503);
    await variables(id, {});
    await eventually(async () => expect((await get(path)).status).to.equal(200));
    await eventually(async () => expect((await view(id)).status).to.equal('running'));
    await asleep(id);
  });

  it('answers 503 for a sleeping handler whose executable is missing, and recovers', async () => {
    const { id, path } = await deploy(4);
    await asleep(id);
    const ready = gateway().logged.lines.find(
      ({ msg, endpoint_id }) => msg === 'handler ready' && endpoint_id === id,
    );
    const artifact = String(ready?.['artifact']);
    const folders = [join('artifacts', artifact.slice(0, 2)), 'handlers'];
    const places = folders.map((folder) => join(stack.dataDir, folder, artifact));
    for (const place of places) await rename(place, `${place}.away`);
    expect((await get(path)).status).to.equal(503);
    for (const place of places) await rename(`${place}.away`, place);
    await eventually(() => expectAnswer(path, '4'));
  });

  it('starts a sleeping handler for a queued request', async () => {
    const { id } = nextSleeping();
    const path = `/api/endpoints/${id}/enqueue`;
    const { job_id } = expectData<{ job_id: string }>(await stack.api.post(path, {}), 201);
    await eventually(async () => {
      const job = expectData<object>(await stack.api.get(`/api/jobs/${job_id}`));
      expect(job).to.include({ state: 'succeeded', last_status: 200, attempts: 1 });
    });
    await asleep(id);
  });

  it('keeps sticky callers on their version when both versions of an endpoint sleep', async () => {
    const { id, path } = await deploy(1);
    const body = { code: sleeper(2), percent: 50 };
    expectData(await stack.api.post(`/api/endpoints/${id}/deploy`, body), 200);
    const targets = [1, 2].map((version) => ({ version, percent: 50 }));
    const sticky = { header: 'X-User' };
    expectData(await stack.api.put(`/api/endpoints/${id}/deployment`, { targets, sticky }), 200);
    const as = async (user: string) =>
      (await call(`${stack.gatewayUrl}${path}`, { headers: { 'x-user': user } })).text;
    const users = Array.from({ length: 6 }, (_none, at) => `user ${at}`);
    const before = await Promise.all(users.map(as));
    expect(new Set(before)).to.deep.equal(new Set(['1', '2']));
    for (const [at, user] of users.entries()) {
      await asleep(id);
      expect(await as(user)).to.equal(before[at]);
    }
  });

  it('wakes a sleeping handler after the front was replaced, or killed', async () => {
    const { id, path } = nextSleeping();
    const fronts = () => gateway().logged.lines.filter(({ msg }) => msg === 'front listening').length;
    const before = fronts();
    process.kill(gateway().pid, 'SIGUSR2');
    await eventually(() => expect(fronts()).to.equal(before + 1));
    await expectAnswer(path, '1');
    await asleep(id);
    gateway().logged.expectErrors(/front exited, starting another/);
    process.kill(frontOf(gateway().pid) ?? expect.fail('no front'), 'SIGKILL');
    await expectAnswer(path, '1');
    await asleep(id);
  });

  it('loses no request when a handler sleeps and wakes all the time', async () => {
    const { id, path } = await deploy(1, { limits: { idle_ms: 1 } });
    await asleep(id);
    const [slept, woken] = [said(id, 'handler falls asleep'), said(id, 'handler ready')];
    const load = await startLoad({
      targets: [stack.gatewayUrl],
      clients: 4,
      request: () => ({ path, text: '1' }),
      // Checks for idle handlers come as often.
      pauseMs: 190,
    });
    await eventually(() => expect(said(id, 'handler falls asleep')).to.be.greaterThan(slept + 20));
    expect(outcomes(await load.stop())).to.deep.equal({});
    expect(said(id, 'handler ready')).to.be.greaterThan(woken + 10);
    expect(said(id, 'handler crashed')).to.equal(0);
  });

  it('wakes 60 sleeping handlers at once, while one that is awake answers every request', async () => {
    const kept = await deploy(1, { limits: { min_instances: 1 } });
    const many: { id: string; path: string }[] = [];
    while (many.length < 60) many.push(...(await Promise.all([deploy(), deploy(), deploy(), deploy()])));
    await Promise.all(many.map(({ id }) => asleep(id)));
    const load = await startLoad({
      targets: [stack.gatewayUrl],
      clients: 3,
      request: () => ({ path: kept.path, text: '1' }),
    });
    const answers = await Promise.all(many.flatMap(({ path }) => [get(path), get(path)]));
    expect(answers.map(({ status }) => status).filter((status) => status !== 200)).to.deep.equal([]);
    expect(outcomes(await load.stop())).to.deep.equal({});
    for (const { id } of many) await must(stack.api.delete(`/api/endpoints/${id}`));
  });

  it('leaves handlers asleep when the gateway starts, except those that are kept awake', async () => {
    const [one, other] = [await deploy(), await deploy(2)];
    const kept = await deploy(1, { limits: { min_instances: 1 } });
    await asleep(one.id);
    const counted = await running();
    await gateway().end('SIGKILL');
    await stack.start('gateway');
    await Promise.all([asleep(one.id), asleep(other.id), awake(kept.id)]);
    await eventually(async () => expect(await running()).to.equal(counted));
    const starts = [one, other, kept].map(({ id }) => said(id, 'handler ready'));
    expect(starts).to.deep.equal([0, 0, 1]);
    await expectAnswer(one.path, '1');
    await expectAnswer(other.path, '2');
    await asleep(other.id);
    await gateway().end();
    const starting = stack.start('gateway');
    // At first it has not observed that it is asleep.
    const pid = await eventually(() => start(other.id));
    expect(isRunning(pid)).to.equal(true);
    await starting;
  });
});

describe('handlers on a machine without memory', function () {
  this.timeout(120_000);
  let folder: TempDir;
  let stack: Stack;
  before(async function () {
    if (!HAS_UNTRUSTED_USERS) this.skip();
    folder = await tempDir('memory');
    await available(50);
    const processes = ['web', 'worker', 'gateway'] as const;
    stack = await startStack({ processes, memoryInfo: file() });
  });
  after(async () => {
    await stack?.close();
    await folder?.remove();
  });

  const file = () => join(folder.path, 'meminfo');
  /** Says that so many percent of 1 GiB are available. */
  const available = async (percent: number) => {
    const [total, left] = [1024 * 1024, Math.round(1024 * 10.24 * percent)];
    await writeFile(file(), `MemTotal: ${total} kB\nMemAvailable: ${left} kB\n`);
  };
  const pidOf = async (id: string) =>
    expectData<{ pid: number | null }>(await stack.api.get(`/api/endpoints/${id}`)).pid;

  it('puts idle handlers to sleep when memory is scarce, except those that are kept awake', async () => {
    const code = sleeper(1);
    const kept = await stack.deploy({ path: '/kept', code, limits: { min_instances: 1 } });
    const ids: string[] = [];
    for (const path of ['/a', '/b', '/c']) ids.push(await stack.deploy({ path, code }));
    await available(1);
    await eventually(async () => expect(await pidOf(ids[0] ?? '')).to.equal(null));
    await available(50);
    await eventually(async () => {
      expect((await call(`${stack.gatewayUrl}/a`)).status).to.equal(200);
      expect(await pidOf(ids[0] ?? '')).to.be.a('number');
    });
    expect(await pidOf(kept)).to.be.a('number');
    const lines = stack.processes.get('gateway')?.logged.lines ?? [];
    expect(lines.some(({ msg }) => msg === 'memory is scarce, idle handlers were ended')).to.equal(true);
  });
});
