/** A backend stops answering while handlers call it: its callers wait until their deadline, and no others wait. */
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { type DatabaseServer, startDatabaseServer } from '../../support/faults/database-server.js';
import { REDIS_READER, SQL_READER } from '../../support/faults/service-handlers.js';
import { numbered } from '../../support/handler-sources.js';
import { call } from '../../support/http.js';
import { type Load, outcomes, startLoad } from '../../support/load.js';
import { type Stack, startStack } from '../../support/processes.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { activeService, bind } from '../../support/test-services.js';

/** Deadline of a call that names none. */
const CALL_MS = 1_000;
/** So many requests of each of the others are served while it hangs. */
const REQUESTS = 300;

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
    it(`a hanging ${path.slice(1)} server delays its own callers until their deadline, and no others`, async () => {
      const others: Record<string, Load> = {
        'another endpoint': await putOnLoad('/plain', '1 '),
        'another service of the same type': await putOnLoad('/other', 'value'),
        'a service of another type': await putOnLoad(unaffected, 'value'),
      };
      const own = await putOnLoad(path, 'value');
      await hang();
      const hungAt = performance.now();
      // Its callers are answered although it goes on hanging, and the others are served meanwhile.
      await eventually(() => expect(own.failures().length).to.be.above(2));
      for (const [name, load] of Object.entries(others)) {
        const served = load.served();
        await eventually(() => expect(load.served(), name).to.be.above(served + REQUESTS));
      }
      await wake();
      const wokenAt = performance.now();
      const backAt = await eventually(async () => {
        const first = own.firstServedAfter(wokenAt);
        if (first === undefined) throw new Error('it is not used again');
        return first;
      });
      for (const [name, load] of Object.entries(others))
        expect(outcomes(await load.stop()), name).to.deep.equal({});
      const failures = await own.stop();
      for (const { status, what, sentAt, failedAt } of failures) {
        expect(status, what).to.be.oneOf([503, 504]);
        expect(what).to.match(
          /^(Deadline exceeded|Backend unavailable): the pool "\w+": .*(did not answer|within \d+ ms|cannot be reached|no answer)/s,
        );
        expect(failedAt).to.be.above(hungAt);
        expect(sentAt).to.be.below(backAt);
      }
      expect((await call(`${stack.gatewayUrl}${path}`)).text).to.equal('value');
    });
  }
});
