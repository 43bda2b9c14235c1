/** Webhooks and runs of schedules of one domain while those of another take all slots of a worker. */
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import pg from 'pg';
import { type AlertContext, alertQueue } from '../../jobs/alerts.js';
import { consumeInTurns, type SharedQueue } from '../../jobs/consume-in-turns.js';
import { scheduleQueue } from '../../jobs/schedule.js';
import { ENDPOINT_DEFAULTS } from '../../src/api/endpoints/endpoints.schema.js';
import { nextRun } from '../../src/queues/cron.js';
import { createSecretBox } from '../../src/secrets/secret-box.js';
import { dueDeliveries } from '../../src/store/alert-events.js';
import { createAlert } from '../../src/store/alerts.js';
import { createDomain } from '../../src/store/domains.js';
import { createEndpoint } from '../../src/store/endpoints.js';
import { latestJobs } from '../../src/store/jobs.js';
import { insertSchedule, overdueSchedules } from '../../src/store/schedules.js';
import { newWebhookSecret } from '../../src/webhooks/webhook.js';
import { eventually } from '../support/eventually.js';
import { openTestStoreWithQueues } from '../support/store.js';

const GREEDY = 'greedy.example';
const MODEST = 'modest.example';
/** Webhooks that a worker sends at a time. */
const WEBHOOKS = 8;
const LOOK_EVERY_MS = 50;
const LIMITS = { schedules: 10, bytes: 1024 ** 2 };

