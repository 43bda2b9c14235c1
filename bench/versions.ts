/** What does a rollback cost, and what do two versions that share the requests of an endpoint? */
import { must, type Stack } from '../test/support/processes.js';
import { withStacks } from './support/gateway.js';
import { SMALL_JSON } from './support/handlers.js';
import { type LoadResult, load } from './support/load.js';
import { type Benchmark, runAlone } from './support/main.js';
import { type Row, round, timed } from './support/report.js';
import { measureInTurn, medianOf, ratioOf } from './support/rounds.js';

const ROLLBACKS = 30;
const ROUNDS = 7;
const SECONDS = 3;
const CONNECTIONS = 64;
/** The same handler as another source. */
const SAME_AGAIN = `${SMALL_JSON}\n// again\n`;

export const versions: Benchmark = () =>
  withStacks([{ env: { GATEWAY_CONCURRENCY: '1' } }], async (stack) => {
    if (!stack) throw new Error('no stack');
    return [await rollback(stack), await canary(stack)];
  });

async function rollback({ api, deploy }: Stack): Promise<Row> {
  const [started, rolledBack] = [
    await deploy({ path: '/started/{name}', code: SMALL_JSON }),
    await deploy({ path: '/back/{name}', code: SMALL_JSON }),
  ];
  await must(api.post(`/api/endpoints/${rolledBack}/deploy`, { code: SAME_AGAIN }));
  const rounds = await measureInTurn(ROLLBACKS, {
    start: async () => {
      await must(api.post(`/api/endpoints/${started}/stop`));
      return timed(() => must(api.post(`/api/endpoints/${started}/start`)));
    },
    rollback: () => timed(() => must(api.post(`/api/endpoints/${rolledBack}/rollback`))),
  });
  const ms = (of: 'start' | 'rollback') => round(medianOf(rounds, of, (taken) => taken));
  return {
    question: '`rollback` round trip, against `start`',
    measured: `${ms('rollback')} ms against ${ms('start')} ms`,
    value: ratioOf(rounds, 'rollback', 'start', (taken) => taken),
    unit: 'x',
    bar: { atMost: 1.2 },
  };
}

async function canary({ api, gatewayUrl, deploy }: Stack): Promise<Row> {
  await deploy({ path: '/one/{name}', code: SMALL_JSON });
  const two = await deploy({ path: '/two/{name}', code: SMALL_JSON });
  await must(api.post(`/api/endpoints/${two}/deploy`, { code: SAME_AGAIN, percent: 50 }));
  const loaded = (path: string) => () =>
    load({ url: `${gatewayUrl}${path}`, connections: CONNECTIONS, seconds: SECONDS });
  const rounds = await measureInTurn(ROUNDS, { one: loaded('/one/ada'), two: loaded('/two/ada') });
  const perSecond = ({ requestsPerSecond }: LoadResult) => requestsPerSecond;
  const rps = (of: 'one' | 'two') => round(medianOf(rounds, of, perSecond));
  return {
    question: 'requests/s of an endpoint whose requests two versions share, against one version',
    measured: `${rps('two')}/s against ${rps('one')}/s`,
    value: ratioOf(rounds, 'two', 'one', perSecond),
    unit: 'x',
    bar: { atLeast: 0.97 },
  };
}

await runAlone(import.meta.url, versions);
