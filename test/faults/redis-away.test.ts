/** The Redis of the queues is away for ten seconds while handlers are compiled: it comes back empty, or it hangs. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { numbered } from '../processes/sources.js';
import { eventually } from '../support/eventually.js';
import { must, type Stack, startStack } from '../support/processes.js';
import { startRedis, type TestRedis } from '../support/redis.js';

const AWAY_MS = 10_000;
const BACK_WITHIN_MS = 5_000;
/** Who asks meanwhile must not be kept waiting for longer. */
const ANSWER_WITHIN_MS = 5_000;
/** Compile requests at a time. */
const CLIENTS = 3;

interface Compiled {
  readonly status: number;
  readonly code: string | undefined;
  /** Of a build that was accepted, but not awaited. */
  readonly buildId: string | undefined;
  readonly askedAt: number;
  readonly ms: number;
}

describe('Redis away for 10 s under load', function () {
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

  /** Compiles source that nobody has compiled before; half of the calls do not wait for it. */
  async function compileNew(): Promise<Compiled> {
    const number = ++created;
    const path = `/away/${number}`;
    const code = numbered(10_000 + number);
    const { id } = (await must(
      stack.api.post('/api/endpoints', { name: path, path, method: 'GET', domain: '*', code }),
    )) as { id: string };
    const askedAt = performance.now();
    const headers: Record<string, string> = number % 2 === 0 ? { prefer: 'respond-async' } : {};
    const answer = await stack.api.post(`/api/endpoints/${id}/compile`, undefined, { headers });
    const { code: error, data } = answer.body as { code?: string; data?: { build_id: string } };
    return {
      status: answer.status,
      code: error,
      buildId: answer.status === 202 ? data?.build_id : undefined,
      askedAt,
      ms: performance.now() - askedAt,
    };
  }

  const faults = [
    ['stopped, and empty when it is back', () => redis.stop(), () => redis.start()],
    ['hanging', async () => redis.hang(), async () => redis.wake()],
  ] as const;
  for (const [what, takeAway, giveBack] of faults) {
    it(`(${what}) refuses compile requests with 503, and loses nothing that was accepted`, async () => {
      const answers: Compiled[] = [];
      let isOver = false;
      const clients = Array.from({ length: CLIENTS }, async () => {
        while (!isOver) {
          answers.push(await compileNew());
          await delay(100);
        }
      });
      await eventually(() => expect(answers.length).to.be.greaterThan(CLIENTS * 2));
      await takeAway();
      const awayAt = performance.now();
      await delay(AWAY_MS);
      const givenBackAt = performance.now();
      await giveBack();
      const backAt = performance.now();
      await eventually(() =>
        expect(answers.some(({ status, askedAt }) => status === 200 && askedAt > backAt)).to.equal(true),
      );
      isOver = true;
      await Promise.all(clients);

      // Accepted means that it is built.
      for (const { status, code } of answers) expect(`${status} ${code}`).to.be.oneOf(DOCUMENTED);
      const accepted = answers.flatMap(({ buildId }) => buildId ?? []);
      expect(accepted.length).to.be.greaterThan(0);
      for (const buildId of accepted)
        await eventually(async () =>
          expect(await must(stack.api.get(`/api/builds/${buildId}`))).to.include({ state: 'succeeded' }),
        );
      const meanwhile = answers.filter(({ askedAt, ms }) => askedAt > awayAt && askedAt + ms < givenBackAt);
      expect(meanwhile.length).to.be.greaterThan(CLIENTS);
      for (const { status, code, ms } of meanwhile) {
        expect(`${status} ${code}`).to.equal('503 queue_unavailable');
        expect(ms).to.be.lessThan(ANSWER_WITHIN_MS);
      }
      const first = answers.find(({ status, askedAt }) => status === 200 && askedAt > backAt);
      expect((first?.askedAt ?? 0) + (first?.ms ?? 0) - backAt).to.be.lessThan(BACK_WITHIN_MS);
    });
  }
});

/** What a compile request may be answered with here. */
const DOCUMENTED = ['200 undefined', '202 undefined', '503 queue_unavailable'];
