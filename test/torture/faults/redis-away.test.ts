/** The Redis of the queues is away while handlers are compiled: it comes back empty, or it hangs. */
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { type Probe, startProbe } from '../../support/faults/probe.js';
import { numbered } from '../../support/handler-sources.js';
import { must, type Stack, startStack } from '../../support/processes.js';
import { startRedis, type TestRedis } from '../../support/redis.js';

/** Compile requests at a time. */
const CLIENTS = 3;
/** So many of each client are refused before Redis is back. */
const REFUSED = 4;

interface Compiled {
  /** Status and code of the answer. */
  readonly outcome: string;
  /** Of a build that was accepted, but not awaited. */
  readonly buildId: string | undefined;
}

type Clients = readonly Probe<Compiled>[];

describe('an outage of Redis under load', function () {
  this.timeout(120_000);
  let redis: TestRedis;
  let stack: Stack;
  let created = 0;
  before(async () => {
    redis = await startRedis();
    stack = await startStack({ processes: ['web', 'worker'], env: { REDIS_URL: redis.url } });
  });
  after(async () => {
    redis?.wake();
    await stack?.close();
    await redis?.remove();
  });

  /** Compiles new source; half of the calls do not wait for it. */
  async function compileNew(): Promise<Compiled> {
    const number = ++created;
    const path = `/away/${number}`;
    const code = numbered(10_000 + number);
    const { id } = (await must(
      stack.api.post('/api/endpoints', { name: path, path, method: 'GET', domain: '*', code }),
    )) as { id: string };
    const headers: Record<string, string> = number % 2 === 0 ? { prefer: 'respond-async' } : {};
    const { status, body } = await stack.api.post(`/api/endpoints/${id}/compile`, undefined, { headers });
    const { code: error, data } = body as { code?: string; data?: { build_id: string } };
    return { outcome: `${status} ${error}`, buildId: status === 202 ? data?.build_id : undefined };
  }

  const startClients = (): Clients => Array.from({ length: CLIENTS }, () => startProbe(compileNew));

  const faults = [
    ['stops, and comes back empty', () => redis.stop(), () => redis.start()],
    ['hangs', async () => redis.hang(), async () => redis.wake()],
  ] as const;
  for (const [what, takeAway, release] of faults) {
    it(`refuses compile requests with 503, but loses no accepted build, when Redis ${what}`, async () => {
      const clients = startClients();
      let later: Clients = [];
      try {
        await each(clients, (client) => client.more(2));
        await takeAway();
        // Clients of their own: those from before may wait for a build that was accepted, until Redis is back.
        later = startClients();
        const refused = await each(later, (client) => client.more(REFUSED));
        for (const { outcome } of refused.flat()) expect(outcome).to.equal('503 queue_unavailable');
      } finally {
        await release();
      }
      const all = [...clients, ...later];
      await each(all, (client) => client.until(({ outcome }) => outcome.startsWith('200')));
      const answers = (await each(all, (client) => client.stop())).flat();

      for (const { outcome } of answers) expect(outcome).to.be.oneOf(DOCUMENTED);
      // Accepted means that it is built.
      const accepted = answers.flatMap(({ buildId }) => buildId ?? []);
      expect(accepted.length).to.be.greaterThan(0);
      for (const buildId of accepted)
        await eventually(async () =>
          expect(await must(stack.api.get(`/api/builds/${buildId}`))).to.include({ state: 'succeeded' }),
        );
    });
  }
});

async function each<T>(clients: Clients, what: (client: Clients[number]) => Promise<T>): Promise<T[]> {
  return Promise.all(clients.map(what));
}

/** What a compile request may be answered with here. */
const DOCUMENTED = ['200 undefined', '202 undefined', '503 queue_unavailable'];
