/** Secrets of the installation with real processes: services take their values where they are used. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { type RedisBackend, startRedisBackend } from '../support/backends/redis.js';
import { eventually } from '../support/eventually.js';
import { expectData } from '../support/expect.js';
import { outcomes, startLoad } from '../support/load.js';
import { withClient } from '../support/postgres.js';
import { must, type Stack, startStack } from '../support/processes.js';
import {
  activeService,
  bind,
  connectAs,
  createEndpoint,
  createService,
  SECRET_KEY,
} from '../support/test-services.js';

const RIGHT = 'rQ3-right-password';
const NEXT = 'nX8-next-password';
const CACHE = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(_req: Request) -> Response {
    match RedisPool::new("cache").setex("key", "value", 60) {
        Ok(_) => Response::text(200, "stored"),
        Err(error) => Response::text(502, error.to_string()),
    }
}
handler_loop!(handle);
`;

interface Shown {
  readonly config: object;
  readonly state: string;
  readonly state_message: string | null;
}

describe('secrets of the installation in services', function () {
  this.timeout(120_000);
  let stack: Stack;
  let redis: RedisBackend;
  let config: object;
  before(async () => {
    redis = await startRedisBackend({ password: RIGHT });
    config = { ...redis.config, password: { secret: 'CACHE_PASSWORD' } };
    stack = await startStack({ env: { SECRET_KEY, LOG_LEVEL: 'debug' } });
  });
  after(async () => {
    await stack?.close();
    await redis?.remove();
  });

  const set = async (value: string) =>
    expectData(await stack.api.put('/api/secrets/CACHE_PASSWORD', { value }));
  const shown = async (id: string) => (await must(stack.api.get(`/api/services/${id}`))) as Shown;
  const activate = (id: string) => stack.api.post(`/api/services/${id}/activate`);
  const tested = async (id: string) => must(stack.api.post(`/api/services/${id}/test`));

  it('resolves secrets of services for tests and connections, and keeps references everywhere else', async () => {
    await set(RIGHT);
    const id = await createService(stack.api, 'redis', config);
    expect(await tested(id)).to.include({ connected: true });
    expect((await activate(id)).body).to.include({ success: true });
    expect(await shown(id)).to.deep.include({ state: 'connected', config });
    const endpoint = await createEndpoint(stack.api, '/resolved');
    await bind(stack.api, endpoint, id, 'cache');
    const client = await connectAs(stack, endpoint);
    try {
      expect(await client.send({ pool: 'cache', op: 'command' }, '["PING"]')).to.include({ ok: true });
    } finally {
      await client.close();
    }
    const tables = await withClient(stack.databaseUrl, async (database) => [
      (await database.query('SELECT * FROM services')).rows,
      (await database.query('SELECT * FROM installation_secrets')).rows,
      (await database.query('SELECT * FROM service_observations')).rows,
    ]);
    expect(JSON.stringify(tables)).not.to.include(RIGHT);
    for (const [name, { logged }] of stack.processes)
      expect(JSON.stringify(logged.lines), `log of ${name}`).not.to.include(RIGHT);
  });

  it('sends secrets in headers of requests of an HTTP service, and shows them in no answer or log', async () => {
    const received: (string | string[] | undefined)[] = [];
    const server = createServer((request, response) => {
      received.push(request.headers['x-auth-token']);
      response.end('answered');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const headers = { 'X-Auth-Token': { secret: 'HEADER' }, Accept: 'text/plain' };
    const http = { base_url: `http://127.0.0.1:${port}`, allow_private_addresses: true, headers };
    const setHeader = async (value: string) =>
      expectData(await stack.api.put('/api/secrets/HEADER', { value }));
    try {
      await setHeader(NEXT);
      const id = await activeService(stack.api, 'http', http);
      expect(await shown(id)).to.deep.include({ state: 'connected' });
      expect(received.pop()).to.equal(NEXT);
      await setHeader(RIGHT);
      expect(await tested(id)).to.include({ connected: true });
      expect(received.pop()).to.equal(RIGHT);
      expect((await shown(id)).config).to.deep.include({ headers });
      await setHeader('two\r\nX-Lines: 2');
      const answer = JSON.stringify([await tested(id), await shown(id)]);
      expect(answer).to.include('headers.X-Auth-Token').and.not.include('X-Lines');
      for (const [name, { logged }] of stack.processes)
        expect(JSON.stringify(logged.lines), `log of ${name}`).not.to.include(RIGHT);
    } finally {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  });

  it('reconnects active services with a changed secret before the API answers', async () => {
    await set(RIGHT);
    const id = await activeService(stack.api, 'redis', config);
    await set('wrong');
    expect(await shown(id)).to.include({ state: 'unreachable' });
    expect(await tested(id)).to.include({ connected: false });
    await set(RIGHT);
    expect(await shown(id)).to.include({ state: 'connected' });
  });

  it('changes a secret of an active service without a failed request of its callers', async () => {
    await set(RIGHT);
    const id = await activeService(stack.api, 'redis', config);
    const endpoint = await stack.deploy({ path: '/cached', code: CACHE });
    await bind(stack.api, endpoint, id, 'cache');
    // Both passwords are right for a while, as in a rotation.
    const admin = new Redis(redis.config.port, redis.config.host, { password: RIGHT });
    const load = await startLoad({
      targets: [stack.gatewayUrl],
      clients: 4,
      request: () => ({ path: '/cached', text: 'stored' }),
    });
    try {
      await admin.acl('SETUSER', 'default', `>${NEXT}`);
      for (let turn = 0; turn < 6; turn++) {
        const before = load.served();
        await set(turn % 2 === 0 ? NEXT : RIGHT);
        await eventually(() => expect(load.served()).to.be.greaterThan(before + 50));
      }
    } finally {
      admin.disconnect();
      expect(outcomes(await load.stop())).to.deep.equal({});
    }
  });

  it('says which setting is wrong when the value of a secret does not fit the config of a service', async () => {
    expectData(
      await stack.api.put('/api/secrets/MONGO_URI', { value: 'mongodb://hidden-host/?tlsCAFile=/x' }),
    );
    const id = await createService(stack.api, 'mongodb', { uri: { secret: 'MONGO_URI' } });
    const test = (await tested(id)) as { connected: boolean; error: string };
    expect(test.connected).to.equal(false);
    expect(test.error)
      .to.match(/^config\.uri: /)
      .and.not.include('hidden-host');
    expect((await activate(id)).body).to.include({ success: true });
    await eventually(async () => expect((await shown(id)).state_message).to.match(/^config\.uri: /));
    await stack.api.post(`/api/services/${id}/deactivate`);
  });
});
