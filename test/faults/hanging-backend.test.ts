/** A backend stops answering while handlers call it: who calls it waits until the deadline, and nobody else waits at all. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { numbered } from '../processes/sources.js';
import { eventually } from '../support/eventually.js';
import { type DatabaseServer, startDatabaseServer } from '../support/faults/database-server.js';
import { REDIS_READER, SQL_READER } from '../support/faults/service-handlers.js';
import { call } from '../support/http.js';
import { type Load, outcomes, startLoad } from '../support/load.js';
import { type Stack, startStack } from '../support/processes.js';
import { startRedis, type TestRedis } from '../support/redis.js';
import { activeService, bind } from '../support/test-services.js';

/** Deadline of a call that names none. */
const CALL_MS = 1_000;
/** A call, and what lies around it. */
const ANSWER_WITHIN_MS = CALL_MS + 1_500;
/** How long the others are watched, before and after. */
const WATCH_MS = 3_000;
/** What a machine that is busy with other things may add. */
const NOISE_MS = 20;

describe('a backend that hangs', function () {
  this.timeout(120_000);
  let stack: Stack;
  let redis: TestRedis;
  let otherRedis: TestRedis;
  let postgres: DatabaseServer;
  before(async () => {
    [redis, otherRedis, postgres] = await Promise.all([startRedis(), startRedis(), startDatabaseServer()]);
    stack = await startStack({ env: { SERVICE_TIMEOUT_MS: String(CALL_MS) } });
    await deploy('/redis', REDIS_READER, 'redis', 'cache', redis.url);
    await deploy('/other', REDIS_READER, 'redis', 'cache', otherRedis.url);
    await deploy('/postgres', SQL_READER, 'postgres', 'db', postgres.url);
    await stack.deploy({ path: '/plain', code: numbered(1) });
  });
  after(async () => {
    redis?.wake();
    await postgres?.wake();
    await stack?.close();
    for (const server of [redis, otherRedis, postgres]) await server?.remove();
  });

  async function deploy(path: string, code: string, type: string, pool: string, url: string): Promise<void> {
    const { hostname: host, port, username, password, pathname } = new URL(url);
    const login = type === 'postgres' ? { username, password, database: pathname.slice(1) } : {};
    const config = { host, port: Number(port), pool_size: 2, ...login };
    const serviceId = await activeService(stack.api, type, config);
    await bind(stack.api, await stack.deploy({ path, code }), serviceId, pool);
  }

  const putOnLoad = (path: string, text: string) =>
    startLoad({ targets: [stack.gatewayUrl], clients: 2, pauseMs: 5, request: () => ({ path, text }) });

  const backends: readonly (readonly [
    path: string,
    unaffected: string,
    hang: () => void | Promise<void>,
    wake: () => void | Promise<void>,
  ])[] = [
    ['/redis', '/postgres', () => redis.hang(), () => redis.wake()],
    ['/postgres', '/redis', () => postgres.hang(), () => postgres.wake()],
  ];
  for (const [path, unaffected, hang, wake] of backends) {
    it(`(${path}) keeps its own callers until their deadline, and nobody else`, async () => {
      const others: Record<string, Load> = {
        'another endpoint': await putOnLoad('/plain', '1 '),
        'another service of the same type': await putOnLoad('/other', 'value'),
        'a service of another type': await putOnLoad(unaffected, 'value'),
      };
      const own = await putOnLoad(path, 'value');
      const begunAt = performance.now();
      await delay(WATCH_MS);
      await hang();
      const hungAt = performance.now();
      await delay(WATCH_MS);
      const wokenAt = performance.now();
      await wake();
      const backAt = await eventually(async () => {
        const first = own.firstServedAfter(wokenAt);
        if (first === undefined) throw new Error('it is not used again');
        return first;
      });
      for (const [name, load] of Object.entries(others)) {
        expect(outcomes(await load.stop()), name).to.deep.equal({});
        const [before, meanwhile] = [load.durations(begunAt, hungAt), load.durations(hungAt, wokenAt)];
        expect(meanwhile.length, name).to.be.greaterThan(100);
        expect(median(meanwhile), name).to.be.lessThan(2 * median(before) + NOISE_MS);
        // Not one of them has waited for a deadline that was not its own.
        expect(meanwhile.at(-1), name).to.be.lessThan(CALL_MS);
      }
      const failures = await own.stop();
      expect(failures.length).to.be.greaterThan(2);
      for (const { status, what, sentAt, failedAt } of failures) {
        expect(status, what).to.be.oneOf([503, 504]);
        expect(what).to.match(
          /^(Deadline exceeded|Backend unavailable): the pool "\w+": .*(did not answer|within \d+ ms|cannot be reached|no answer)/s,
        );
        expect(failedAt - sentAt, what).to.be.lessThan(ANSWER_WITHIN_MS);
        expect(sentAt).to.be.lessThan(backAt);
      }
      expect((await call(`${stack.gatewayUrl}${path}`)).text).to.equal('value');
    });
  }
});

function median(sorted: readonly number[]): number {
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
