/** Bundles from ZIP to live endpoints, by real workers, gateways and the real compiler. */
import type { Static } from '@sinclair/typebox';
import { expect } from 'chai';
import type { BundleImported, ImportView } from '../../src/api/imports/imports.schema.js';
import type { HttpResponse } from '../support/client.js';
import { eventually } from '../support/eventually.js';
import { expectData, expectFailure } from '../support/expect.js';
import { multipart } from '../support/form.js';
import { DIES_AT_START, numbered, slowToCompile } from '../support/handler-sources.js';
import { call } from '../support/http.js';
import { handlerCompilersOf } from '../support/process-state.js';
import { must, type Stack, startStack } from '../support/processes.js';
import { startRedis, type TestRedis } from '../support/redis.js';
import { zipOf } from '../support/zip.js';

type Imported = Static<typeof BundleImported>;
type Import = Static<typeof ImportView>;

const BROKEN =
  'use rust_edge_gateway_sdk::prelude::*;\nfn handle(_: Request) -> Response { missing }\nhandler_loop!(handle);\n';
let stack: Stack;
let count = 0;

/** A bundle of one GET for each handler, named `<name>` at `/<prefix>/<name>`. */
function bundle(prefix: string, handlers: Readonly<Record<string, string>>): Buffer {
  const paths = Object.keys(handlers).map((name) => [
    `/${name}`,
    { get: { operationId: name, responses: { 200: { description: 'ok' } } } },
  ]);
  const spec = {
    openapi: '3.0.3',
    info: { title: prefix, version: '1' },
    servers: [{ url: `/${prefix}` }],
    paths: Object.fromEntries(paths),
  };
  const sources = Object.entries(handlers).map(([name, code]) => [`handlers/${name}.rs`, code]);
  return zipOf({ 'openapi.json': JSON.stringify(spec), ...Object.fromEntries(sources) });
}

const send = (zip: Buffer, query = 'compile=true&start=true', headers: Record<string, string> = {}) => {
  const form = multipart([{ name: 'bundle', filename: 'api.zip', content: zip }]);
  return stack.api.post(`/api/import/bundle?domain=*&${query}`, form.body, {
    headers: { ...form.headers, ...headers },
  });
};
const imported = async (zip: Buffer, query?: string) => expectData<Imported>(await send(zip, query));
const accepted = async (zip: Buffer, query?: string) =>
  expectData<{ import_id: string; status: string }>(await send(zip, query, { prefer: 'respond-async' }), 202)
    .import_id;
const view = async (id: string) => (await must(stack.api.get(`/api/imports/${id}`))) as Import;
const ended = (id: string) =>
  eventually(async () => {
    const current = await view(id);
    expect(current.finished_at, JSON.stringify(current.counts)).not.to.equal(null);
    return current;
  }, 90_000);
const answerOf = async (path: string) => (await call(`${stack.gatewayUrl}${path}`)).text;
const warningsOf = ({ body }: HttpResponse) => (body as { warnings?: string[] }).warnings ?? [];
const prefix = () => `b${++count}`;

interface Event {
  readonly event: string;
  readonly id: number;
  readonly data: { readonly state: string; readonly handlers: Import['handlers']; readonly counts: object };
}

/** All events of an import, until the stream ends. */
async function events(id: string, headers: Record<string, string> = {}): Promise<Event[]> {
  const {
    status,
    headers: received,
    text,
  } = await call(`${stack.apiUrl}/api/imports/${id}/events`, { headers });
  expect(status).to.equal(200);
  expect(received['content-type']).to.equal('text/event-stream; charset=utf-8');
  expect(text).to.match(/^retry: \d+\n\n/);
  return text
    .split('\n\n')
    .filter((block) => block.startsWith('event:'))
    .map((block) => {
      const fields = Object.fromEntries(
        block
          .split('\n')
          .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
      );
      return {
        event: fields['event'] ?? '',
        id: Number(fields['id']),
        data: JSON.parse(fields['data'] ?? ''),
      };
    });
}

