/**
 * Limits of rates over two machines, under load from both: with Redis, while that is away, and without it. The clock of
 * the second machine is five minutes ahead, as in all of these tests.
 */
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { flood } from '../../support/flood.js';
import { numbered } from '../../support/handler-sources.js';
import { call } from '../../support/http.js';
import { outcomes, startLoad } from '../../support/load.js';
import { type Machine, type Machines, startMachines } from '../../support/machines.js';
import { must } from '../../support/processes.js';

const LIMIT = 1_000;
const A_MINUTE = { requests: LIMIT, window_seconds: 60, by: 'address' };
const SETTINGS = { TRUSTED_PROXIES: '127.0.0.1' };
const PATH = '/limited';

interface Limited {
  readonly machines: Machines;
  readonly both: readonly Machine[];
  /** Replaces the policies of the endpoint, by the API of a machine. */
  set(machine: Machine, policies: object): Promise<unknown>;
}

async function start(env: Record<string, string>): Promise<Limited> {
  const machines = await startMachines({ ...SETTINGS, ...env });
  const { a, b } = machines;
  const id = await a.deploy({ path: PATH, code: numbered(1), policies: { rate_limit: A_MINUTE } });
  return {
    machines,
    both: [a, b],
    set: ({ api }, policies) => must(api.put(`/api/endpoints/${id}`, { policies })),
  };
}

const from = (address: string) => ({ 'x-forwarded-for': address });
const send = ({ gatewayUrl }: Machine, address: string) =>
  call(`${gatewayUrl}${PATH}`, { headers: from(address) });
/** Sends from one address to each machine; resolves with the statuses of each. */
const floodFrom = (address: string, machines: readonly Machine[], requests: number) =>
  flood({
    targets: machines.map(({ gatewayUrl }) => gatewayUrl),
    path: PATH,
    headers: from(address),
    requests,
  });

describe('a limit of 1,000 a minute on two machines with Redis', function () {
  this.timeout(180_000);
  let limited: Limited | undefined;
  let both: readonly Machine[];
  let a: Machine;
  let b: Machine;
  before(async () => {
    limited = await start({});
    both = limited.both;
    ({ a, b } = limited.machines);
  });
  after(() => limited?.machines.close());
  const set = (machine: Machine, policies: object) =>
    limited?.set(machine, policies) ?? expect.fail('no machines');

  it('a rate limit in Redis lets 1,000 ± 1 % through two machines, whatever their clocks say', async () => {
    const statuses = await floodFrom('198.51.100.1', both, 900);
    const admitted = statuses.map(({ 200: count }) => count ?? 0);
    expect((admitted[0] ?? 0) + (admitted[1] ?? 0)).to.be.within(LIMIT * 0.99, LIMIT * 1.01);
    expect(Math.min(...admitted), 'of the machine with fewer').to.be.above(0);
    expect(statuses.map(({ 429: count }, at) => (count ?? 0) + (admitted[at] ?? 0))).to.deep.equal([
      900, 900,
    ]);
    for (const machine of both) {
      const { status, headers } = await send(machine, '198.51.100.1');
      expect(status).to.equal(429);
      expect(Number(headers['retry-after'])).to.be.within(1, 60);
    }
  });

  it('a changed rate limit is in force on both machines when the API has answered, and fails no request', async () => {
    const load = await startLoad({
      targets: both.map(({ gatewayUrl }) => gatewayUrl),
      request: (client, number) => ({
        path: PATH,
        headers: from(`10.0.${client}.${number % 200}`),
        text: '1 ',
      }),
    });
    for (let turn = 0; turn < 20; turn++) {
      const requests = LIMIT + turn;
      await set(turn % 2 === 0 ? a : b, { rate_limit: { ...A_MINUTE, requests } });
      for (const machine of both)
        expect((await send(machine, '198.51.100.2')).headers['ratelimit-policy']).to.equal(
          `"address-60s";q=${requests};w=60`,
        );
    }
    expect(outcomes(await load.stop())).to.deep.equal({});
  });

  it('a rate limit is not counted while Redis is away: requests pass, or are refused, as the rule says', async () => {
    await set(a, { rate_limit: { ...A_MINUTE, requests: 5 } });
    expect((await floodFrom('198.51.100.3', [a], 10))[0]).to.deep.equal({ 200: 5, 429: 5 });
    await limited?.machines.redis.stop();
    for (const machine of both)
      await eventually(async () => expect((await send(machine, '198.51.100.8')).status).to.equal(200));
    expect(await floodFrom('198.51.100.8', both, 50)).to.deep.equal([{ 200: 50 }, { 200: 50 }]);
    await set(b, { rate_limit: { ...A_MINUTE, requests: 5, on_failure: 'closed' } });
    expect(await floodFrom('198.51.100.4', both, 50)).to.deep.equal([{ 503: 50 }, { 503: 50 }]);
    await limited?.machines.redis.start();
    for (const [number, machine] of both.entries())
      await eventually(async () =>
        expect((await send(machine, `198.51.100.${5 + number}`)).status).to.equal(200),
      );
    const statuses = await floodFrom('198.51.100.7', both, 10);
    expect(statuses.reduce((sum, { 200: count }) => sum + (count ?? 0), 0)).to.equal(5);
  });
});

