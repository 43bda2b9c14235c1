/**
 * How long do the event loops of `web`, the worker and the supervisor keep others waiting while somebody asks for what
 * costs most? Each costly route is called with the largest input that it takes. Meanwhile the health of the API is
 * asked for, and the metrics of the other two processes at their sockets; beside a loop that burns as much of the
 * processors outside.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { HttpClient } from '../test/support/client.js';
import { expectData } from '../test/support/expect.js';
import { askForPlan, type Files, type ShownPlan } from '../test/support/plans.js';
import { must, type ProcessName, type Stack } from '../test/support/processes.js';
import { withStacks } from './support/gateway.js';
import { type Asked, longestWaits } from './support/health-watch.js';
import { heavyCalls } from './support/heavy-objects.js';
import { type Benchmark, runAlone } from './support/main.js';
import { type Row, round } from './support/report.js';

const SECONDS = 4;
/** Of the same request. */
const AT_A_TIME = 4;
const CODE_BYTES = 520_000;
const ENDPOINTS = 2_000;
const HOST = 'costly.test';

/** Lines that nothing has in common with others. */
const lines = (bytes: number) => {
  let text =
    'use rust_edge_gateway_sdk::prelude::*;\nfn handle(_: Request) -> Response { Response::ok("") }\n';
  while (text.length < bytes) text += `// ${randomBytes(30).toString('base64')}\n`;
  return `${text}handler_loop!(handle);\n`;
};

export const eventLoop: Benchmark = () =>
  withStacks([{ processes: ['web', 'worker', 'gateway'] }], async (stack) => {
    if (!stack) throw new Error('no stack');
    const { api, apiUrl } = stack;
    const read: Read = (path, accept = 'application/json') => drained(`${apiUrl}${path}`, accept);
    const asked = [
      { url: `${apiUrl}/api/health` },
      ...['worker', 'gateway'].map((name) => ({ socketPath: metricsSocket(stack, name) })),
    ];
    const calls = { ...(await costlyCalls(api, read)), ...(await largestCalls(api, read)) };
    const outside = await longestWaits(asked, burn);
    const rows = await waitsBeside(calls, asked, outside);
    // They make all exports and plans larger.
    const heavy = Object.entries(await heavyCalls(api, read)).map(([what, call]) => [what, alone(call)]);
    rows.push(...(await waitsBeside(Object.fromEntries(heavy), asked, outside)));
    return rows;
  });

/** How long each process keeps others waiting, beside each call. */
async function waitsBeside(
  calls: Readonly<Record<string, Call>>,
  asked: readonly Asked[],
  outside: readonly number[],
): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [what, call] of Object.entries(calls)) {
    const longest = await longestWaits(asked, () => again(call));
    process.stdout.write(
      `  ${what}: ${longest.map((wait, at) => `${PROCESSES[at]} ${round(wait)} ms`).join(', ')}\n`,
    );
    for (const [at, wait] of longest.entries())
      rows.push({
        question: `how much longer a request to the ${PROCESSES[at]} waits while others ${what}, than beside a loop outside`,
        measured: `${round(wait)} ms against ${round(outside[at] ?? 0)} ms`,
        value: wait - (outside[at] ?? 0),
        unit: 'ms',
        bar: { atMost: 100 },
      });
  }
  return rows;
}

const PROCESSES = ['API', 'worker', 'supervisor'];

function metricsSocket({ runDir, processes }: Stack, name: string): string {
  const folder = join(runDir, 'metrics');
  const { pid } = processes.get(name as ProcessName) ?? {};
  const socket = readdirSync(folder).find((file) => file.startsWith(`metrics-${pid}-`));
  if (socket === undefined) throw new Error(`${name} has no socket for its metrics`);
  return join(folder, socket);
}

interface Call {
  (): Promise<{ readonly status: number }>;
  /** Of those with the largest input: one at a time. */
  readonly isAlone?: boolean;
}

function alone(call: () => Promise<{ readonly status: number }>): Call {
  return Object.assign(call, { isAlone: true });
}

async function again(call: Call): Promise<void> {
  const end = performance.now() + SECONDS * 1_000;
  const lane = async () => {
    do {
      const { status } = await call();
      // What differs too much to be compared is said so, after the work for it.
      if (status !== 200 && status !== 400) throw new Error(`the answer was ${status}`);
    } while (performance.now() < end);
  };
  await Promise.all(Array.from({ length: call.isAlone ? 1 : AT_A_TIME }, lane));
}

/** As many processors as the API and its database may use. */
async function burn(): Promise<void> {
  const loops = [1, 2].map(() => spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }));
  await delay(SECONDS * 1_000);
  for (const loop of loops) loop.kill();
}

type Read = (path: string, accept?: string) => Promise<{ readonly status: number }>;

/** Reads an answer to its end, and does nothing with it: the processors are those of the API, too. */
async function drained(url: string, accept: string): Promise<{ readonly status: number }> {
  const [response] = (await once(get(url, { headers: { accept } }), 'response')) as [IncomingMessage];
  response.resume();
  await once(response, 'end');
  return { status: response.statusCode ?? 0 };
}