describe('jobs of domains that share a worker', () => {
  let opened: Awaited<ReturnType<typeof openTestStoreWithQueues>>;
  let receiver: Server;
  /** Requests that are not answered. */
  const held: ServerResponse[] = [];
  const answered: string[] = [];
  before(async () => {
    opened = await openTestStoreWithQueues();
    for (const host of [GREEDY, MODEST])
      await createDomain(opened.store, { name: host, host, description: null, enabled: true });
    receiver = createServer((request, response) => {
      request.resume();
      if (request.url === `/${GREEDY}`) held.push(response);
      else {
        answered.push(request.url ?? '');
        response.writeHead(204).end();
      }
    });
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  });
  after(async () => {
    receiver?.close();
    await opened?.close();
  });
  const location = () => ({ DATABASE_URL: opened.databaseUrl, REDIS_URL: undefined });

  it('a webhook of a domain is sent while as many of another as are sent at a time are not answered', async () => {
    const { store, queues, logged } = opened;
    const secrets = createSecretBox('a key for the tests');
    const { port } = receiver.address() as AddressInfo;
    const alertOn = (domain: string) =>
      createAlert(
        store,
        {
          ...{ condition: 'error_rate', scope: { domain }, percent: 5, minutes: 5, days: 14, enabled: true },
          url_encrypted: secrets.seal(`http://127.0.0.1:${port}/${domain}`),
          secret_encrypted: secrets.seal(newWebhookSecret()),
        },
        async () => undefined,
      );
    const tell = async (alert: { id: string }, events: number) => {
      for (let number = 0; number < events; number++)
        await store.knex.raw(
          `WITH event AS (INSERT INTO alert_events (alert_id, subject_id, subject, message)
             VALUES (?, gen_random_uuid(), '{}', 'It has begun.') RETURNING id)
           INSERT INTO alert_deliveries (event_id, status) SELECT id, 'firing' FROM event`,
          [alert.id],
        );
    };
    const greedy = await alertOn(GREEDY);
    await tell(greedy, 2 * WEBHOOKS);
    await tell(await alertOn(MODEST), 1);
    const [, second] = await dueDeliveries(store, 2);
    const all = await dueDeliveries(store, 100);
    expect(all).to.have.length(2 * WEBHOOKS + 1);
    // The first of each, whoever was there before.
    const last = await store.knex('alert_deliveries').orderBy('next_at', 'desc').first<{ id: string }>('id');
    expect(second?.id).to.equal(last.id);
    for (const { id: deliveryId, attempts } of all.filter(({ id }) => id !== last.id))
      await queues.enqueue('alert', { deliveryId, attempts });
    await queues.enqueue('alert', { deliveryId: last.id, attempts: 0 });

    const context: AlertContext = { store, queues, secrets, allowsPrivate: true, log: logged.log };
    const consumer = consumeInTurns(location(), alertQueue(context), LOOK_EVERY_MS, logged.log);
    try {
      await eventually(() => expect(answered).to.deep.equal([`/${MODEST}`]));
      await eventually(() => expect(held).to.have.length(WEBHOOKS));
    } finally {
      await store.knex('alerts').where({ id: greedy.id }).delete();
      for (const response of held) response.writeHead(204).end();
      await consumer.close();
    }
  });

  it('a look for owners that wait knows those of all slots, also while it is read whose jobs they are', async () => {
    const { queues, logged } = opened;
    const looks: (readonly string[])[] = [];
    let end: () => void = () => undefined;
    const isEnded = new Promise<void>((resolve) => {
      end = resolve;
    });
    const shared: SharedQueue<'schedule'> = {
      ...{ name: 'schedule', slots: 1 },
      work: () => isEnded,
      ownerOf: async () => {
        await delay(10 * LOOK_EVERY_MS);
        return GREEDY;
      },
      waiting: async (_sinceMs, _limit, busy) => {
        looks.push(busy);
        return [];
      },
    };
    const queue = queues.all.find(({ name }) => name === 'schedule');
    await queue?.add('schedule', { scheduleId: 'any' });
    const consumer = consumeInTurns(location(), shared, LOOK_EVERY_MS, logged.log);
    try {
      await eventually(() => expect(looks).to.have.length.above(1));
      expect(looks.flat()).to.deep.equal(looks.map(() => GREEDY));
    } finally {
      end();
      await consumer.close();
    }
  });

  it('domains of a user get a job while each look finds other users that wait, and none gets it twice', async () => {
    const { queues, logged } = opened;
    const begun: string[] = [];
    let end: () => void = () => undefined;
    const isEnded = new Promise<void>((resolve) => {
      end = resolve;
    });
    let looks = 0;
    const shared: SharedQueue<'schedule'> = {
      ...{ name: 'schedule', slots: 1 },
      work: async ({ scheduleId }) => {
        begun.push(scheduleId);
        if (!scheduleId.startsWith('user')) await isEnded;
      },
      waiting: async () => [{ scheduleId: `user ${++looks}` }],
      // It is not seen yet that the user has begun.
      waitingParts: async () => [{ scheduleId: `user ${looks}` }, { scheduleId: 'domain' }],
    };
    const queue = queues.all.find(({ name }) => name === 'schedule');
    await queue?.add('schedule', { scheduleId: 'holds the slot' });
    const consumer = consumeInTurns(location(), shared, LOOK_EVERY_MS, logged.log);
    try {
      await eventually(() => expect(begun).to.include('domain'));
    } finally {
      end();
      await consumer.close();
    }
    const users = begun.filter((name) => name.startsWith('user'));
    expect(users).to.deep.equal([...new Set(users)]);
  });

  it('a run of a schedule of a domain begins while that of another does not end', async () => {
    const { store, queues, databaseUrl, logged } = opened;
    const scheduleOf = async (domain: string, path: string) => {
      const endpoint = { name: domain, path, method: 'GET', domain } as const;
      const { id } = await createEndpoint(store, { ...ENDPOINT_DEFAULTS, ...endpoint });
      const request = { method: 'GET', path, headers: {}, body: Buffer.alloc(0) };
      const settings = { cron: '0 0 1 1 *', timezone: 'UTC', enabled: true, request };
      const schedule = await insertSchedule(store, id, settings, nextRun, LIMITS);
      if ('full' in schedule) return expect.fail('full');
      await store
        .knex('schedules')
        .where({ id: schedule.id })
        .update({ next_run_at: store.knex.raw("clock_timestamp() - interval '1 second'") });
      return schedule.id;
    };
    const greedy = [await scheduleOf(GREEDY, '/1'), await scheduleOf(GREEDY, '/2')];
    const modest = await scheduleOf(MODEST, '/1');
    const [first, second] = await overdueSchedules(store, 0);
    expect([first, second]).to.deep.equal([greedy[0], modest]);
    const client = new pg.Client(databaseUrl);
    await client.connect();
    await client.query('BEGIN');
    await client.query('SELECT id FROM schedules WHERE id = ANY($1) FOR UPDATE', [greedy]);
    const queue = queues.all.find(({ name }) => name === 'schedule');
    for (const scheduleId of [...greedy, modest]) await queue?.add('schedule', { scheduleId });
    const context = { store, queues, maxQueuedBytes: LIMITS.bytes, log: logged.log };
    const consumer = consumeInTurns(location(), scheduleQueue(context), LOOK_EVERY_MS, logged.log);
    const runsOf = (schedule_id: string | undefined) =>
      latestJobs(store, { schedule_id: schedule_id ?? '' }, 10);
    try {
      await eventually(async () => expect(await runsOf(modest)).to.have.length(1));
      expect(await runsOf(greedy[0])).to.have.length(0);
      await client.query('ROLLBACK');
      for (const id of greedy) await eventually(async () => expect(await runsOf(id)).to.have.length(1));
    } finally {
      await client.end();
      await consumer.close();
    }
  });
});
