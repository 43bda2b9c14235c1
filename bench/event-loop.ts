/**
 * How long does a request to the management API wait while others ask for what costs most? Each costly route is called
 * with the largest input that it takes, and the health of the API is asked for meanwhile; beside a loop that burns as
 * much of the processors outside.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { HttpClient } from '../test/support/client.js';
import { expectData } from '../test/support/expect.js';
import { must } from '../test/support/processes.js';
import { withStacks } from './support/gateway.js';
import { longestWait } from './support/health-watch.js';
import { type Benchmark, runAlone } from './support/main.js';
import { round } from './support/report.js';

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
    const calls = await costlyCalls(api);
    const outside = await longestWait(apiUrl, burn);
    const rows = [];
    for (const [what, call] of Object.entries(calls)) {
      const longest = await longestWait(apiUrl, () => again(call));
      rows.push({
        question: `how much longer a request to the API waits while ${AT_A_TIME} at a time ${what}, than beside a loop outside`,
        measured: `${round(longest)} ms against ${round(outside)} ms`,
        value: longest - outside,
        unit: 'ms',
        bar: { atMost: 100 },
      });
      process.stdout.write(`  ${what}: ${round(longest)} ms\n`);
    }
    return rows;
  });

type Call = () => Promise<{ readonly status: number }>;

async function again(call: Call): Promise<void> {
  const end = performance.now() + SECONDS * 1_000;
  const lane = async () => {
    do {
      const { status } = await call();
      // What differs too much to be compared is said so, after the work for it.
      if (status !== 200 && status !== 400) throw new Error(`the answer was ${status}`);
    } while (performance.now() < end);
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, lane));
}

/** As many processors as the API and its database may use. */
async function burn(): Promise<void> {
  const loops = [1, 2].map(() => spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }));
  await delay(SECONDS * 1_000);
  for (const loop of loops) loop.kill();
}

async function costlyCalls(api: HttpClient): Promise<Readonly<Record<string, Call>>> {
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
    'compare two versions': () => api.get(`/api/endpoints/${large}/versions/1/diff?to=2`),
    [`export ${ENDPOINTS} endpoints`]: () => api.get('/api/export'),
    [`export ${ENDPOINTS} endpoints as OpenAPI`]: () => api.get(`/api/export/openapi?domain=${HOST}`),
    [`list 1000 endpoints`]: () => api.get('/api/endpoints?limit=1000'),
    [`plan ${ENDPOINTS} endpoints without a change`]: () => api.post('/api/apply?dry_run=true', { files }),
    [`plan ${ENDPOINTS} endpoints that all change`]: () =>
      api.post('/api/apply?dry_run=true&adopt=true', { files: other }),
    'set a policy with a large schema': () => api.put(`/api/endpoints/${validated}`, { policies }),
    'read the description of the API': () => api.get('/api/openapi.json'),
  };
}

await runAlone(import.meta.url, eventLoop);
