/**
 * What do a request that streams nothing, a query, a compile and the start of a handler and of a service cost, against
 * another version?
 * `npm run bench -- against <folder>`: a checkout of that version in which `npm ci` and `npm run build` were run. Each
 * runs all of its own: front, supervisor, SDK, and the handlers compiled with it.
 */
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { must, type Stack } from '../test/support/processes.js';
import { activeService } from '../test/support/test-services.js';
import { compileThroughApi, createEndpoint } from './compile.js';
import { createItems, deployItem, itemsPerSecond } from './services/row-by-key.js';
import { withStacks } from './support/gateway.js';
import { ECHO, jsonHandler, SMALL_JSON, uniqueVariant } from './support/handlers.js';
import { load } from './support/load.js';
import { cpuSeconds, frontPid } from './support/process-figures.js';
import { type Row, round, table, timed } from './support/report.js';
import { measureInTurn, medianOf, ratioOf } from './support/rounds.js';

/** More than elsewhere, because the bar is close to what other load on the machine makes of it. */
const ROUNDS = 15;
const SECONDS = 3;
/** Of starts, which differ more from each other than from those of the other version. */
const START_ROUNDS = 60;
const CONNECTIONS = 64;
const POST_BODY = 'x'.repeat(10 * 1024);
const OPTIONS = [{ env: { GATEWAY_CONCURRENCY: '1' } }] as const;

interface Measured {
  readonly requestsPerSecond: number;
  /** Processor time of front and handler, seconds for 100,000 requests. */
  readonly cpu: number;
}

/** A request that is measured. */
interface Case {
  readonly title: string;
  readonly path: string;
  readonly method: string;
  readonly code: string;
  readonly body?: string;
}

const CASES: readonly Case[] = [
  { title: 'a small JSON response', path: '/hello/ada', method: 'GET', code: SMALL_JSON },
  { title: '10 KB POST echoed', path: '/echo', method: 'POST', code: ECHO, body: POST_BODY },
];

const [folder] = process.argv.slice(2);
if (folder === undefined) {
  process.stderr.write('Name a folder with another version: npm run bench -- against <folder>\n');
  process.exit(2);
}
const gatewayOf = pathToFileURL(resolve(folder, 'dist/bench/support/gateway.js')).href;
const other = (await import(gatewayOf)) as { withStacks: typeof withStacks };
const rows = await withStacks(OPTIONS, (ours) =>
  other.withStacks(OPTIONS, async (theirs) => {
    if (!ours || !theirs) throw new Error('no stacks');
    return [
      ...(await compareRequests(ours, theirs)),
      await compareQueries(ours, theirs),
      await compareCompiles(ours, theirs),
      await compareStarts('handler', ours, theirs, startedHandler),
      await compareStarts('service', ours, theirs, activatedService),
    ];
  }),
);
process.stdout.write(`${table(rows)}\n`);

async function compareRequests(ours: Stack, theirs: Stack): Promise<Row[]> {
  const rows: Row[] = [];
  for (const one of CASES) {
    const [now, before] = [await measurement(ours, one), await measurement(theirs, one)];
    const rounds = await measureInTurn(ROUNDS, { now, before });
    const rate = ({ requestsPerSecond }: Measured) => requestsPerSecond;
    const cpu = (result: Measured) => result.cpu;
    const both = (figure: (result: Measured) => number) =>
      `${round(medianOf(rounds, 'now', figure))} against ${round(medianOf(rounds, 'before', figure))}`;
    rows.push({
      question: `requests/s with one thread, ${one.title}, against ${folder}`,
      measured: `${both(rate)}/s; processor time of front and handler ${both(cpu)} s for 100,000 requests`,
      value: ratioOf(rounds, 'now', 'before', rate),
      unit: 'x',
      bar: { atLeast: 0.97 },
    });
  }
  return rows;
}

