/** Recovery of applies whose job or worker is lost, one check at a time, without a running worker. */
import { randomBytes, randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { ActiveJobs } from '../../jobs/active-jobs.js';
import { awaitTurn } from '../../jobs/apply/await-turn.js';
import type { ApplyContext, ApplyTry } from '../../jobs/apply/context.js';
import { recoverApplies } from '../../jobs/recover-applies.js';
import { AppError } from '../../src/errors.js';
import { Gateways } from '../../src/internal/gateways.js';
import { applyJobId } from '../../src/queues/jobs.js';
import type { Queues } from '../../src/queues/queues.js';
import {
  type Apply,
  type ApplyAttempt,
  AttemptLost,
  claimApply,
  findApply,
} from '../../src/store/applies.js';
import { takeTurn } from '../../src/store/apply-turns.js';
import type { Database } from '../../src/store/database.js';
import { insertApply } from '../../src/store/new-applies.js';
import { removeNode } from '../../src/store/nodes.js';
import type { TestLog } from '../support/log.js';
import { addNode } from '../support/nodes.js';
import { openTestStoreWithQueues } from '../support/store.js';

describe('lost applies', () => {
  let close: () => Promise<void>;
  let store: Database;
  let queues: Queues;
  let logged: TestLog;
  let context: ApplyContext;
  /** Another one, which is alive; this one, which looks, does not. */
  const worker = randomUUID();

  before(async () => {
    ({ store, queues, logged, close } = await openTestStoreWithQueues());
    await addNode(store, 'worker', { id: worker });
    context = {
      ...{ queues, log: logged.log, workerId: randomUUID(), activeJobs: new ActiveJobs() },
      gateways: new Gateways({ store, token: '', log: logged.log, startTimeoutMs: 1, requestTimeoutMs: 1 }),
      lifecycle: { store },
    } as unknown as ApplyContext;
  });
  after(() => close());
  afterEach(async () => {
    await store.knex('applies').delete();
  });

  const insert = async (rollback_of: string | null = null): Promise<string> => {
    const id = randomUUID();
    await insertApply(store, {
      ...{ id, stack: 's', plan_hash: '', rollback_of, actor: null, rights: null, request_id: 'r' },
      ...{ plan: {}, changes: [], hosts: [], no_wait: false },
    });
    return id;
  };
  const look = (days = 90) => recoverApplies(context, { APPLIES_KEPT_DAYS: days, APPLIES_KEPT_MB: 1 });
  const rowOf = async (id: string) => (await store.knex('applies').where({ id }).first()) as Apply;
  const age = (id: string) =>
    store
      .knex('applies')
      .where({ id })
      .update({ queued_at: store.knex.raw("clock_timestamp() - interval '10 seconds'") });

  it('queues an apply again that has waited and that the queue does not know', async () => {
    const id = await insert();
    await look();
    expect((await rowOf(id)).attempt).to.equal(1);
    await age(id);
    await look();
    expect((await rowOf(id)).attempt).to.equal(2);
    expect(await queues.hasJob('apply', applyJobId({ applyId: id, attempt: 2 }))).to.equal(true);
    await age(id);
    await look();
    expect((await rowOf(id)).attempt).to.equal(2);
  });

  it('queues an apply again whose worker has ended, or does not execute it', async () => {
    const id = await insert();
    const other = await addNode(store, 'worker');
    await claimApply(store, { id, attempt: 1 }, other);
    await look();
    expect((await rowOf(id)).attempt).to.equal(1);
    await removeNode(store, other);
    await look();
    expect(await rowOf(id)).to.include({ attempt: 2, worker_id: null });
    await claimApply(store, { id, attempt: 2 }, context.workerId);
    await context.activeJobs.run(applyJobId({ applyId: id, attempt: 2 }), () => look());
    expect((await rowOf(id)).attempt).to.equal(2);
    await look();
    expect((await rowOf(id)).attempt).to.equal(3);
  });

  it('fails an apply after five tries before its commit, and undoes it after the commit', async () => {
    logged.expectErrors(/apply failed after too many attempts/);
    const id = await insert();
    await store.knex('applies').where({ id }).update({ attempt: 5, state: 'preparing' });
    await age(id);
    await look();
    expect(await rowOf(id)).to.include({ state: 'failed', error_code: 'internal_error' });
    const committed = await insert();
    await store.knex('applies').where({ id: committed }).update({ attempt: 5, state: 'converging' });
    await age(committed);
    await look();
    expect(await rowOf(committed)).to.include({ state: 'undoing', attempt: 6, finished_at: null });
  });

  it('ends an apply as not undone after ten tries, so that others can begin', async () => {
    logged.expectErrors(/undoing of an apply was given up/);
    const id = await insert();
    await store.knex('applies').where({ id }).update({ attempt: 10, state: 'undoing' });
    await age(id);
    await look();
    expect(await rowOf(id)).to.include({ state: 'not_undone', error_code: 'internal_error' });
    await insert();
  });

  it('gives one apply its turn at a time, by who asked for it and by when they were ready', async () => {
    const ready = async (minutes: number, user: string) => {
      const id = await insert();
      const actor = JSON.stringify({ kind: 'token', id: randomUUID(), user_id: user });
      const ready_at = store.knex.raw(`clock_timestamp() - interval '${minutes} minutes'`);
      await store.knex('applies').where({ id }).update({ actor, ready_at });
      return { id, attempt: 1 };
    };
    const [a, b] = [randomUUID(), randomUUID()];
    const all = [await ready(9, a), await ready(8, a), await ready(7, b), await ready(6, a)];
    const order: number[] = [];
    while (order.length < all.length) {
      const took = await Promise.all(all.map((apply) => takeTurn(store, apply)));
      const at = took.indexOf(true);
      expect(took.filter((has) => has)).to.have.length(1);
      // An attempt after this one has its turn still.
      expect(await takeTurn(store, all[at] as ApplyAttempt)).to.equal(true);
      order.push(at);
      await store
        .knex('applies')
        .where({ id: all[at]?.id })
        .update({ state: 'succeeded', finished_at: store.knex.raw('clock_timestamp()') });
    }
    expect(order).to.deep.equal([0, 2, 1, 3]);
  });

  it('holds nobody up with an apply that was lost in its turn before it has changed anything', async () => {
    const [lost, next] = [await insert(), await insert()];
    const now = store.knex.raw('clock_timestamp()');
    await store
      .knex('applies')
      .where({ id: lost })
      .update({ state: 'preparing', ready_at: now, turn_at: now });
    await store.knex('applies').where({ id: next }).update({ state: 'waiting', ready_at: now });
    expect(await takeTurn(store, { id: next, attempt: 1 })).to.equal(false);
    await age(lost);
    await look();
    expect(await rowOf(lost)).to.include({ state: 'queued', attempt: 2, turn_at: null });
    expect(await takeTurn(store, { id: next, attempt: 1 })).to.equal(true);
  });

  it('ends the waiting of an attempt whose apply another one has', async () => {
    const [holder, id] = [await insert(), await insert()];
    const now = store.knex.raw('clock_timestamp()');
    await store.knex('applies').where({ id: holder }).update({ state: 'converging', turn_at: now });
    await store.knex('applies').where({ id }).update({ state: 'waiting', ready_at: now, attempt: 2 });
    const lost = { apply: { id, attempt: 1 }, signal: new AbortController().signal } as unknown as ApplyTry;
    const ended = await awaitTurn(context.lifecycle, lost).catch((error: unknown) => error);
    expect(ended).to.be.instanceOf(AttemptLost);
  });

  it('refuses more applies of somebody who has asked for twenty that have not ended', async () => {
    for (let count = 0; count < 20; count++) await insert();
    const refused = await insert().catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(AppError).with.property('code', 'apply_busy');
  });

  it('forgets applies that are old', async () => {
    const id = await insert();
    await store
      .knex('applies')
      .where({ id })
      .update({ state: 'failed', finished_at: store.knex.raw("clock_timestamp() - interval '3 days'") });
    const next = await insert();
    await look(4);
    expect(await rowOf(id)).to.include({ state: 'failed' });
    await look(2);
    expect(await findApply(store, id)).to.equal(undefined);
    expect(await rowOf(next)).to.include({ state: 'queued' });
  });

  const ended = async (user: string, minutes: number, kilobytes: number, state = 'succeeded') => {
    const id = randomUUID();
    await insertApply(store, {
      ...{ id, stack: 's', plan_hash: '', rollback_of: null, actor: { kind: 'user', id: user } },
      ...{ request_id: 'r', rights: null, plan: {}, hosts: [], no_wait: false },
      // PostgreSQL cannot compress it.
      changes: [{ code: randomBytes(kilobytes * 768).toString('base64') }] as never,
    });
    const finished_at = store.knex.raw("clock_timestamp() - ? * interval '1 minute'", [minutes]);
    await store.knex('applies').where({ id }).update({ state, finished_at });
    return id;
  };

  it('keeps so many bytes of applies of each user, the newest ones, and always the newest', async () => {
    const [greedy, other] = [randomUUID(), randomUUID()];
    const ids = [];
    for (const minutes of [4, 3, 2, 1]) ids.push(await ended(greedy, minutes, 400));
    const [oldest = '', second = '', third = '', newest = ''] = ids;
    const large = await ended(other, 5, 3_000);
    const back = await insert(oldest);
    await look();
    const kept = await store.knex('applies').pluck<string[]>('id');
    expect(kept).to.have.members([oldest, third, newest, large, back]);
    expect(kept).not.to.include(second);
    // Its rollback has ended, and needs it no longer.
    await store
      .knex('applies')
      .where({ id: back })
      .update({ state: 'failed', finished_at: store.knex.raw('clock_timestamp()') });
    await look();
    expect(await store.knex('applies').pluck('id')).to.have.members([third, newest, large, back]);
  });

  it('keeps an apply that can be rolled back, and of the same user forgets newer ones that have failed', async () => {
    const user = randomUUID();
    const good = await ended(user, 3, 400);
    const failed = [await ended(user, 2, 400, 'failed'), await ended(user, 1, 400, 'failed')];
    await look();
    const kept = await store
      .knex('applies')
      .whereIn('id', [good, ...failed])
      .pluck('id');
    expect(kept).to.have.members([good, failed[1]]);
  });

  it('keeps an old apply until its rollback has ended', async () => {
    const id = await insert();
    await store
      .knex('applies')
      .where({ id })
      .update({ finished_at: store.knex.raw("clock_timestamp() - interval '2 days'") });
    const back = await insert(id);
    await look(1);
    expect(await findApply(store, id)).to.not.equal(undefined);
    await store
      .knex('applies')
      .where({ id: back })
      .update({ finished_at: store.knex.raw('clock_timestamp()') });
    await look(1);
    expect(await findApply(store, id)).to.equal(undefined);
  });
});
