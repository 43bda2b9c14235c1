/** PostgreSQL is away while everything is at work: it is stopped, and it hangs. */
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { type DatabaseServer, startDatabaseServer } from '../../support/faults/database-server.js';
import { startProbe } from '../../support/faults/probe.js';
import { numbered } from '../../support/handler-sources.js';
import { call } from '../../support/http.js';
import { outcomes, startLoad } from '../../support/load.js';
import { type Stack, startStack } from '../../support/processes.js';

/** So many questions to the API go unanswered, one after the other: each takes seconds while PostgreSQL hangs. */
const QUESTIONS = 5;
/** So many requests are served meanwhile. */
const REQUESTS = 500;

describe('an outage of PostgreSQL under load', function () {
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
  for (const [what, takeAway, release] of faults) {
    it(`fails no request of the data plane while PostgreSQL is ${what}; the API answers 503, and recovers`, async () => {
      const load = await startLoad({
        targets: [stack.gatewayUrl],
        clients: 4,
        pauseMs: 5,
        request: (client, number) => {
          const body = `${client}/${number}`;
          return { path: '/served', method: 'POST', body, text: `1 ${body}` };
        },
      });
      const nobody = '00000000-0000-4000-8000-000000000000';
      const questions = [
        () => stack.api.get('/api/endpoints'),
        () => stack.api.get('/api/stats'),
        () => stack.api.post(`/api/endpoints/${nobody}/compile`),
      ];
      const probes = questions.map((ask) =>
        startProbe(async () => {
          const { status, body } = await ask();
          return `${status} ${(body as { code?: string } | undefined)?.code}`;
        }),
      );
      await takeAway();
      const served = load.served();
      const meanwhile = await Promise.all(probes.map((probe) => probe.more(QUESTIONS)));
      await eventually(() => expect(load.served()).to.be.above(served + REQUESTS));
      await release();
      await Promise.all(probes.map((probe) => probe.until((answer) => !answer.startsWith('503'))));
      for (const answers of meanwhile)
        expect([...new Set(answers)]).to.deep.equal(['503 database_unavailable']);
      // All that the API does, and all that others do for it: a worker compiles, a gateway starts.
      const path = `/after/${++deployed}`;
      await stack.deploy({ path, code: numbered(2) });
      expect((await call(`${stack.gatewayUrl}${path}`)).text).to.equal('2 ');
      await Promise.all(probes.map((probe) => probe.stop()));
      expect(outcomes(await load.stop())).to.deep.equal({});
    });
  }
});
