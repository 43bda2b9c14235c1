/**
 * What do policies cost a request? An endpoint with them against the same without any, in turn. And how long after the
 * answer of the API is a change in force on two gateways, under load?
 */

import { call } from '../test/support/http.js';
import { AUDIENCE, ISSUER, newKey, signToken } from '../test/support/issuer.js';
import { outcomes, startLoad } from '../test/support/load.js';
import { freePort } from '../test/support/ports.js';
import { must, type Stack } from '../test/support/processes.js';
import { withStacks } from './support/gateway.js';
import { SMALL_JSON } from './support/handlers.js';
import { load } from './support/load.js';
import { type Benchmark, runAlone } from './support/main.js';
import { median, type Row, round } from './support/report.js';
import { measureInTurn, medianOf, ratioOf } from './support/rounds.js';

const ROUNDS = 7;
const SECONDS = 3;
const CONNECTIONS = 64;
const HOST = 'policies.example';
const ORIGIN = 'https://app.example';
const VALIDATE = {
  mode: 'enforce',
  parameters: [{ in: 'path', name: 'name', schema: { type: 'string', maxLength: 20 } }],
  body: {
    required: true,
    content: {
      'application/json': {
        schema: {
          type: 'object',
          required: ['name', 'email'],
          additionalProperties: false,
          properties: {
            name: { type: 'string', minLength: 1, maxLength: 40 },
            email: { type: 'string', format: 'email' },
            age: { type: 'integer', minimum: 0 },
            tags: { type: 'array', maxItems: 10, items: { type: 'string', pattern: '^[a-z]+$' } },
          },
        },
      },
    },
  },
};
const BODY = JSON.stringify({ name: 'Ada', email: 'ada@example.com', age: 36, tags: ['a', 'b', 'c'] });
const CHANGES = 100;

export const policies: Benchmark = () =>
  withStacks([{ env: { GATEWAY_CONCURRENCY: '1' } }], async (stack) => {
    if (!stack) throw new Error('no stack');
    const headers = await prepare(stack);
    const measure =
      (name: keyof typeof headers, body = '') =>
      () =>
        load({
          ...{ url: `${stack.gatewayUrl}/${name}/ada`, seconds: SECONDS, connections: CONNECTIONS },
          script: luaScript({ Host: HOST, ...headers[name] }, body),
        });
    const rounds = await measureInTurn(ROUNDS, {
      none: measure('none'),
      four: measure('four'),
      jwt: measure('jwt'),
      posted: measure('posted', BODY),
      validated: measure('validated', BODY),
    });
    const rps = (of: keyof typeof headers) =>
      round(medianOf(rounds, of, ({ requestsPerSecond }) => requestsPerSecond));
    const row = (
      question: string,
      of: keyof typeof headers,
      atLeast: number,
      against: keyof typeof headers = 'none',
    ): Row => ({
      question,
      measured: `${rps(of)}/s against ${rps(against)}/s`,
      value: ratioOf(rounds, of, against, ({ requestsPerSecond }) => requestsPerSecond),
      unit: 'x',
      bar: { atLeast },
    });
    return [
      row('requests/s with cors, ip, api_key and a local rate limit, against none', 'four', 0.9),
      row('requests/s with jwt, ES256 and a cached key, against no policies', 'jwt', 0.7),
      row('requests/s with validate of a small body, against none', 'validated', 0.8, 'posted'),
      await inForce(stack),
    ];
  });

/** Each change counts: the slowest of them is compared with the bar. */
async function inForce(stack: Stack): Promise<Row> {
  const port = await freePort();
  const second = stack.launch('gateway', { GATEWAY_PORT: String(port) });
  await second.ready;
  const gateways = [stack.gatewayUrl, `http://127.0.0.1:${port}`];
  const id = await stack.deploy({ path: '/changes/{name}', code: SMALL_JSON, domain: HOST });
  const wanted = { path: '/changes/ada', headers: { host: HOST } };
  const under = await startLoad({ targets: gateways, request: () => ({ ...wanted, text: /ada/ }) });
  const turnAt = async (gateway: string) =>
    (await call(`${gateway}${wanted.path}`, { headers: wanted.headers })).headers['x-turn'];
  const times: number[] = [];
  for (let turn = 0; turn < CHANGES; turn++) {
    const policies = { headers: { response: { set: { 'X-Turn': String(turn) } } } };
    await must(stack.api.put(`/api/endpoints/${id}`, { policies }));
    const answered = performance.now();
    const isInForce = async (gateway: string) => {
      while ((await turnAt(gateway)) !== String(turn));
    };
    await Promise.all(gateways.map(isInForce));
    times.push(performance.now() - answered);
  }
  const failures = outcomes(await under.stop());
  await second.end();
  if (Object.keys(failures).length > 0) throw new Error(`Requests have failed: ${JSON.stringify(failures)}`);
  return {
    question: 'from the answer to a change of policies until it is in force on two gateways, under load',
    measured: `slowest of ${CHANGES}, median ${round(median(times))} ms`,
    value: Math.max(...times),
    unit: 'ms',
    bar: { atMost: 100 },
  };
}

/** @returns the headers of the requests to each endpoint */
async function prepare({ api, deploy }: Stack) {
  const { id } = (await must(api.post('/api/domains', { name: 'D', host: HOST }))) as { id: string };
  const { key } = (await must(api.post(`/api/domains/${id}/keys`, { label: 'bench' }))) as { key: string };
  const issuerKey = await newKey('ES256', 'bench');
  const endpoint = (name: string, policies: object | null, method = 'GET') =>
    deploy({ path: `/${name}/{name}`, method, code: SMALL_JSON, domain: HOST, policies });
  await endpoint('none', null);
  await endpoint('four', {
    cors: { origins: [ORIGIN] },
    ip: { allow: ['127.0.0.0/8', '10.0.0.0/8'], deny: ['10.1.0.0/16'] },
    rate_limit: { requests: 1_000_000_000, window_seconds: 60, by: 'address' },
    auth: { api_key: {} },
  });
  await endpoint('jwt', {
    auth: { jwt: { issuer: ISSUER, audience: AUDIENCE, jwks: { keys: [issuerKey.jwk] } } },
  });
  await endpoint('posted', null, 'POST');
  await endpoint('validated', { validate: VALIDATE }, 'POST');
  return {
    none: {},
    posted: { 'content-type': 'application/json' },
    validated: { 'content-type': 'application/json' },
    four: { 'x-api-key': key, origin: ORIGIN },
    jwt: {
      authorization: `Bearer ${await signToken(issuerKey, { exp: Math.floor(Date.now() / 1000) + 3600 })}`,
    },
  };
}

function luaScript(headers: Readonly<Record<string, string>>, body: string): string {
  const lines = body === '' ? [] : ['wrk.method = "POST"', `wrk.body = ${JSON.stringify(body)}`];
  const set = Object.entries(headers).map(
    ([name, value]) => `wrk.headers[${JSON.stringify(name)}] = ${JSON.stringify(value)}`,
  );
  return [...lines, ...set].join('\n');
}

await runAlone(import.meta.url, policies);
