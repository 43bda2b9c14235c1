/** What operators see: the queue dashboard, metrics, logs. */
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { ANYTHING } from '../support/handler-sources.js';
import { call } from '../support/http.js';
import { freePort } from '../support/ports.js';
import { must, type Stack, startStack } from '../support/processes.js';
import { rawExchange } from '../support/raw-http.js';

const KEY = 'the-key-of-the-operators';

interface Series {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** The lines of a Prometheus text. */
function parseMetrics(text: string): Series[] {
  return text.split('\n').flatMap((line) => {
    const match = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!match) return [];
    const [, name = '', labels = '', value] = match;
    const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, text]) => [key, text]);
    return [{ name, labels: Object.fromEntries(pairs) as Record<string, string>, value: Number(value) }];
  });
}

describe('operating', () => {
  let stack: Stack;
  let endpoint: string;
  let buildId: string;
  let workerMetrics: string;
  const auth = { headers: { authorization: `Bearer ${KEY}` } };
  const post = (path: string, body?: unknown, headers: Record<string, string> = {}) =>
    stack.api.post(path, body, { headers: { ...auth.headers, ...headers } });

  before(async () => {
    stack = await startStack({
      env: { API_KEY: KEY, LOG_LEVEL: 'debug' },
      processes: ['web', 'gateway', 'actor-host'],
    });
    const port = await freePort();
    workerMetrics = `http://127.0.0.1:${port}/metrics`;
    await stack.start('worker', { METRICS_PORT: String(port) });
    const created = await must(
      post('/api/endpoints', {
        name: 'op',
        path: '/op/{secret}',
        method: 'GET',
        domain: '*',
        code: ANYTHING,
      }),
    );
    endpoint = (created as { id: string }).id;
    const compiled = await must(
      post(`/api/endpoints/${endpoint}/compile`, undefined, { 'x-request-id': 'follow-me' }),
    );
    buildId = (compiled as { build_id: string }).build_id;
    await must(post(`/api/endpoints/${endpoint}/start`));
    const broken = await must(
      post('/api/endpoints', { name: 'b', path: '/b', method: 'GET', domain: '*', code: 'fn main() { 1 }' }),
    );
    await post(`/api/endpoints/${(broken as { id: string }).id}/compile`);
  });
  after(() => stack.close());

  const series = async (url = `${stack.apiUrl}/metrics`) => {
    const answer = await call(url, auth);
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.headers['content-type']).to.match(/^text\/plain; version=0\.0\.4/);
    return parseMetrics(answer.text);
  };
  const find = (all: readonly Series[], name: string, labels: Record<string, string> = {}) =>
    all.filter(
      (one) => one.name === name && Object.entries(labels).every(([key, value]) => one.labels[key] === value),
    );
  const value = (all: readonly Series[], name: string, labels: Record<string, string> = {}) => {
    const found = find(all, name, labels);
    expect(found, `${name} ${JSON.stringify(labels)}`).to.have.length(1);
    return found[0]?.value;
  };

  describe('the queue dashboard', () => {
    const basic = (key: string) => ({
      headers: { authorization: `Basic ${Buffer.from(`operator:${key}`).toString('base64')}` },
    });

    it('asks browsers for the key of the queue dashboard', async () => {
      for (const options of [{}, basic('wrong')]) {
        const refused = await call(`${stack.apiUrl}/queues`, options);
        expect(refused.status).to.equal(401);
        expect(refused.headers['www-authenticate']).to.match(/^Basic /);
      }
      for (const path of ['/queues', '/queues/']) {
        const page = await call(`${stack.apiUrl}${path}`, basic(KEY));
        expect(page.status).to.equal(200);
        expect(page.headers['content-type']).to.match(/^text\/html/);
        // Nothing from elsewhere, and no page in a colour of its own before it knows its theme.
        expect(page.text).to.match(/min-height:100vh/);
        expect(page.text).not.to.match(/<link[^>]*https?:|min-height:100vh[^"]*background/);
      }
    });

    it('shows the compile queue with its jobs on the queue dashboard', async () => {
      const url = `${stack.apiUrl}/queues/api/queues?activeQueue=compile&status=completed&page=1&jobsPerPage=10`;
      expect((await call(url)).status).to.equal(401);
      // A build is answered before its job is marked as completed.
      await eventually(async () => {
        const answer = await call(url, basic(KEY));
        expect(answer.status, answer.text).to.equal(200);
        const { queues } = JSON.parse(answer.text) as {
          queues: {
            name: string;
            counts: Record<string, number>;
            jobs: { data: { buildId: string; requestId: string } }[];
          }[];
        };
        expect(queues.map(({ name }) => name)).to.deep.equal([
          'compile',
          'import',
          'handler',
          'invoke',
          'schedule',
          'alert',
          'apply',
          'acme',
        ]);
        expect(queues[0]?.counts).to.include({ completed: 1, failed: 1 });
        const [job] = queues[0]?.jobs ?? [];
        expect(job?.data).to.include({ buildId, attempt: 1, requestId: 'follow-me' });
      });
    });
  });

  describe('a compile that the compiler refuses', () => {
    it('shows a refused compile under Failed on the dashboard, with its endpoint, error and build', async () => {
      const url = `${stack.apiUrl}/queues/api/queues?activeQueue=compile&status=failed&page=1&jobsPerPage=10`;
      await eventually(async () => {
        const { text } = await call(url, { headers: { authorization: `Bearer ${KEY}` } });
        const { queues } = JSON.parse(text) as {
          queues: {
            jobs: {
              name: string;
              failedReason: string;
              externalUrl?: { href: string };
              data: { buildId: string };
            }[];
          }[];
        };
        const [job] = queues[0]?.jobs ?? [];
        expect(job?.name).to.equal('compile b: failed');
        expect(job?.failedReason).to.match(/^error/);
        expect(job?.externalUrl?.href).to.equal(`/api/builds/${job?.data.buildId}`);
      });
      const errors = (stack.processes.get('worker')?.logged.lines ?? []).filter(({ level }) => level >= 50);
      expect(errors).to.deep.equal([]);
    });
  });

  describe('removing all jobs of a queue', () => {
    const authorization = { authorization: `Bearer ${KEY}` };
    const person = {
      'sec-fetch-mode': 'navigate',
      'sec-fetch-dest': 'document',
      'sec-fetch-user': '?1',
      'sec-fetch-site': 'same-origin',
    };
    const at = (path: string, method = 'GET', headers: Record<string, string> = {}) =>
      call(`${stack.apiUrl}/queues${path}`, { method, headers: { ...authorization, ...headers } });
    const completed = async () => {
      const { text } = await at('/api/queues?activeQueue=compile&status=completed&page=1&jobsPerPage=10');
      const { queues } = JSON.parse(text) as { queues: { counts: { completed: number } }[] };
      return queues[0]?.counts.completed;
    };

    it('refuses to let the dashboard remove all jobs of a queue, and names the page that confirms it', async () => {
      for (const removal of [
        ...['empty', 'obliterate', 'obliterate/', 'EMPTY', 'Obliterate', 'clean/wait', 'clean/delayed'],
        ...['clean/active', 'CLEAN/paused/', 'clean/completed/wait', 'clean/failedx'],
        ...['clean/completed', 'Clean/Failed/'],
      ]) {
        const refused = await at(`/api/queues/compile/${removal}`, 'PUT');
        expect(refused.status, removal).to.equal(409);
        const { error, message } = JSON.parse(refused.text) as Record<string, string>;
        expect(error).to.equal('This needs a confirmation');
        const path = /\/queues(\/confirm\/\S+)/.exec(message ?? '')?.[1] ?? '';
        const page = await at(path);
        expect([page.status, page.text]).to.satisfy(
          ([status, text]: [number, string]) => status === 200 && text.includes('<form method="post">'),
        );
        expect(page.headers['content-security-policy']).to.match(
          /default-src 'none'.*frame-ancestors 'none'/,
        );
      }
      expect((await at('/api/queues/none/empty', 'PUT')).status).to.equal(404);
      expect((await at('/confirm/none/empty')).status).to.equal(404);
      expect((await at('/confirm/compile/empty', 'PUT')).status).to.equal(405);
    });

    it('refuses to let scripts and frames remove all jobs of a queue', async () => {
      for (const forged of [
        { 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' },
        { 'sec-fetch-user': '' },
        { 'sec-fetch-dest': 'iframe' },
        { 'sec-fetch-site': 'same-site' },
        { 'sec-fetch-site': 'cross-site' },
        { origin: 'http://127.0.0.1:1' },
      ]) {
        const refused = await at('/confirm/compile/obliterate', 'POST', { ...person, ...forged });
        expect(refused.status, JSON.stringify(forged)).to.equal(403);
      }
      expect(await completed()).to.be.above(0);
    });

    it('removes all jobs of a queue when a person confirms it', async () => {
      for (const removal of ['empty', 'obliterate']) {
        const done = await at(`/confirm/compile/${removal}`, 'POST', person);
        expect([done.status, done.headers['location']]).to.deep.equal([303, '/queues/queue/compile']);
      }
      expect(await completed()).to.equal(0);
      const { text } = await at('/api/queues');
      const { queues } = JSON.parse(text) as { queues: { name: string; isPaused: boolean }[] };
      expect(queues.find(({ name }) => name === 'compile')?.isPaused).to.equal(false);
    });
  });

  describe('metrics', () => {
    it('refuses metrics to requests without the key', async () => {
      expect((await call(`${stack.apiUrl}/metrics`)).status).to.equal(401);
    });

    it('counts requests in metrics by endpoint and status class, with the template of the route', async () => {
      for (let i = 0; i < 3; i++) await call(`${stack.gatewayUrl}/op/hush-${i}`);
      await call(`${stack.gatewayUrl}/op/hush?do=status&code=404`);
      await call(`${stack.gatewayUrl}/op/hush?do=panic`);
      // Refused before a handler gets it, but known.
      const large = `GET /op/hush HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${2 ** 40}\r\n\r\n`;
      expect((await rawExchange(stack.gatewayUrl, large)).map(({ status }) => status)).to.deep.equal([413]);
      await call(`${stack.gatewayUrl}/no-such/hush`);
      await call(`${stack.gatewayUrl}/op/hush`, { method: 'POST' });
      const labels = { endpoint, domain: '*', method: 'GET', route: '/op/{secret}' };
      const all = await series();
      expect(value(all, 'edge_gateway_requests_total', { ...labels, status: '2xx' })).to.equal(3);
      expect(value(all, 'edge_gateway_requests_total', { ...labels, status: '4xx' })).to.equal(2);
      expect(value(all, 'edge_gateway_requests_total', { ...labels, status: '5xx' })).to.equal(1);
      expect(value(all, 'edge_gateway_request_duration_seconds_count', labels)).to.equal(6);
      expect(value(all, 'edge_gateway_request_duration_seconds_bucket', { ...labels, le: '+Inf' })).to.equal(
        6,
      );
      expect(value(all, 'edge_gateway_refused_total', { status: '404' })).to.equal(1);
      expect(value(all, 'edge_gateway_refused_total', { status: '405' })).to.equal(1);
      expect(find(all, 'edge_gateway_refused_total', { status: '413' })).to.deep.equal([]);
      for (const { labels: own } of all) expect(JSON.stringify(own)).not.to.match(/hush|no-such/);
    });

    it('shows requests in flight in metrics', async () => {
      expect(value(await series(), 'edge_gateway_requests_in_flight')).to.equal(0);
      const slow = call(`${stack.gatewayUrl}/op/1?do=sleep&ms=500`);
      await eventually(async () =>
        expect(value(await series(), 'edge_gateway_requests_in_flight')).to.equal(1),
      );
      await slow;
      await eventually(async () =>
        expect(value(await series(), 'edge_gateway_requests_in_flight')).to.equal(0),
      );
    });

    it('counts restarts of handlers in metrics by their reason', async () => {
      await call(`${stack.gatewayUrl}/op/1?do=exit`);
      await eventually(async () => {
        const labels = { endpoint, reason: 'crash' };
        expect(value(await series(), 'edge_gateway_handler_restarts_total', labels)).to.equal(1);
      });
    });

    it('counts and times builds in metrics by their result', async () => {
      const all = await series();
      for (const result of ['succeeded', 'compile_failed']) {
        expect(value(all, 'edge_build_duration_seconds_count', { result })).to.equal(1);
        expect(value(all, 'edge_build_duration_seconds_sum', { result })).to.be.greaterThan(0);
      }
    });

    it('shows the number of jobs in the compile queue in metrics, by state', async () => {
      for (const state of ['waiting', 'active', 'delayed', 'failed'])
        expect(value(await series(), 'edge_queue_jobs', { queue: 'compile', state })).to.equal(0);
      await stack.processes.get('worker')?.end();
      await must(stack.api.put(`/api/endpoints/${endpoint}`, { code: `${ANYTHING} // changed` }, auth));
      await post(`/api/endpoints/${endpoint}/compile`, undefined, { prefer: 'respond-async' });
      expect(value(await series(), 'edge_queue_jobs', { queue: 'compile', state: 'waiting' })).to.equal(1);
      await stack.start('worker', { METRICS_PORT: new URL(workerMetrics).port });
      await eventually(async () =>
        expect(value(await series(), 'edge_queue_jobs', { queue: 'compile', state: 'waiting' })).to.equal(0),
      );
    });

    it('times requests to the management API in metrics, by route', async () => {
      const all = await series();
      const labels = { method: 'POST', route: '/api/endpoints/{id}/compile', status: '2xx' };
      expect(value(all, 'edge_api_request_duration_seconds_count', labels)).to.be.at.least(1);
      for (const { labels: own } of find(all, 'edge_api_request_duration_seconds_count'))
        expect(own['route']).not.to.include(endpoint);
    });

    it('serves the metrics of one process on its METRICS_PORT', async () => {
      await eventually(async () => {
        const all = await series(workerMetrics);
        expect(value(all, 'edge_build_duration_seconds_count', { result: 'succeeded' })).to.equal(1);
        expect(find(all, 'edge_gateway_requests_total')).to.deep.equal([]);
      });
    });

    it('serves the metrics of the gateway when the actor host was killed', async () => {
      await stack.processes.get('actor-host')?.end('SIGKILL');
      expect(find(await series(), 'edge_gateway_requests_total')).not.to.deep.equal([]);
      await stack.start('actor-host');
    });
  });

  describe('logs', () => {
    const lines = (name: 'web' | 'worker' | 'gateway') => stack.processes.get(name)?.logged.lines ?? [];

    it('logs the request id of a compile in web and worker, and keeps it with the build', async () => {
      const { id } = (await must(
        post('/api/endpoints', {
          name: 'f',
          path: '/f',
          method: 'GET',
          domain: '*',
          code: `// f\n${ANYTHING}`,
        }),
      )) as { id: string };
      const compiled = await must(
        post(`/api/endpoints/${id}/compile`, undefined, { 'x-request-id': 'one-id' }),
      );
      const build = (await must(
        stack.api.get(`/api/builds/${(compiled as { build_id: string }).build_id}`, auth),
      )) as {
        request_id: string;
      };
      expect(build.request_id).to.equal('one-id');
      for (const name of ['web', 'worker'] as const) {
        await eventually(() =>
          expect(lines(name).filter((line) => line['request_id'] === 'one-id')).not.to.deep.equal([]),
        );
      }
    });

    it('logs the request id and the endpoint of a request whose handler exits', async () => {
      await call(`${stack.gatewayUrl}/op/1?do=exit`, { headers: { 'x-request-id': 'crashing' } });
      await eventually(() => {
        const line = lines('gateway').find((one) => one['request_id'] === 'crashing');
        expect(line).to.include({ endpoint_id: endpoint });
      });
    });

    it('writes logs as lines of JSON with time, level and process, and without secrets', async () => {
      for (const name of ['web', 'worker', 'gateway'] as const) {
        const printed = stack.processes.get(name)?.printed() ?? '';
        for (const line of printed.trim().split('\n')) {
          const entry = JSON.parse(line) as Record<string, unknown>;
          expect(entry).to.include({ name });
          expect(entry['time']).to.be.a('number');
          expect(entry['level']).to.be.a('number');
        }
        expect(printed).not.to.include(KEY);
        expect(printed).not.to.include(`${new URL(stack.databaseUrl).password}@`);
      }
    });
  });
});
