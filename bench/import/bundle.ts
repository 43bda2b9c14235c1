/** Is a bundle live as fast as the compiler allows, and at once when nothing has changed? */
import { availableParallelism } from 'node:os';
import { strToU8, zipSync } from 'fflate';
import { multipart } from '../../test/support/form.js';
import { call } from '../../test/support/http.js';
import { must, type Stack } from '../../test/support/processes.js';
import { uniqueVariant } from '../support/handlers.js';
import { childSeconds } from '../support/process-figures.js';
import { median, type Row, round, timed } from '../support/report.js';
import { type BundleHandler, bundleHandlers } from './handlers.js';

const ROUNDS = 3;

const ASYNC_HANDLER = `use rust_edge_gateway_sdk::prelude::*;

async fn handle(_: Request) -> Response {
    Response::no_content()
}

handler_loop_async!(handle);
`;

/** Imports a new bundle into a new domain each round, and then again unchanged. */
export async function bundle(stack: Stack): Promise<Row[]> {
  const workerPid = stack.processes.get('worker')?.pid;
  if (workerPid === undefined) throw new Error('the worker does not run');
  // A worker that is new to this SDK also builds it with tokio in the background: wait for the end of that.
  await stack.deploy({ path: '/async', code: ASYNC_HANDLER });
  const samples: { first: number; again: number; cpu: number }[] = [];
  // The first round warms everything up and is not counted.
  for (let number = 0; number <= ROUNDS; number++) {
    const host = `bundle-${number}.bench`;
    await must(stack.api.post('/api/domains', { name: host, host }));
    const handlers = bundleHandlers(uniqueVariant());
    const form = multipart([{ name: 'bundle', filename: 'bundle.zip', content: zipped(handlers) }]);
    const before = await childSeconds(workerPid);
    const first = await seconds(() => importBundle(stack, host, form, handlers.length));
    const cpu = (await childSeconds(workerPid)) - before;
    const again = await seconds(() => importBundle(stack, host, form, handlers.length));
    if (number > 0) samples.push({ first, again, cpu });
  }
  const cores = availableParallelism();
  const of = (key: keyof (typeof samples)[number]) => median(samples.map((sample) => sample[key]));
  return [
    {
      question:
        'bundle of 50 different handlers imported, compiled and started, wall time against their rustc CPU seconds / cores',
      measured: `${round(of('first'))} s against ${round(of('cpu'))} CPU s / ${cores}`,
      value: median(samples.map(({ first, cpu }) => first / (cpu / cores))),
      unit: 'x',
      bar: { atMost: 1.2 },
    },
    {
      question: 'the same bundle again, unchanged, against the first time',
      measured: `${round(of('again'))} s against ${round(of('first'))} s`,
      value: median(samples.map(({ first, again }) => again / first)),
      unit: 'x',
      bar: { atMost: 0.1 },
    },
  ];
}

async function seconds(work: () => Promise<unknown>): Promise<number> {
  return (await timed(work)) / 1000;
}

/** @throws Error unless all handlers were compiled and started */
async function importBundle(
  { apiUrl }: Stack,
  host: string,
  form: { headers: Record<string, string>; body: Buffer },
  handlers: number,
): Promise<void> {
  const url = `${apiUrl}/api/import/bundle?domain=${host}&compile=true&start=true`;
  const headers = { ...form.headers, 'content-length': form.body.length };
  const { status, text } = await call(url, { method: 'POST', headers, body: form.body });
  const { data } = JSON.parse(text) as { data?: { compiled: number; started: number } };
  if (status !== 200 || data?.compiled !== handlers || data.started !== handlers) {
    throw new Error(`The import was answered with ${status}: ${text.slice(0, 2_000)}`);
  }
}

function zipped(handlers: readonly BundleHandler[]): Buffer {
  const sources = handlers.map(({ operationId, code }) => [`handlers/${operationId}.rs`, strToU8(code)]);
  const files = {
    'openapi.json': strToU8(JSON.stringify(document(handlers))),
    ...Object.fromEntries(sources),
  };
  return Buffer.from(zipSync(files));
}

/** An OpenAPI document with an operation for each handler. */
function document(handlers: readonly BundleHandler[]): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const { operationId, method, path } of handlers) {
    const parameters = path.includes('{id}')
      ? [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }]
      : [];
    const responses = { default: { description: 'Whatever the handler answers.' } };
    paths[path] = { ...paths[path], [method.toLowerCase()]: { operationId, parameters, responses } };
  }
  return { openapi: '3.0.3', info: { title: 'Bench', version: '1' }, paths };
}
