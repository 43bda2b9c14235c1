/** What does the log cost, how soon is a line seen, and how soon is a request found among many? */
import { randomUUID } from 'node:crypto';
import { eventually } from '../test/support/eventually.js';
import { tailLog } from '../test/support/log-tail.js';
import { must, type Stack } from '../test/support/processes.js';
import { withStacks } from './support/gateway.js';
import { SMALL_JSON } from './support/handlers.js';
import { type LoadResult, load } from './support/load.js';
import { type Benchmark, runAlone } from './support/main.js';
import { writeManyLogEntries } from './support/many-log-entries.js';
import { type Row, round, timed } from './support/report.js';
import { measureInTurn, medianOf, ratioOf } from './support/rounds.js';

const ROUNDS = 7;
const SECONDS = 3;
const CONNECTIONS = 64;
const LINES = 50;
const ENTRIES = 1_000_000;
const QUERIES = 30;
const PRINTS = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(req: Request) -> Response {
    println!("{}", req.path);
    Response::no_content()
}
handler_loop!(handle);
`;

export const logs: Benchmark = async () => [
  await withStacks(
    [
      { env: { GATEWAY_CONCURRENCY: '1' } },
      { env: { GATEWAY_CONCURRENCY: '1', LOG_REQUESTS_PER_SECOND: '0' } },
    ],
    async (logged, silent) => throughput(defined(logged), defined(silent)),
  ),
  ...(await withStacks([{}], async (stack) => [await visible(defined(stack)), await found(defined(stack))])),
];

async function throughput(logged: Stack, silent: Stack): Promise<Row> {
  const loaded = async ({ deploy, gatewayUrl }: Stack) => {
    await deploy({ path: '/{name}', code: SMALL_JSON });
    return () => load({ url: `${gatewayUrl}/ada`, connections: CONNECTIONS, seconds: SECONDS });
  };
  const rounds = await measureInTurn(ROUNDS, { logged: await loaded(logged), silent: await loaded(silent) });
  const perSecond = ({ requestsPerSecond }: LoadResult) => requestsPerSecond;
  const rps = (of: 'logged' | 'silent') => round(medianOf(rounds, of, perSecond));
  return {
    question: 'requests/s with the log at its defaults, against none for requests',
    measured: `${rps('logged')}/s against ${rps('silent')}/s`,
    value: ratioOf(rounds, 'logged', 'silent', perSecond),
    unit: 'x',
    bar: { atLeast: 0.95 },
  };
}

async function visible({ apiUrl, gateway, deploy }: Stack): Promise<Row> {
  await deploy({ path: '/said/{line}', code: PRINTS });
  const tail = await tailLog(`${apiUrl}/api/logs?kind=output`);
  const taken: number[] = [];
  try {
    for (let line = 0; line < LINES; line++) {
      const text = `/said/${line}`;
      taken.push(
        await timed(async () => {
          await gateway.get(text);
          await eventually(() => {
            if (!tail.received.some(({ entry }) => entry.message === text)) throw new Error('not seen');
          });
        }),
      );
    }
  } finally {
    await tail.close();
  }
  const sorted = taken.sort((left, right) => left - right);
  return {
    question: 'a line of a handler visible in a live tail, after the request was sent',
    measured: `median ${round(sorted[LINES / 2] ?? 0)} ms, slowest of ${LINES}`,
    value: sorted.at(-1) ?? 0,
    unit: 'ms',
    bar: { atMost: 300 },
  };
}

async function found({ api, databaseUrl }: Stack): Promise<Row> {
  const endpoints = Array.from({ length: 100 }, () => randomUUID());
  const requestIds = await writeManyLogEntries(databaseUrl, { count: ENTRIES, endpointIds: endpoints });
  const apart = Math.floor(requestIds.length / QUERIES);
  const wanted = Array.from({ length: QUERIES }, (_, query) => requestIds[query * apart] ?? '');
  const taken: number[] = [];
  for (const requestId of wanted)
    taken.push(await timed(() => must(api.get(`/api/logs?request_id=${requestId}`))));
  const sorted = taken.sort((left, right) => left - right);
  return {
    question: 'a request found by its id among a million entries of a day',
    measured: `median ${round(sorted[QUERIES / 2] ?? 0)} ms, slowest of ${QUERIES}`,
    value: sorted.at(-1) ?? 0,
    unit: 'ms',
    bar: { atMost: 50 },
  };
}

function defined(stack: Stack | undefined): Stack {
  if (!stack) throw new Error('no stack');
  return stack;
}

await runAlone(import.meta.url, logs);
