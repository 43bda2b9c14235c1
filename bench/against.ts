/**
 * What does a request that streams nothing cost, against another version? `npm run bench -- against <folder>`: a
 * checkout of that version in which `npm ci` and `npm run build` were run. Each runs all of its own: front, supervisor,
 * SDK, and the handlers compiled with it.
 */
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Stack } from '../test/support/processes.js';
import { withStacks } from './support/gateway.js';
import { ECHO, SMALL_JSON } from './support/handlers.js';
import { load } from './support/load.js';
import { cpuSeconds, frontPid } from './support/process-figures.js';
import { type Row, round, table } from './support/report.js';
import { measureInTurn, medianOf, ratioOf } from './support/rounds.js';

/** More than elsewhere, because the bar is close to what other load on the machine makes of it. */
const ROUNDS = 15;
const SECONDS = 3;
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
  other.withStacks(OPTIONS, (theirs) => compare(ours, theirs)),
);
process.stdout.write(`${table(rows)}\n`);

async function compare(ours: Stack | undefined, theirs: Stack | undefined): Promise<Row[]> {
  if (!ours || !theirs) throw new Error('no stacks');
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
