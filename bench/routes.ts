/** What does a lookup of a route with text and a parameter in one segment cost, against one of static text? */
import { RouteTable } from '../src/gateway/route-table.js';
import { type Benchmark, runAlone } from './support/main.js';
import { median, round } from './support/report.js';

const ROUTES = 10_000;
const ROUNDS = 101;

export const routes: Benchmark = () => {
  const table = new RouteTable<number>();
  // Each resource with its list, and one of it in two formats; on one path there are many formats.
  for (let at = 0; at < ROUTES / 4; at++) {
    table.add({ domain: '*', method: 'GET', route: `/v1/things${at}/all` }, at);
    table.add({ domain: '*', method: 'GET', route: `/v1/things${at}/{id}.json` }, at);
    table.add({ domain: '*', method: 'GET', route: `/v1/things${at}/{id}:archive` }, at);
    table.add({ domain: '*', method: 'GET', route: `/v1/exports/{id}.format${at}` }, at);
  }
  const pathsOf = (last: (at: number) => string) =>
    Array.from({ length: ROUTES / 4 }, (_, at) => `/v1/${last(at)}`);
  const kinds = {
    static: pathsOf((at) => `things${at}/all`),
    mixed: pathsOf((at) => `things${at}/a1b2c3.json`),
    format: pathsOf((at) => `exports/a1b2c3.format${at}`),
  };
  const times = { static: [] as number[], mixed: [] as number[], format: [] as number[] };
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [kind, paths] of Object.entries(kinds) as [keyof typeof kinds, readonly string[]][]) {
      const took = nanoseconds(table, paths);
      if (round > 0) times[kind].push(took);
    }
  }
  const row = (kind: 'mixed' | 'format', question: string, atMost: number) => ({
    question: `${question}, against a static one, among ${ROUTES.toLocaleString('en')} routes`,
    measured: `${round(median(times[kind]))} ns against ${round(median(times.static))} ns`,
    value: median(times[kind].map((time, at) => time / (times.static[at] ?? Number.NaN))),
    unit: 'x',
    bar: { atMost },
  });
  return Promise.resolve([
    row('mixed', 'lookup of a route with text and a parameter in one segment', 1.3),
    row('format', 'lookup of one of 2,500 such routes that differ in that segment alone', 2),
  ]);
};

/** The mean duration of a lookup. */
function nanoseconds(table: RouteTable<number>, paths: readonly string[]): number {
  const began = performance.now();
  for (const path of paths) {
    if (table.find('example.com', 'GET', path).kind !== 'found') throw new Error(`${path} is not found`);
  }
  return ((performance.now() - began) * 1e6) / paths.length;
}

await runAlone(import.meta.url, routes);
