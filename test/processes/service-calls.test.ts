/** Calls and transactions as handlers make them: deadlines, queues, drains, and processes that exit. */
import { expect } from 'chai';
import pg from 'pg';
import { eventually } from '../support/eventually.js';
import { createDatabase, type TestDatabase } from '../support/postgres.js';
import { type Stack, startStack } from '../support/processes.js';
import type { ServiceAnswer, ServiceClient } from '../support/service-client.js';
import { activeService, bind, connectAs, createEndpoint, SECRET_KEY } from '../support/test-services.js';

/** Milliseconds a transaction may be open in this stack. */
const LONGEST_MS = 8_000;
const POOL_SIZE = 2;
const QUEUE_LIMIT = 3;

describe('service calls', function () {
  this.timeout(180_000);
  let stack: Stack;
  let backend: TestDatabase;
  /** Has the lock that the statements of `held` wait for. */
  let holder: pg.Client;
  let serviceId: string;
  let endpointId: string;
  before(async () => {
    backend = await createDatabase();
    const env = {
      SECRET_KEY,
      REQUEST_TIMEOUT_MS: String(LONGEST_MS),
      SERVICE_TIMEOUT_MS: '2000',
      SERVICE_QUEUE_LIMIT: String(QUEUE_LIMIT),
    };
    stack = await startStack({ processes: ['web', 'actor-host'], env });
    holder = new pg.Client(backend.url);
    await holder.connect();
    const { hostname, port, username, password, pathname } = new URL(backend.url);
    serviceId = await activeService(stack.api, 'postgres', {
      host: hostname,
      port: Number(port),
      database: pathname.slice(1),
      username,
      password,
      pool_size: POOL_SIZE,
    });
    endpointId = await createEndpoint(stack.api, '/calls');
    await bind(stack.api, endpointId, serviceId, 'db');
    const client = await connected();
    await ok(statement(client, 'CREATE TABLE entries (id integer PRIMARY KEY)'));
  });
  after(async () => {
    await stack.close();
    await holder.end();
    await backend.drop();
  });

  const clients: ServiceClient[] = [];
  afterEach(async () => {
    for (const client of clients.splice(0)) await client.close();
  });

  async function connected(): Promise<ServiceClient> {
    const client = await connectAs(stack, endpointId);
    clients.push(client);
    // Then it knows the process of the service, and calls arrive there in their order.
    await ok(statement(client, 'SELECT 1'));
    return client;
  }

  function statement(client: ServiceClient, sql: string, more: object = {}): Promise<ServiceAnswer> {
    return client.send({ pool: 'db', op: 'query', ...more }, JSON.stringify({ sql, params: [] }));
  }

  /** Makes statements that run until `release`. */
  async function held() {
    await holder.query('SELECT pg_advisory_lock(1)');
    return {
      start: (client: ServiceClient) =>
        statement(client, 'SELECT pg_advisory_xact_lock_shared(1)', { deadline_ms: LONGEST_MS }),
      release: () => holder.query('SELECT pg_advisory_unlock_all()'),
    };
  }

  const control = (client: ServiceClient, op: string) => client.send({ pool: 'db', op });

  async function ok(answer: Promise<ServiceAnswer>): Promise<ServiceAnswer> {
    const answered = await answer;
    expect(answered.ok, answered.message).to.equal(true);
    return answered;
  }

  async function count(): Promise<number> {
    const { payload } = await ok(statement(await connected(), 'SELECT count(*) FROM entries'));
    return (JSON.parse(String(payload)) as { rows: number[][] }).rows[0]?.[0] ?? -1;
  }

  describe('transactions', () => {
    beforeEach(async () => {
      await ok(statement(await connected(), 'DELETE FROM entries'));
    });

    it('stores the statements of a transaction when it is committed, not before', async () => {
      const client = await connected();
      await ok(control(client, 'begin'));
      await ok(statement(client, 'INSERT INTO entries VALUES (1)', { tx: true }));
      expect(await count()).to.equal(0);
      await ok(control(client, 'commit'));
      expect(await count()).to.equal(1);
    });

    it('stores no statement of a transaction that is rolled back', async () => {
      const client = await connected();
      await ok(control(client, 'begin'));
      await ok(statement(client, 'INSERT INTO entries VALUES (1)', { tx: true }));
      await ok(control(client, 'rollback'));
      expect(await count()).to.equal(0);
      expect(await control(client, 'commit')).to.include({ ok: false, kind: 'invalid' });
    });

    it('rolls back a transaction when its handler disconnects, and frees its database connection', async () => {
      for (let round = 0; round < POOL_SIZE * 2; round++) {
        const client = await connected();
        await ok(control(client, 'begin'));
        await ok(statement(client, `INSERT INTO entries VALUES (${round})`, { tx: true }));
        await client.close();
      }
      expect(await count()).to.equal(0);
    });

    it('rolls back a transaction that is open for too long', async () => {
      const client = await connected();
      await ok(control(client, 'begin'));
      await ok(statement(client, 'INSERT INTO entries VALUES (1)', { tx: true }));
      await eventually(async () => {
        const answer = await statement(client, 'SELECT 1', { tx: true });
        expect(answer).to.include({ ok: false, kind: 'deadline' });
        expect(answer.message).to.include(`rolled back: it was open for longer than ${LONGEST_MS} ms`);
      });
      expect(await count()).to.equal(0);
      expect(await control(client, 'commit')).to.include({ ok: false, kind: 'deadline' });
      await ok(control(client, 'begin'));
      await ok(control(client, 'rollback'));
    });

    it('refuses a second transaction on the same connection', async () => {
      const client = await connected();
      await ok(control(client, 'begin'));
      expect(await control(client, 'begin')).to.include({ kind: 'invalid' });
      expect(await client.send({ pool: 'other', op: 'commit' })).to.include({ kind: 'invalid' });
      await ok(control(client, 'rollback'));
    });
  });

  it('ends service calls at their deadline, and frees their database connection', async () => {
    const client = await connected();
    for (let round = 0; round < POOL_SIZE * 2; round++) {
      const answer = await statement(client, 'SELECT pg_sleep(60)', { deadline_ms: 200 });
      expect(answer).to.include({ ok: false, kind: 'deadline' });
      expect(answer.message).to.include('within 200 ms');
    }
    await ok(statement(client, 'SELECT 1'));
    const running =
      "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(60)%' AND state = 'active'";
    await eventually(async () => {
      const { payload } = await ok(statement(client, running));
      expect(JSON.parse(String(payload))).to.have.deep.property('rows', [[0]]);
    });
  });

  it('applies the configured deadline to service calls without one, and that of requests as a maximum', async () => {
    const client = await connected();
    const byDefault = await statement(client, 'SELECT pg_sleep(60)');
    expect(byDefault.message).to.include('within 2000 ms');
    const longest = await statement(client, 'SELECT pg_sleep(60)', { deadline_ms: 1_000_000 });
    expect(longest.message).to.include(`within ${LONGEST_MS} ms`);
  });

  it('queues service calls while all connections are in use, and refuses calls when too many wait', async () => {
    const client = await connected();
    const { start, release } = await held();
    const started = Array.from({ length: POOL_SIZE + QUEUE_LIMIT }, () => start(client));
    const refused = await statement(client, 'SELECT 1');
    expect(refused).to.include({ ok: false, kind: 'busy' });
    expect(refused.message).to.include('3 calls wait');
    await release();
    for (const answer of started) await ok(answer);
    await ok(statement(client, 'SELECT 1'));
  });

  it('ends service calls that wait in the queue at their deadline', async () => {
    const client = await connected();
    const { start, release } = await held();
    const started = Array.from({ length: POOL_SIZE }, () => start(client));
    const late = await statement(client, 'SELECT 1', { deadline_ms: 100 });
    expect(late).to.include({ ok: false, kind: 'deadline' });
    expect(late.message).to.match(/all 2 of its connections were in use/);
    await release();
    for (const answer of started) await ok(answer);
  });

  it('finishes service calls before it answers the deactivation of their service', async () => {
    const client = await connected();
    const { start, release } = await held();
    const underWay = start(client);
    await ok(statement(client, 'SELECT 1'));
    const deactivating = stack.api.post(`/api/services/${serviceId}/deactivate`);
    await eventually(async () =>
      expect(await statement(client, 'SELECT 1')).to.include({ kind: 'inactive' }),
    );
    await release();
    expect((await deactivating).body).to.have.property('success', true);
    // It had to be answered before: the answer of the API comes after the drain.
    const first = await Promise.race([underWay, Promise.resolve('not yet')]);
    expect(first).to.have.property('ok', true);
    expect(await statement(client, 'SELECT 1')).to.include({ kind: 'inactive' });
    await stack.api.post(`/api/services/${serviceId}/activate`);
    await ok(statement(client, 'SELECT 1'));
  });

  for (const [what, end] of [
    ['deactivation', (id: string) => stack.api.post(`/api/services/${id}/deactivate`)],
    ['deletion', (id: string) => stack.api.delete(`/api/services/${id}`)],
  ] as const) {
    it(`waits for active calls in a deactivation of their service, and in a ${what} after it`, async () => {
      const { data } = (await stack.api.get(`/api/services/${serviceId}`)).body as {
        data: { config: object };
      };
      const id = await activeService(stack.api, 'postgres', data.config);
      const other = await createEndpoint(stack.api, `/${what}`);
      await bind(stack.api, other, id, 'db');
      const client = await connectAs(stack, other);
      clients.push(client);
      const { start, release } = await held();
      const underWay = start(client).then(() => 'answered');
      const first = stack.api.post(`/api/services/${id}/deactivate`);
      await eventually(async () =>
        expect(await statement(client, 'SELECT 1')).to.include({ kind: 'inactive' }),
      );
      const ended = [end(id), first];
      await release();
      for (const answer of ended) {
        const [{ status }, state] = await Promise.all([
          answer,
          answer.then(() => Promise.race([underWay, 'not yet'])),
        ]);
        expect({ status, state }).to.deep.equal({ status: 200, state: 'answered' });
      }
    });
  }

  it('serves calls again at once when a service is activated while it still drains', async () => {
    const client = await connected();
    const { start, release } = await held();
    let isOver = false;
    const underWay = start(client).finally(() => {
      isOver = true;
    });
    const deactivated = stack.api.post(`/api/services/${serviceId}/deactivate`);
    await eventually(async () =>
      expect(await statement(client, 'SELECT 1')).to.include({ kind: 'inactive' }),
    );
    await stack.api.post(`/api/services/${serviceId}/activate`);
    await ok(statement(client, 'SELECT 1'));
    expect(isOver).to.equal(false);
    await release();
    await ok(underWay);
    await deactivated;
    await ok(statement(client, 'SELECT 1'));
  });

  it('finishes active transactions before the actor host ends', async () => {
    const client = await connected();
    await ok(control(client, 'begin'));
    await ok(statement(client, 'INSERT INTO entries VALUES (7)', { tx: true }));
    const ended = stack.processes.get('actor-host')?.end('SIGTERM');
    await eventually(async () =>
      expect(await statement(client, 'SELECT 1')).to.include({ kind: 'inactive' }),
    );
    await ok(control(client, 'commit'));
    expect(await ended).to.deep.equal({ code: 0, signal: null });
    await client.closed;
    await stack.start('actor-host');
    await eventually(async () => expect(await count()).to.equal(1));
  });
});
