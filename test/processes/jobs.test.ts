/** Work for later, over HTTP with real processes: queued requests and schedules, on PostgreSQL and on Redis. */
import { expect } from 'chai';
import { openDatabase } from '../../src/store/database.js';
import { eventually } from '../support/eventually.js';
import { expectData, expectFailure, TIMESTAMP } from '../support/expect.js';
import { numbered } from '../support/handler-sources.js';
import { call } from '../support/http.js';
import { type Stack, startStack, type TestProcess } from '../support/processes.js';
import { startRedis, type TestRedis } from '../support/redis.js';

/** Answers as its query says, or with 204. */
const HANDLER = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(req: Request) -> Response {
    println!("seen {} {} {}", req.attempt(), req.path, req.body.as_deref().unwrap_or("-"));
    let number = |name: &str| req.query_param_as::<u64>(name);
    if let Some(ms) = number("sleep").filter(|_| u64::from(req.attempt()) <= number("until").unwrap_or(99)) {
        std::thread::sleep(std::time::Duration::from_millis(ms));
    }
    if let Some(bytes) = number("bytes") {
        return Response::binary(200, vec![7; bytes as usize], "image/x");
    }
    match (number("fails"), number("status")) {
        (Some(fails), Some(status)) if u64::from(req.attempt()) <= fails => Response::new(status as u16),
        _ => Response::no_content(),
    }
}
handler_loop!(handle);
`;

interface Job {
  readonly id: string;
  readonly schedule_id: string | null;
  readonly planned_at: string | null;
  readonly state: string;
  readonly attempts: number;
  readonly max_attempts: number;
  readonly last_status: number | null;
  readonly last_error: string | null;
  readonly next_attempt_at: string | null;
  readonly created_at: string;
  readonly finished_at: string | null;
}
interface Schedule {
  readonly id: string;
  readonly cron: string;
  readonly timezone: string;
  readonly path: string;
  readonly body?: string;
  readonly enabled: boolean;
  readonly next_run_at: string | null;
  readonly missed_runs: number;
}

for (const kind of ['PostgreSQL', 'Redis'] as const) {
  describe(`jobs with queues on ${kind}`, function () {
    this.timeout(120_000);
    let redis: TestRedis | undefined;
    let stack: Stack;
    let id: string;
    before(async () => {
      if (kind === 'Redis') redis = await startRedis();
      stack = await startStack({ env: { ...(redis && { REDIS_URL: redis.url }) } });
      id = await stack.deploy({
        name: 'work',
        path: '/work',
        code: HANDLER,
        method: 'POST',
        limits: { timeout_ms: 3_000 },
      });
    });
    after(async () => {
      await stack?.close();
      await redis?.remove();
    });

    const at = (rest: string) => `/api/endpoints/${id}/${rest}`;
    const enqueue = async (body: object) =>
      expectData<{ job_id: string }>(await stack.api.post(at('enqueue'), body), 201).job_id;
    const show = async (job: string) => expectData<Job>(await stack.api.get(`/api/jobs/${job}`));
    const ended = async (job: string) => {
      await eventually(async () => expect((await show(job)).state).to.match(/succeeded|failed/), 60_000);
      return show(job);
    };
    const outcome = async (body: object) => {
      const { state, attempts, last_status, last_error } = await ended(await enqueue(body));
      return [state, attempts, last_status, last_error];
    };
    /** What the handler has printed of requests with this path. */
    const seen = (path: string) =>
      (stack.processes.get('gateway')?.logged.lines ?? []).flatMap(({ msg = '' }) => {
        const [, attempt, at, body] = /^seen (\d+) (\S+) (.*)$/.exec(msg) ?? [];
        return at === path ? [`${attempt} ${body}`] : [];
      });

    it(`sends a queued request to the handler (queues on ${kind})`, async () => {
      const job = await enqueue({ body: 'hello', headers: { 'X-A': 'b' } });
      const { created_at, finished_at, ...rest } = await ended(job);
      expect(created_at).to.match(TIMESTAMP);
      expect(finished_at).to.match(TIMESTAMP);
      expect(rest).to.deep.include({
        ...{ id: job, endpoint_id: id, schedule_id: null, planned_at: null, method: 'POST', path: '/work' },
        ...{ state: 'succeeded', attempts: 1, max_attempts: 5, last_status: 204, last_error: null },
        next_attempt_at: null,
      });
      await eventually(() => expect(seen('/work')).to.include('1 hello'));
      const list = expectData<Job[]>(await stack.api.get(at('jobs')));
      expect(list.map((listed) => listed.id)).to.include(job);
    });

    it(`repeats a failed queued request, and gives the handler the attempt (queues on ${kind})`, async () => {
      const again = (status: number) => ({ path: `/work?fails=2&status=${status}`, backoff_ms: 10 });
      expect(await outcome(again(500))).to.deep.equal(['succeeded', 3, 204, null]);
      expect(await outcome(again(429))).to.deep.equal(['succeeded', 3, 204, null]);
      expect(await outcome({ ...again(503), attempts: 2 })).to.deep.equal(['failed', 2, 503, null]);
      expect(await outcome(again(404))).to.deep.equal(['failed', 1, 404, null]);
      const [state, attempts] = await outcome({ path: '/work?sleep=4000&until=1', backoff_ms: 10 });
      expect([state, attempts]).to.deep.equal(['succeeded', 2]);
    });

    it(`sends a delayed request only after its delay (queues on ${kind})`, async () => {
      const job = await enqueue({ delay_ms: 3_000 });
      const { state, next_attempt_at, created_at } = await show(job);
      expect(state).to.equal('queued');
      expect(Date.parse(next_attempt_at ?? '') - Date.parse(created_at)).to.be.within(2_990, 3_010);
      const { finished_at } = await ended(job);
      expect(Date.parse(finished_at ?? '') - Date.parse(created_at)).to.be.at.least(2_990);
    });

    it(`sends a queued request again when its worker is killed (queues on ${kind})`, async () => {
      const job = await enqueue({ path: '/work?sleep=10000&until=1' });
      await eventually(() => expect(seen('/work')).to.include('1 -'));
      await eventually(async () => expect((await show(job)).state).to.equal('running'));
      await stack.processes.get('worker')?.end('SIGKILL');
      await stack.start('worker');
      const { state, attempts } = await ended(job);
      expect([state, attempts]).to.deep.equal(['succeeded', 2]);
    });

    it(`sends a queued request although the queue has lost its job (queues on ${kind})`, async () => {
      const job = await enqueue({ delay_ms: 1_000 });
      if (redis) {
        await redis.stop();
        await redis.start();
      } else {
        await emptyQueues(stack.databaseUrl);
      }
      expect((await ended(job)).state).to.equal('succeeded');
    });

    describe('a schedule', () => {
      const create = async (body: object) =>
        expectData<Schedule>(await stack.api.post(at('schedules'), body), 201);
      const list = async () => expectData<Schedule[]>(await stack.api.get(at('schedules')));
      const runs = async (schedule: string) =>
        expectData<Job[]>(await stack.api.get(at(`schedules/${schedule}/runs`)));
      const succeeded = async (schedule: string) =>
        (await runs(schedule)).filter(({ state }) => state === 'succeeded').length;
      const remove = (schedule: string) => stack.api.delete(at(`schedules/${schedule}`));

      it(`makes one job for each run of a schedule while two workers are killed in turn (queues on ${kind})`, async () => {
        const others: TestProcess[] = [stack.launch('worker')];
        await others[0]?.ready;
        const schedule = await create({ cron: '* * * * * *', body: 'tick' });
        expect(schedule).to.deep.include({ timezone: 'UTC', enabled: true, path: '/work', body: 'tick' });
        await eventually(async () => expect(await succeeded(schedule.id)).to.be.at.least(2), 30_000);
        await stack.processes.get('worker')?.end('SIGKILL');
        const before = await succeeded(schedule.id);
        await eventually(async () => expect(await succeeded(schedule.id)).to.be.above(before + 1), 60_000);
        await stack.start('worker');
        await others[0]?.end('SIGKILL');
        const later = await succeeded(schedule.id);
        await eventually(async () => expect(await succeeded(schedule.id)).to.be.above(later + 1), 60_000);
        expectData(await stack.api.put(at(`schedules/${schedule.id}`), { enabled: false }));

        await eventually(
          async () =>
            expect((await runs(schedule.id)).filter(({ state }) => /queued|running/.test(state))).to.be.empty,
        );
        const all = await runs(schedule.id);
        const planned = all.map(({ planned_at }) => planned_at);
        expect(new Set(planned).size).to.equal(planned.length);
        // Each run has its job, or was missed, and said to be.
        const [{ missed_runs } = { missed_runs: 0 }] = await list();
        const times = planned.map((time) => Date.parse(time ?? '') / 1000);
        const span = Math.max(...times) - Math.min(...times) + 1;
        expect(
          all.filter(({ last_error }) => !/missed/.test(last_error ?? '')).length + missed_runs,
        ).to.equal(span);
        await remove(schedule.id);
      });

      it(`continues a schedule that the queue has lost (queues on ${kind})`, async () => {
        const schedule = await create({ cron: '* * * * * *' });
        await eventually(async () => expect(await succeeded(schedule.id)).to.be.at.least(1), 30_000);
        if (redis) {
          await redis.stop();
          await redis.start();
        } else {
          await emptyQueues(stack.databaseUrl);
        }
        const before = await succeeded(schedule.id);
        await eventually(async () => expect(await succeeded(schedule.id)).to.be.above(before), 60_000);
        await remove(schedule.id);
      });

      if (kind === 'Redis') return;

      it('says which runs of a schedule were missed while no worker was running', async () => {
        const schedule = await create({ cron: '* * * * * *' });
        await eventually(async () => expect(await succeeded(schedule.id)).to.be.at.least(3), 30_000);
        await stack.processes.get('worker')?.end();
        const [stopped] = await list();
        const until = Date.parse(stopped?.next_run_at ?? '') + 3_000;
        await eventually(() => expect(Date.now()).to.be.above(until));
        await stack.start('worker');
        await eventually(async () => {
          const [{ missed_runs } = { missed_runs: 0 }] = await list();
          expect(missed_runs).to.be.at.least(2);
          const said = (await runs(schedule.id)).find(({ last_error }) => /missed/.test(last_error ?? ''));
          expect(said).to.include({ state: 'failed', attempts: 0 });
          expect(said?.last_error).to.match(/runs from this one on were missed: no worker was running/);
        }, 30_000);
        await remove(schedule.id);
      });

      it('shows, changes, disables and deletes a schedule', async () => {
        const made = await create({
          cron: '0 9 * * 1-5',
          timezone: 'europe/BERLIN',
          body: { a: 1 },
          enabled: false,
        });
        expect(made).to.include({ next_run_at: null, body: '{"a":1}' });
        const url = at(`schedules/${made.id}`);
        expect(expectData(await stack.api.get(url))).to.deep.equal(made);
        const changed = expectData<Schedule>(await stack.api.put(url, { enabled: true, path: '/work?a=b' }));
        expect(changed).to.include({
          cron: '0 9 * * 1-5',
          timezone: 'Europe/Berlin',
          path: '/work?a=b',
          body: '{"a":1}',
        });
        expect(changed.next_run_at).to.match(/T0[78]:00:00\.000Z$/);
        expect((await list()).map((schedule) => schedule.id)).to.include(made.id);
        // What no longer fits can still be disabled.
        expectData(await stack.api.put(`/api/endpoints/${id}`, { path: '/moved' }));
        expectFailure(await stack.api.put(url, { headers: {} }), 'invalid_input', /does not match the route/);
        expectData(await stack.api.put(url, { enabled: false }));
        expectData(await stack.api.put(`/api/endpoints/${id}`, { path: '/work' }));
        expectData(await remove(made.id));
        expectFailure(await remove(made.id), 'not_found', /schedule/);
        expectFailure(await stack.api.put(url, {}), 'not_found', /schedule/);
        expect((await list()).map((schedule) => schedule.id)).to.not.include(made.id);
      });
    });

    // The rest does not depend on where the queues are.
    if (kind === 'Redis') return;

    const onDashboard = async (status: string) => {
      const path = `/queues/api/queues?activeQueue=invoke&status=${status}&page=1&jobsPerPage=100`;
      const { queues } = (await stack.api.get(path)).body as {
        queues: { name: string; jobs: { name: string; failedReason: string }[] }[];
      };
      return queues.find(({ name }) => name === 'invoke')?.jobs ?? [];
    };

    it('shows a failed queued request under Failed on the dashboard, with its endpoint and the status', async () => {
      expect(await outcome({ path: '/work?fails=2&status=404' })).to.deep.equal(['failed', 1, 404, null]);
      await eventually(async () =>
        expect(
          (await onDashboard('failed')).map(({ name, failedReason }) => [name, failedReason]),
        ).to.deep.include(['invoke work: failed', 'The handler answered 404.']),
      );
    });

    it('names failed and successful attempts of a queued request differently on the dashboard', async () => {
      const again = { path: '/work?fails=1&status=507', backoff_ms: 10 };
      expect(await outcome(again)).to.deep.equal(['succeeded', 2, 204, null]);
      await eventually(async () => {
        const names = (await onDashboard('completed')).map(({ name }) => name);
        expect(names).to.include.members(['invoke work: again: 507', 'invoke work: succeeded: 204']);
        expect(names).not.to.include('invoke work: done');
      });
    });

    it('sends queued requests of a sticky caller to the version that this caller has', async () => {
      const answering = (status: number) =>
        numbered(status).replace('Response::text(200', `Response::text(${status}`);
      const sticky = await stack.deploy({ path: '/sticky', method: 'POST', code: answering(201) });
      const url = `/api/endpoints/${sticky}`;
      expectData(await stack.api.post(`${url}/deploy`, { code: answering(202) }));
      const targets = [1, 2].map((version) => ({ version, percent: 50 }));
      expectData(await stack.api.put(`${url}/deployment`, { targets, sticky: { header: 'X-User' } }));
      for (const user of ['ada', 'bob', 'eve', 'joe']) {
        const headers = { 'X-User': user };
        const { status } = await call(`${stack.gatewayUrl}/sticky`, { method: 'POST', headers });
        const jobs = await Promise.all(
          Array.from({ length: 6 }, async () =>
            expectData<{ job_id: string }>(await stack.api.post(`${url}/enqueue`, { headers }), 201),
          ),
        );
        for (const { job_id } of jobs) expect((await ended(job_id)).last_status, user).to.equal(status);
      }
    });

    it('records the outcome of a queued request whose response has 20 MB', async () => {
      expect(await outcome({ path: '/work?bytes=20000000' })).to.deep.equal(['succeeded', 1, 200, null]);
    });

    it('makes one job of requests with the same deduplication id, until that job has ended', async () => {
      const same = { deduplication_id: 'one', delay_ms: 300 };
      const [first, ...others] = await Promise.all([enqueue(same), enqueue(same), enqueue(same)]);
      expect(new Set(others)).to.deep.equal(new Set([first]));
      await ended(String(first));
      expect(await enqueue(same)).to.not.equal(first);
    });

    it('retries a queued request while its endpoint is stopped, until it is started', async () => {
      await stack.api.post(at('stop'));
      const job = await enqueue({ backoff_ms: 200, attempts: 20 });
      await eventually(async () => expect((await show(job)).last_status).to.equal(503));
      expect((await show(job)).last_error).to.match(/not running/);
      await stack.api.post(at('start'));
      expect((await ended(job)).state).to.equal('succeeded');
    });

    it('keeps a queued request until a gateway that was killed runs again', async () => {
      await stack.processes.get('gateway')?.end('SIGKILL');
      const job = await enqueue({ attempts: 1 });
      await eventually(async () => expect((await show(job)).last_error).to.match(/gateway/i));
      await stack.start('gateway');
      expect(await ended(job)).to.include({ state: 'succeeded', attempts: 1 });
    });
  });
}

/** What an operator does who empties the queues by mistake. */
async function emptyQueues(databaseUrl: string): Promise<void> {
  const store = openDatabase(databaseUrl, () => undefined);
  try {
    await store.knex.raw('DELETE FROM bullmq.job');
    await store.knex.raw('DELETE FROM bullmq.scheduler');
  } finally {
    await store.close();
  }
}