async function compareQueries(ours: Stack, theirs: Stack): Promise<Row> {
  const items = await createItems();
  try {
    for (const stack of [ours, theirs]) await deployItem(stack, items);
    const rounds = await measureInTurn(ROUNDS, {
      now: () => itemsPerSecond(ours.gatewayUrl),
      before: () => itemsPerSecond(theirs.gatewayUrl),
    });
    const rate = (perSecond: number) => perSecond;
    return {
      question: `requests/s of a handler with one \`DbPool.query\` by key on PostgreSQL, against ${folder}`,
      measured: `${round(medianOf(rounds, 'now', rate))} against ${round(medianOf(rounds, 'before', rate))}/s`,
      value: ratioOf(rounds, 'now', 'before', rate),
      unit: 'x',
      bar: { atLeast: 0.97 },
    };
  } finally {
    await items.drop();
  }
}

async function compareCompiles(ours: Stack, theirs: Stack): Promise<Row> {
  const compiled = async (stack: Stack) => {
    const id = await createEndpoint(stack);
    return () => compileThroughApi(stack, id, jsonHandler(uniqueVariant()));
  };
  const [now, before] = [await compiled(ours), await compiled(theirs)];
  const rounds = await measureInTurn(ROUNDS, { now, before });
  const took = (ms: number) => ms;
  return {
    question: `API compile of a new small JSON handler, against ${folder}`,
    measured: `${round(medianOf(rounds, 'now', took))} against ${round(medianOf(rounds, 'before', took))} ms`,
    value: ratioOf(rounds, 'now', 'before', took),
    unit: 'x',
    bar: { atMost: 1.03 },
  };
}

/** @param prepare makes something in a stack; the returned function starts it anew, and returns how long that took */
async function compareStarts(
  what: string,
  ours: Stack,
  theirs: Stack,
  prepare: (stack: Stack) => Promise<() => Promise<number>>,
): Promise<Row> {
  const [now, before] = [await prepare(ours), await prepare(theirs)];
  const rounds = await measureInTurn(START_ROUNDS, { now, before });
  const took = (ms: number) => ms;
  const [is, was] = [medianOf(rounds, 'now', took), medianOf(rounds, 'before', took)];
  return {
    question: `start of a ${what}, as a request for it takes, against ${folder}`,
    measured: `${round(is)} against ${round(was)} ms`,
    value: is - was,
    unit: 'ms',
    bar: { atMost: 3 },
  };
}

async function startedHandler({ api, deploy }: Stack): Promise<() => Promise<number>> {
  const id = await deploy({ path: '/started', code: SMALL_JSON });
  return async () => {
    await must(api.post(`/api/endpoints/${id}/stop`));
    return timed(() => must(api.post(`/api/endpoints/${id}/start`)));
  };
}

async function activatedService({ api }: Stack): Promise<() => Promise<number>> {
  const id = await activeService(api, 'sqlite', { path: 'started.db', create_if_missing: true });
  const asked = async (what: string) => {
    const { status, body } = await api.post(`/api/services/${id}/${what}`);
    if (status !== 200) throw new Error(JSON.stringify(body));
  };
  return async () => {
    await asked('deactivate');
    return timed(() => asked('activate'));
  };
}

/** Deploys the handler; the returned function measures it. */
async function measurement(stack: Stack, one: Case): Promise<() => Promise<Measured>> {
  const { path, method, code, body } = one;
  const id = await stack.deploy({ path: path.replace('ada', '{name}'), method, code });
  const shown = (await stack.api.get(`/api/endpoints/${id}`)).body as { data: { pid: number } };
  const pids = [await frontPid(stack.processes.get('gateway')?.pid ?? 0), shown.data.pid];
  return async () => {
    const before = await cpuSeconds(pids);
    const { requests, requestsPerSecond } = await load({
      ...{ url: `${stack.gatewayUrl}${path}`, seconds: SECONDS, connections: CONNECTIONS },
      ...(body !== undefined && { body }),
    });
    const cpu = (((await cpuSeconds(pids)) - before) / requests) * 100_000;
    return { requestsPerSecond, cpu };
  };
}