/** On the dashboard, wherever the queue is. */
function flowTest(queues: string): void {
  it(`shows the job of an import with those of its handlers on the dashboard (queues on ${queues})`, async () => {
    const base = prefix();
    const { import_id: id, endpoints } = await imported(bundle(base, { one: numbered(9101), bad: BROKEN }));
    const board = await call(`${stack.apiUrl}/queues/api/queues`);
    const { queues } = JSON.parse(board.text) as { queues: { name: string }[] };
    expect(queues.map(({ name }) => name)).to.have.members([
      'compile',
      'import',
      'handler',
      'invoke',
      'schedule',
      'alert',
      'apply',
      'acme',
    ]);
    await eventually(async () => {
      const parent = JSON.parse((await call(`${stack.apiUrl}/queues/api/queues/import/${id}`)).text);
      expect(parent.status).to.equal('completed');
    });
    const flow = JSON.parse((await call(`${stack.apiUrl}/queues/api/queues/import/${id}/flow`)).text);
    const text = JSON.stringify(flow);
    for (const endpoint of endpoints) expect(text).to.include(`${id}-${endpoint.id}-1`);
  });
}

describe('importing bundles', () => {
  before(async () => {
    stack = await startStack();
  });
  after(() => stack.close());

  it('compiles and starts handlers of a bundle, and leaves unchanged ones running at the next import', async () => {
    const base = prefix();
    const zip = bundle(base, { one: numbered(9101), two: numbered(9102), three: numbered(9103) });
    const first = await imported(zip);
    expect(first).to.include({ endpoints_created: 3, endpoints_updated: 0, handlers_matched: 3 });
    expect(first).to.deep.include({ compiled: 3, started: 3, errors: [], collection: null });
    expect(
      first.endpoints.map(({ name, path, method, status, handler }) => ({
        name,
        path,
        method,
        status,
        handler,
      })),
    ).to.deep.equal(
      ['one', 'two', 'three'].map((name) => ({
        name,
        path: `/${base}/${name}`,
        method: 'GET',
        status: 'running',
        handler: `handlers/${name}.rs`,
      })),
    );
    expect(await answerOf(`/${base}/two`)).to.equal('9102 ');

    const again = await imported(zip);
    expect(again).to.include({ endpoints_created: 0, endpoints_updated: 3, compiled: 3, started: 3 });
    const shown = await view(again.import_id);
    expect(shown).to.deep.include({ state: 'succeeded', result: again });
    expect(shown.handlers.map(({ build_id }) => build_id)).not.to.include(null);

    // What does not run any more is started again; what has changed is compiled.
    const [one, two] = again.endpoints.map(({ id }) => id);
    const pidOf = async (id: string | undefined) =>
      ((await must(stack.api.get(`/api/endpoints/${id}`))) as { pid: number | null }).pid;
    const pids = await Promise.all([one, two].map(pidOf));
    await must(stack.api.post(`/api/endpoints/${two}/stop`));
    const changed = bundle(base, { one: numbered(9101), two: numbered(9102), three: numbered(9101) });
    expect(await imported(changed)).to.include({ endpoints_updated: 3, compiled: 3, started: 3 });
    expect(await pidOf(one)).to.equal(pids[0]);
    expect(await pidOf(two)).not.to.be.oneOf([pids[1], null]);
    expect(await answerOf(`/${base}/three`)).to.equal('9101 ');
  });

  it('continues an import when one handler does not compile and another does not start', async () => {
    const base = prefix();
    const zip = bundle(base, { good: numbered(9104), broken: BROKEN, quits: DIES_AT_START });
    const result = await imported(zip);
    expect(result, JSON.stringify(result.errors)).to.include({
      handlers_matched: 3,
      compiled: 2,
      started: 1,
    });
    expect(Object.fromEntries(result.endpoints.map(({ name, status }) => [name, status]))).to.deep.equal({
      good: 'running',
      broken: 'error',
      quits: 'error',
    });
    const errors = new Map(result.errors.map((error) => [error.name, error]));
    expect(errors.get('broken')).to.include({ stage: 'compile', handler: 'handlers/broken.rs' });
    expect(errors.get('broken')?.message).to.match(/^error\[E0425\]/);
    expect(errors.get('quits')).to.include({ stage: 'start', handler: 'handlers/quits.rs' });
    expect(errors.get('quits')?.message).to.include('the config is missing');
    expect(errors.get('quits')?.endpoint_id).to.equal(
      result.endpoints.find(({ name }) => name === 'quits')?.id,
    );
    expect(errors.size).to.equal(2);
    expect((await view(result.import_id)).state).to.equal('failed');
    expect(await answerOf(`/${base}/good`)).to.equal('9104 ');
  });

  it('answers an import at once with Prefer: respond-async, and shows its progress', async () => {
    const base = prefix();
    const zip = bundle(base, { slow: slowToCompile(700_000, 3), quick: numbered(9105) });
    const answer = await send(zip, 'compile=1&start=1', { prefer: 'respond-async' });
    const { import_id: id } = expectData<{ import_id: string }>(answer, 202);
    expect(answer.headers).to.include({
      location: `/api/imports/${id}`,
      'preference-applied': 'respond-async',
    });
    const all = await events(id);
    expect(all.at(-1)?.event).to.equal('done');
    const progress = all.filter(({ event }) => event === 'progress');
    expect(progress[0]?.data.handlers.map(({ name }) => name)).to.deep.equal(['slow', 'quick']);
    expect(all.map((event) => event.id)).to.deep.equal(all.map((event) => event.id).sort((a, b) => a - b));
    const states = progress.flatMap(({ data }) => data.handlers).filter(({ name }) => name === 'quick');
    expect(states.at(-1)?.state).to.equal('started');

    const done = await view(id);
    expect(done).to.include({ state: 'succeeded', title: base, compile: true, start: true });
    expect(done.counts).to.include({ queued: 0, started: 2, failed: 0 });
    expect(done.result).to.include({ import_id: id, compiled: 2, started: 2 });
    for (const handler of done.handlers) {
      expect(await must(stack.api.get(`/api/builds/${handler.build_id}`))).to.include({ state: 'succeeded' });
    }
    // Who comes late gets the end, and only what is new since the last event.
    const late = await events(id, { 'last-event-id': String(progress.at(-2)?.id) });
    expect(late.map(({ event }) => event)).to.deep.equal(['progress', 'done']);
    expect(late[0]?.data.handlers.length).to.be.lessThan(3);
  });

  it('compiles the handlers of a bundle without starting them, or only stores them, as its query says', async () => {
    const base = prefix();
    const compiled = await imported(bundle(base, { one: numbered(9106) }), 'compile=true');
    expect(compiled).to.include({ compiled: 1, started: 0 });
    expect(compiled.endpoints[0]?.status).to.equal('compiled');
    const stored = await imported(bundle(prefix(), { one: numbered(9106) }), 'compile=false');
    expect(stored).to.include({ handlers_matched: 1, compiled: 0, started: 0 });
    expect(stored.endpoints[0]?.status).to.equal('created');
  });

  flowTest('PostgreSQL');

  for (const [query, stage] of [
    ['compile=true', 'compile'],
    ['compile=true&start=true', 'start'],
  ] as const) {
    it(`reports an endpoint that is deleted during its import, and imports the others (${query})`, async () => {
      const slowly = slowToCompile(1_500_000, 4 + stage.length);
      const id = await accepted(bundle(prefix(), { slow: slowly, other: numbered(9101) }), query);
      // Under way: its endpoint was there when its build began.
      const slow = await eventually(async () => {
        const found = (await view(id)).handlers.find(({ name }) => name === 'slow');
        expect(found?.build_id).to.be.a('string');
        return found;
      });
      await must(stack.api.delete(`/api/endpoints/${slow?.endpoint_id}`));
      const { state, result } = await ended(id);
      expect(state).to.equal('failed');
      expect(result?.errors).to.deep.equal([
        {
          stage,
          endpoint_id: slow?.endpoint_id,
          name: 'slow',
          handler: 'handlers/slow.rs',
          message: `The endpoint ${slow?.endpoint_id} does not exist`,
        },
      ]);
      expect(result?.endpoints.map(({ name }) => name)).to.deep.equal(['other']);
    });
  }

  it('finishes an import although its worker is killed in the middle of it', async () => {
    // However many cores there are: some handlers are done while others compile.
    await stack.processes.get('worker')?.end();
    await stack.start('worker', { WORKER_CONCURRENCY: '2' });
    const base = prefix();
    const names = Array.from({ length: 4 }, (_, number) => `h${number}`);
    const zip = bundle(
      base,
      Object.fromEntries(names.map((name, number) => [name, slowToCompile(400_000, 500 + number)])),
    );
    const answer = imported(zip);
    const pid = stack.processes.get('worker')?.pid ?? 0;
    await eventually(async () => {
      const { import_id: id } = await latestImport();
      const { counts } = await view(id);
      expect(counts.compiled + counts.starting + counts.started).to.be.greaterThan(0);
      expect(handlerCompilersOf(pid)).not.to.deep.equal([]);
    });
    await stack.processes.get('worker')?.end('SIGKILL');
    await stack.start('worker');
    const result = await answer;
    expect(result).to.deep.include({ compiled: 4, started: 4, errors: [] });
    const { handlers } = await view(result.import_id);
    expect(handlers.some(({ attempt }) => attempt > 1)).to.equal(true);
    expect(await answerOf(`/${base}/h3`)).to.equal('400503');
  }).timeout(180_000);

  it('finishes an import although web is killed while it waits', async () => {
    const base = prefix();
    const zip = bundle(base, { one: slowToCompile(1_500_000, 601), two: slowToCompile(1_500_000, 602) });
    const answer = send(zip).catch((error: unknown) => error);
    const { import_id: id } = await eventually(async () => {
      const latest = await latestImport();
      expect(latest.title).to.equal(base);
      return latest;
    });
    await stack.processes.get('web')?.end('SIGKILL');
    expect(await answer).to.be.instanceOf(Error);
    await stack.start('web');
    expect(await ended(id)).to.deep.include({ state: 'succeeded' });
    expect(await answerOf(`/${base}/two`)).to.equal('1500602');
  }).timeout(120_000);

  it('spreads the handlers of a bundle over all workers', async () => {
    await stack.processes.get('worker')?.end();
    await stack.start('worker', { WORKER_CONCURRENCY: '1' });
    const other = stack.launch('worker', { WORKER_CONCURRENCY: '1' });
    try {
      await other.ready;
      const sources = Array.from({ length: 8 }, (_, number) => [`h${number}`, numbered(9200 + number)]);
      const result = await imported(bundle(prefix(), Object.fromEntries(sources)), 'compile=true');
      expect(result.compiled).to.equal(8);
      const own = stack.processes.get('worker')?.logged.lines ?? [];
      const finished = (lines: readonly Record<string, unknown>[]) =>
        lines.filter((line) => line['import_id'] === result.import_id && line['msg'] === 'handler finished')
          .length;
      expect(finished(own) + finished(other.logged.lines)).to.equal(8);
      expect(Math.min(finished(own), finished(other.logged.lines))).to.be.greaterThan(1);
    } finally {
      await other.end();
    }
  }).timeout(120_000);

  async function latestImport(): Promise<{ import_id: string; title: string }> {
    const { default: pg } = await import('pg');
    const client = new pg.Client(stack.databaseUrl);
    await client.connect();
    try {
      const { rows } = await client.query(
        'SELECT id AS import_id, title FROM imports WHERE finished_at IS NULL ORDER BY created_at DESC LIMIT 1',
      );
      expect(rows).to.have.length(1);
      return rows[0];
    } finally {
      await client.end();
    }
  }
});