describe('a limit of 1,000 a minute on two machines without Redis', function () {
  this.timeout(180_000);
  let limited: Limited | undefined;
  let both: readonly Machine[];
  let a: Machine;
  let b: Machine;
  before(async () => {
    limited = await start({ REDIS_URL: '' });
    both = limited.both;
    ({ a, b } = limited.machines);
  });
  after(() => limited?.machines.close());

  let callers = 0;
  /** What each lets a caller send that it has not seen. */
  const areShared = (...expected: number[]) =>
    eventually(async () => {
      const shares = [];
      for (const machine of both.slice(0, expected.length)) {
        const { headers } = await send(machine, `2001:db8:0:${(++callers).toString(16)}::1`);
        expect(headers['ratelimit-policy']).to.equal(`"address-60s";q=${LIMIT};w=60`);
        shares.push(Number(/;r=(\d+);/.exec(String(headers['ratelimit']))?.[1]) + 1);
      }
      expect(shares).to.deep.equal(expected);
    });

  it('each of two machines without Redis lets 500 of a rate limit of 1,000 through', async () => {
    await areShared(500, 500);
    expect(await floodFrom('198.51.100.1', both, 700)).to.deep.equal(Array(2).fill({ 200: 500, 429: 200 }));
  });

  it('a machine keeps its share of a rate limit while PostgreSQL is away, for it alone or for both', async () => {
    await b.postgres.down();
    // The other one takes it for lost after a while.
    await areShared(1_000);
    expect(await floodFrom('198.51.100.2', [b], 700)).to.deep.equal([{ 200: 500, 429: 200 }]);
    await b.postgres.up();
    await areShared(500, 500);
    for (const { postgres } of both) await postgres.down();
    const failed = ({ processes }: Machine) =>
      processes.get('gateway')?.logged.lines.filter(({ msg }) => msg === 'heartbeat failed').length ?? 0;
    const before = both.map(failed);
    await eventually(() =>
      both.forEach((machine, at) => {
        expect(failed(machine)).to.be.above((before[at] ?? 0) + 5);
      }),
    );
    expect(await floodFrom('198.51.100.3', both, 700)).to.deep.equal(Array(2).fill({ 200: 500, 429: 200 }));
    for (const { postgres } of both) await postgres.up();
    await eventually(async () => expect((await a.api.get('/api/health')).status).to.equal(200));
    expect(await floodFrom('198.51.100.4', both, 700)).to.deep.equal(Array(2).fill({ 200: 500, 429: 200 }));
  });

  it('a gateway lets all 1,000 of a rate limit through when the other one ends, and counts on', async () => {
    expect(await floodFrom('198.51.100.5', [a], 700)).to.deep.equal([{ 200: 500, 429: 200 }]);
    await b.processes.get('gateway')?.end();
    await areShared(1_000);
    expect(await floodFrom('198.51.100.5', [a], 700)).to.deep.equal([{ 200: 500, 429: 200 }]);
    expect(await floodFrom('198.51.100.6', [a], 1_200)).to.deep.equal([{ 200: 1_000, 429: 200 }]);
    await b.start('gateway');
    await areShared(500, 500);
  });
});