async function costlyCalls(api: HttpClient, read: Read): Promise<Readonly<Record<string, Call>>> {
  expectData(await api.post('/api/domains', { name: HOST, host: HOST }), 201);
  const create = async (path: string, more: object = {}) =>
    expectData<{ id: string }>(
      await api.post('/api/endpoints', { name: path, path, method: 'GET', domain: HOST, ...more }),
      201,
    ).id;
  const large = await create('/large');
  for (const code of [lines(CODE_BYTES), lines(CODE_BYTES)])
    await must(api.post(`/api/endpoints/${large}/deploy`, { code }));
  const properties = Object.fromEntries(
    Array.from({ length: 1_500 }, (_, at) => [
      `member${at}`,
      { type: 'string', pattern: `^[a-z]{${(at % 50) + 1}}$` },
    ]),
  );
  const policies = {
    validate: {
      mode: 'enforce',
      body: { content: { 'application/json': { schema: { type: 'object', properties } } } },
    },
  };
  const validated = await create('/validated');
  let number = 0;
  const lane = async () => {
    while (number < ENDPOINTS)
      await create(`/many/${number++}/{id}`, {
        code: lines(4_000),
        policies: { cors: { origins: ['https://a.example'] }, timeout: 1_000 },
        limits: { timeout_ms: 1_000 },
      });
  };
  await Promise.all(Array.from({ length: 8 }, lane));
  const { files } = expectData<{ files: Record<string, string> }>(await api.get('/api/export'));
  const other = Object.fromEntries(
    Object.entries(files).map(([path, text]) => [path, path.endsWith('.rs') ? lines(4_000) : text]),
  );
  return {
    'compare two versions': () => read(`/api/endpoints/${large}/versions/1/diff?to=2`),
    [`export ${ENDPOINTS} endpoints`]: () => read('/api/export'),
    [`export ${ENDPOINTS} endpoints as OpenAPI`]: () => read(`/api/export/openapi?domain=${HOST}`),
    [`list 1000 endpoints`]: () => read('/api/endpoints?limit=1000'),
    [`plan ${ENDPOINTS} endpoints without a change`]: () => api.post('/api/apply?dry_run=true', { files }),
    [`plan ${ENDPOINTS} endpoints that all change`]: () =>
      api.post('/api/apply?dry_run=true&adopt=true', { files: other }),
    'set a policy with a large schema': () => api.put(`/api/endpoints/${validated}`, { policies }),
    'read the description of the API': () => read('/api/openapi.json'),
  };
}

/** The largest code of one endpoint, and so many that a folder is about as large as it may be. */
const MOST_CODE = 3.9 * 2 ** 20;
const IN_FOLDER = 15;
/** All of an installation: 256 MiB. */
const IN_INSTALLATION = 64;

/** Code that is compared and read as a whole. Nothing of it is compiled: it does not run. */
async function largestCalls(api: HttpClient, read: Read): Promise<Readonly<Record<string, Call>>> {
  const create = async (at: number) => {
    const endpoint = { name: `l${at}`, path: `/l/${at}`, method: 'GET', domain: 'large.test' };
    expectData(await api.post('/api/endpoints', { ...endpoint, code: lines(MOST_CODE) }), 201);
  };
  for (let at = 0; at < IN_INSTALLATION - IN_FOLDER; at++) await create(at);
  const folder = (stack: string): Files => {
    const numbers = Array.from({ length: IN_FOLDER }, (_, at) => at);
    const endpoints = numbers.map((at) => ({
      ...{ host: `${stack}.test`, method: 'GET', route: `/f/${at}`, handler: `src/${at}.rs`, running: false },
    }));
    const edge = { stack, domains: [{ host: `${stack}.test` }], endpoints };
    const sources = numbers.map((at) => [`src/${at}.rs`, lines(MOST_CODE)]);
    return { 'edge.yaml': JSON.stringify(edge), ...Object.fromEntries(sources) };
  };
  const folders = [folder('folder'), folder('folder')] as const;
  let turn = 0;
  const applied = async () => {
    const files = folders[turn++ % 2] ?? {};
    const { plan_hash } = expectData<ShownPlan>(await askForPlan(api, files));
    return api.post(`/api/apply?plan_hash=${plan_hash}`, { files });
  };
  const { id } = expectData<{ id: string }>(await applied());
  const paths = Array.from({ length: OPERATIONS }, (_, at) => [`/o/${at}/{id}`, { get: operation(at) }]);
  const document = {
    ...{ openapi: '3.0.3', info: { title: 'Large', version: '1' }, paths: Object.fromEntries(paths) },
  };
  const spec = JSON.stringify(document);
  return {
    'list 256 MiB of code': () => read('/api/endpoints'),
    'list 80 MiB of code as a page': () =>
      read(`/api/endpoints?search=${encodeURIComponent('/l/')}&limit=20`),
    'export 256 MiB of code': alone(() => read('/api/export')),
    'export 256 MiB of code as a ZIP': alone(() => read('/api/export', 'application/zip')),
    'plan a folder of 59 MiB that changes everything': alone(() => askForPlan(api, folders[turn % 2] ?? {})),
    'apply a folder of 59 MiB that changes everything': alone(applied),
    'show an apply with 59 MiB of changes': alone(() => read(`/api/applies/${id}`)),
    'plan the rollback of an apply with 59 MiB of changes': alone(async () => {
      // What has changed since stays, or is in the way: the work is the same.
      const { status } = await api.post(`/api/applies/${id}/rollback?dry_run=true`);
      return { status: status === 409 ? 200 : status };
    }),
    [`plan the import of an OpenAPI document of ${Math.round(spec.length / 2 ** 20)} MiB`]: alone(() =>
      api.post('/api/import/openapi?dry_run=true', { spec, domain: 'large.test' }),
    ),
  };
}

/** With their descriptions, nearly SPEC_LIMIT_BYTES. */
const OPERATIONS = 3_000;

function operation(at: number) {
  return {
    operationId: `o${at}`,
    description: randomBytes(5_000).toString('hex'),
    parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }],
    responses: { 200: { description: 'It is there' } },
  };
}

await runAlone(import.meta.url, eventLoop);
