/** PostgreSQL is away for ten seconds while everything is at work: it is stopped, and it hangs. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { numbered } from '../processes/sources.js';
import { eventually } from '../support/eventually.js';
import { type DatabaseServer, startDatabaseServer } from '../support/faults/database-server.js';
import { startProbe } from '../support/faults/probe.js';
import { call } from '../support/http.js';
import { outcomes, startLoad } from '../support/load.js';
import { type Stack, startStack } from '../support/processes.js';

const AWAY_MS = 10_000;
const BACK_WITHIN_MS = 5_000;
/** Who asks the API meanwhile must not be kept waiting for longer. */
const ANSWER_WITHIN_MS = 6_000;

describe('PostgreSQL away for 10 s under load', function () {
  this.timeout(120_000);
  let server: DatabaseServer;
  let stack: Stack;
  let deployed = 0;
  before(async () => {
    server = await startDatabaseServer();
    stack = await startStack({ databaseUrl: async () => server.url });
    await stack.deploy({ path: '/served', method: 'POST', code: numbered(1) });
  });
  after(async () => {
    await stack?.close();
    await server?.remove();
  });

  const faults = [
    ['stopped', () => server.stop(), () => server.start()],
    ['hanging', () => server.hang(), () => server.wake()],
  ] as const;
  for (const [what, takeAway, giveBack] of faults) {
    it(`(${what}) costs no request of the data plane; the API answers 503, and recovers within 5 s`, async () => {
      const load = await startLoad({
        targets: [stack.gatewayUrl],
        clients: 4,
        pauseMs: 5,
        request: (client, number) => {
          const body = `${client}/${number}`;
          return { path: '/served', method: 'POST', body, text: `1 ${body}` };
        },
      });
      const probes = [
        startProbe(() => stack.api.get('/api/endpoints')),
        startProbe(() => stack.api.get('/api/stats')),
        startProbe(() => stack.api.post('/api/endpoints/00000000-0000-4000-8000-000000000000/compile')),
      ];
      await takeAway();
      const awayAt = performance.now();
      await delay(AWAY_MS);
      const givenBackAt = performance.now();
      await giveBack();
      const backAt = performance.now();
      const firstAnswers = await eventually(() =>
        probes.map((probe) => {
          const first = probe.since(backAt).find(({ status }) => status !== 503);
          if (!first) throw new Error('The API does not recover');
          return first.askedAt + first.ms - backAt;
        }),
      );
      // All that the API does, and all that others do for it: a worker compiles, a gateway starts.
      const path = `/after/${++deployed}`;
      await stack.deploy({ path, code: numbered(2) });
      expect((await call(`${stack.gatewayUrl}${path}`)).text).to.equal('2 ');
      await Promise.all(probes.map((probe) => probe.stop()));
      const served = load.served();
      expect(outcomes(await load.stop())).to.deep.equal({});
      expect(served).to.be.greaterThan(1_000);

      for (const probe of probes) {
        const meanwhile = probe.since(awayAt).filter(({ askedAt, ms }) => askedAt + ms < givenBackAt);
        expect(meanwhile.length).to.be.greaterThan(0);
        const codes = new Set(meanwhile.map(({ status, code }) => `${status} ${code}`));
        expect([...codes]).to.deep.equal(['503 database_unavailable']);
        const slowest = Math.max(...probe.since(awayAt).map(({ ms }) => ms));
        expect(slowest, 'the longest anybody waited').to.be.lessThan(ANSWER_WITHIN_MS);
      }
      expect(Math.max(...firstAnswers)).to.be.lessThan(BACK_WITHIN_MS);
    });
  }
});
