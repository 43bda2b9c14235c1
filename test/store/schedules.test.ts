/** Runs of schedules: which are due, and which were missed. */
import { expect } from 'chai';
import { ENDPOINT_DEFAULTS } from '../../src/api/endpoints/endpoints.schema.js';
import { nextRun } from '../../src/queues/cron.js';
import type { Database } from '../../src/store/database.js';
import { createEndpoint } from '../../src/store/endpoints.js';
import { latestJobs } from '../../src/store/jobs.js';
import { insertSchedule, runSchedule, type Schedule } from '../../src/store/schedules.js';
import { eventually } from '../support/eventually.js';
import { useTestStore } from '../support/store.js';

describe('a schedule', () => {
  let store: Database;
  useTestStore((opened) => {
    store = opened;
  });
  let count = 0;
  let maxBytes = 2 ** 30;
  afterEach(() => {
    maxBytes = 2 ** 30;
  });

  /** @param dueMs when its next run is due, from now */
  const create = async (cron: string, dueMs: number): Promise<string> => {
    const path = `/scheduled/${++count}`;
    const endpoint = { name: 'E', path, method: 'GET', domain: '*' } as const;
    const { id } = await createEndpoint(store, { ...ENDPOINT_DEFAULTS, ...endpoint });
    const request = { method: 'GET', path, headers: {}, body: Buffer.alloc(0) };
    const settings = { cron, timezone: 'UTC', enabled: true, request };
    const schedule = await insertSchedule(store, id, settings, nextRun, { schedules: 10, bytes: 2 ** 30 });
    if ('full' in schedule) return expect.fail('full');
    await due(schedule.id, dueMs);
    return schedule.id;
  };
  const due = (id: string, dueMs: number) =>
    store.knex.raw(
      `UPDATE schedules SET next_run_at = clock_timestamp() + ? * interval '1 ms' WHERE id = ?`,
      [...[dueMs, id]],
    );
  const run = (id: string) => runSchedule(store, id, nextRun, { maxAttempts: 1, backoffMs: 0, maxBytes });
  const show = async (id: string) => {
    const row = await store.knex<Schedule>('schedules').where({ id }).first();
    return row ?? expect.fail('gone');
  };

  it('makes one job for a run of a schedule that is due, and none for one that is not', async () => {
    const id = await create('0 0 1 1 *', -10);
    const started = await Promise.all(Array.from({ length: 5 }, () => run(id)));
    expect(started.filter((job) => job !== undefined)).to.have.length(1);
    expect(await show(id)).to.include({ missed_runs: 0 });
    expect(await run(id)).to.equal(undefined);
    expect(await latestJobs(store, { schedule_id: id }, 10)).to.have.length(1);
  });

  it('begins no run of a schedule while requests of its domain have all their room, and says so', async () => {
    const id = await create('0 0 1 1 *', -10);
    maxBytes = 2_000;
    expect(await run(id)).to.equal(undefined);
    const [said] = await latestJobs(store, { schedule_id: id }, 10);
    expect(said).to.include({ state: 'failed', attempts: 0 });
    expect(said?.last_error).to.match(/JOBS_QUEUED_MB/);
    expect((await show(id)).next_run_at?.getTime()).to.be.above(Date.now());
  });

  it('misses no run of a schedule of every second that begins in time, and begins none too early', async () => {
    // A machine with much to do may take a second for it.
    await eventually(async () => {
      const id = await create('* * * * * *', -10);
      expect(await run(id)).to.be.an('object');
      const { missed_runs, next_run_at } = await show(id);
      expect(missed_runs).to.equal(0);
      expect(next_run_at?.getTime()).to.be.above(Date.now() - 1_000);
    });
  });

  it('begins the last of several due runs of a schedule, and says that the others were missed', async () => {
    const due = Date.now() - 5_500;
    const id = await create('* * * * * *', -5_500);
    expect(await run(id)).to.be.an('object');
    const { missed_runs } = await show(id);
    expect(missed_runs).to.be.within(5, Math.ceil((Date.now() - due) / 1_000));
    const [begun, said] = await latestJobs(store, { schedule_id: id }, 10);
    expect(begun).to.include({ state: 'queued' });
    expect(said).to.include({ state: 'failed', attempts: 0 });
    expect(said?.last_error).to.match(new RegExp(`^${missed_runs} runs from this one on were missed`));
  });

  it('counts at most 1,000 missed runs of a schedule, however long the outage', async () => {
    const id = await create('* * * * * *', -10 * 24 * 3_600_000);
    await run(id);
    expect(await show(id)).to.include({ missed_runs: 1_000 });
    expect((await show(id)).next_run_at?.getTime()).to.be.above(Date.now() - 5_000);
    const [, said] = await latestJobs(store, { schedule_id: id }, 10);
    expect(said?.last_error).to.match(/^More than 1000 runs/);
  });

  it('begins no more runs of a schedule when ten have not ended, and says so', async () => {
    const id = await create('0 0 1 1 *', -10);
    for (let number = 0; number < 12; number++) {
      // Each at another time, however fast this is.
      await due(id, -10 - number * 1_000);
      expect((await run(id)) === undefined).to.equal(number >= 10);
    }
    const states = (await latestJobs(store, { schedule_id: id }, 20)).map(({ state }) => state).sort();
    expect(states).to.deep.equal([...Array(2).fill('failed'), ...Array(10).fill('queued')]);
  });
});