describe('importing bundles with the queue on Redis', () => {
  let redis: TestRedis;
  before(async () => {
    redis = await startRedis();
    stack = await startStack({ env: { REDIS_URL: redis.url } });
  });
  after(async () => {
    await stack.close();
    await redis.remove();
  });

  flowTest('Redis');

  it('keeps an import while Redis is down, and finishes it when it is back', async () => {
    const base = prefix();
    await redis.stop();
    const id = await accepted(bundle(base, { one: numbered(9108), two: numbered(9109) }));
    expect((await view(id)).state).to.equal('queued');
    await redis.start();
    const done = await ended(id);
    expect(done).to.deep.include({ state: 'succeeded' });
    expect(await answerOf(`/${base}/one`)).to.equal('9108 ');
  }).timeout(120_000);

  it('finishes an import whose jobs Redis has forgotten', async () => {
    await stack.processes.get('worker')?.end();
    const base = prefix();
    const id = await accepted(bundle(base, { one: numbered(9110) }));
    await redis.stop();
    await redis.start();
    await stack.start('worker');
    expect(await ended(id)).to.deep.include({ state: 'succeeded' });
  }).timeout(120_000);

  it('refuses an import that needs a gateway or a worker when none runs, and creates nothing', async () => {
    await stack.processes.get('gateway')?.end();
    const zip = bundle(prefix(), { one: numbered(9101) });
    expectFailure(await send(zip), 'no_gateway');
    await stack.processes.get('worker')?.end();
    expectFailure(await send(zip, 'compile=true'), 'no_worker');
    expect(await must(stack.api.get(`/api/endpoints?domain=*`))).to.satisfy((all: { path: string }[]) =>
      all.every(({ path }) => !path.startsWith(`/b${count}/`)),
    );
    const stored = await send(zip, '');
    expect(expectData<Imported>(stored).endpoints_created).to.equal(1);
    expect(warningsOf(stored)).to.deep.equal([]);
  });
});
