/** Services of a real actor host: activated, changed and deactivated through the API, called as handlers call them. */
import { expect } from 'chai';
import type { ServiceConfig } from '../../src/model/service-configs.js';
import type { TestBackend } from '../support/backend.js';
import { startRedisBackend } from '../support/backends/redis.js';
import { eventually } from '../support/eventually.js';
import { expectData, expectFailure } from '../support/expect.js';
import { freePort } from '../support/ports.js';
import { must, type Stack, startStack } from '../support/processes.js';
import { connectServices, type ServiceClient } from '../support/service-client.js';
import { tempDir } from '../support/temp.js';
import {
  type Activity,
  activeService,
  bind,
  connectAs,
  createEndpoint,
  createService,
  SECRET_KEY,
} from '../support/test-services.js';

describe('services', function () {
  this.timeout(60_000);
  let stack: Stack;
  let redis: TestBackend<'redis'>;
  before(async () => {
    redis = await startRedisBackend();
    stack = await startStack({ processes: ['web', 'actor-host'], env: { SECRET_KEY } });
  });
  after(async () => {
    await stack.close();
    await redis.remove();
  });

  const clients: ServiceClient[] = [];
  afterEach(async () => {
    for (const client of clients.splice(0)) await client.close();
  });

  async function clientOf(endpointId: string): Promise<ServiceClient> {
    const client = await connectAs(stack, endpointId);
    clients.push(client);
    return client;
  }

  let paths = 0;
  /** An endpoint with a service under the name `cache`, and a connection of its handler. */
  async function bound(serviceId: string): Promise<{ endpointId: string; client: ServiceClient }> {
    const endpointId = await createEndpoint(stack.api, `/bound-${paths++}`);
    await bind(stack.api, endpointId, serviceId, 'cache');
    return { endpointId, client: await clientOf(endpointId) };
  }

  const ping = { pool: 'cache', op: 'command' };
  const pinged = (client: ServiceClient) => client.send(ping, '["PING"]');

  async function activity(id: string, operation: 'activate' | 'deactivate'): Promise<Activity> {
    return (await stack.api.post(`/api/services/${id}/${operation}`)).body as Activity;
  }

  const isActive = async (id: string) =>
    ((await must(stack.api.get(`/api/services/${id}`))) as { active: boolean }).active;

  describe('activation', () => {
    it('connects a service when it is activated, and names the server', async () => {
      const id = await createService(stack.api, 'redis', redis.config, 'my cache');
      const { status, body } = await stack.api.post(`/api/services/${id}/activate`);
      expect(status).to.equal(200);
      const { success, data } = body as Activity;
      expect(success).to.equal(true);
      expect(data).to.include({ id, name: 'my cache', service_type: 'redis', active: true });
      expect(data?.message).to.match(/^Connected to Redis .+ in \d+ ms$/);
      expect(await isActive(id)).to.equal(true);
      expect((await activity(id, 'activate')).data).to.have.property('active', true);
    });

    it('activates a service whose backend is down, and retries until it can connect', async () => {
      await redis.stop();
      const id = await createService(stack.api, 'redis', redis.config);
      const { client } = await bound(id);
      try {
        const { success, data } = await activity(id, 'activate');
        expect(success).to.equal(true);
        expect(data?.message).to.match(/cannot be reached yet; .*refused/);
        expect(await pinged(client)).to.include({ ok: false, kind: 'unavailable' });
      } finally {
        await redis.start();
      }
      await eventually(async () => expect(await pinged(client)).to.include({ ok: true }));
    });

    it('refuses calls of a service that is deactivated, until it is activated again', async () => {
      const id = await activeService(stack.api, 'redis', redis.config);
      const { client } = await bound(id);
      expect(await pinged(client)).to.include({ ok: true });
      const { success, data } = await activity(id, 'deactivate');
      expect({ success, active: data?.active }).to.deep.equal({ success: true, active: false });
      expect(await isActive(id)).to.equal(false);
      const refused = await pinged(client);
      expect(refused).to.include({ ok: false, kind: 'inactive' });
      expect(refused.message).to.match(/"redis \d+" is not active/);
      expect((await activity(id, 'deactivate')).success).to.equal(true);
      await activity(id, 'activate');
      expect(await pinged(client)).to.include({ ok: true });
    });

    it('deactivates a service when it is disabled, and refuses to activate it while it is', async () => {
      const id = await activeService(stack.api, 'redis', redis.config);
      const { client } = await bound(id);
      await must(stack.api.put(`/api/services/${id}`, { enabled: false }));
      expect(await isActive(id)).to.equal(false);
      expect(await pinged(client)).to.include({ kind: 'inactive' });
      const refused = await stack.api.post(`/api/services/${id}/activate`);
      expect(refused.status).to.equal(409);
      expect(refused.body).to.include({ success: false, ok: false, code: 'service_disabled' });
      await must(stack.api.put(`/api/services/${id}`, { enabled: true }));
      expect(await isActive(id)).to.equal(false);
    });

    it('reconnects an active service with a changed config', async () => {
      const id = await activeService(stack.api, 'redis', redis.config);
      const { client } = await bound(id);
      await client.send({ pool: 'cache', op: 'set', args: { key: 'where' } }, 'database 0');
      await must(stack.api.put(`/api/services/${id}`, { config: { ...redis.config, database: 1 } }));
      const get = { pool: 'cache', op: 'get', args: { key: 'where' } };
      expect(await client.send(get)).to.deep.include({ result: { found: false } });
      await must(stack.api.put(`/api/services/${id}`, { config: redis.config, name: 'renamed' }));
      expect(String((await client.send(get)).payload)).to.equal('database 0');
    });

    it('refuses calls of a service that has been deleted', async () => {
      const id = await activeService(stack.api, 'redis', redis.config);
      const { client } = await bound(id);
      expectData(await stack.api.delete(`/api/services/${id}`));
      expect(await pinged(client)).to.include({ ok: false });
      await eventually(async () => expect(await pinged(client)).to.include({ kind: 'unbound' }));
    });

    it('answers an activation when the service is connected on every actor host', async () => {
      const data = await tempDir('second-host');
      const second = stack.launch('actor-host', { DATA_DIR: data.path });
      try {
        await second.ready;
        const id = await activeService(stack.api, 'redis', redis.config);
        const isConnected = (lines: readonly object[]) =>
          lines.some((line) => 'service_id' in line && line.service_id === id && 'backend' in line);
        expect(isConnected(second.logged.lines)).to.equal(true);
        expect(isConnected(stack.processes.get('actor-host')?.logged.lines ?? [])).to.equal(true);
        await activity(id, 'deactivate');
      } finally {
        await second.end();
        await data.remove();
      }
    });

    it('refuses a second actor host for one DATA_DIR', async () => {
      const second = stack.launch('actor-host');
      second.logged.expectErrors(/could not start/);
      expect(await second.end('SIGCONT')).to.include({ code: 1 });
      expect(second.printed()).to.match(/one DATA_DIR has one actor host/);
    });
  });

  describe('a connection test', () => {
    it('reports the server and its latency in a connection test, without activating the service', async () => {
      const id = await createService(stack.api, 'redis', redis.config);
      const tested = expectData<{ connected: boolean; latency_ms: number; message: string }>(
        await stack.api.post(`/api/services/${id}/test`),
      );
      expect(tested.connected).to.equal(true);
      expect(Number.isInteger(tested.latency_ms)).to.equal(true);
      expect(tested.message).to.match(/^Connected to Redis/);
      expect(await isActive(id)).to.equal(false);
    });

    const failures: [
      what: string,
      change: () => Promise<Partial<ServiceConfig<'redis'>>>,
      message: RegExp,
    ][] = [
      ['a wrong password', async () => ({ password: 'wrong' }), /password/],
      ['an unknown host', async () => ({ host: 'no-such-host.invalid' }), /unknown host/],
      ['a port without a listener', async () => ({ port: await freePort() }), /refused/],
    ];
    for (const [what, change, message] of failures) {
      it(`reports ${what} as the reason of a failed connection test`, async () => {
        const id = await createService(stack.api, 'redis', { ...redis.config, ...(await change()) });
        const { status, body } = await stack.api.post(`/api/services/${id}/test`);
        expect(status).to.equal(200);
        expect(body).to.have.nested.property('data.connected', false);
        expect(body).to.have.nested.property('data.error').that.matches(message);
      });
    }
  });

  describe('bindings', () => {
    it('applies new and removed bindings at once on open connections of handlers', async () => {
      const id = await activeService(stack.api, 'redis', redis.config);
      const endpointId = await createEndpoint(stack.api, '/at-once');
      const client = await clientOf(endpointId);
      const unbound = await pinged(client);
      expect(unbound).to.include({ ok: false, kind: 'unbound' });
      expect(unbound.message).to.include('"cache"');
      for (let round = 0; round < 5; round++) {
        await bind(stack.api, endpointId, id, 'cache');
        expect(await pinged(client)).to.include({ ok: true });
        await must(stack.api.delete(`/api/endpoints/${endpointId}/services/${id}`));
        expect(await pinged(client)).to.include({ kind: 'unbound' });
      }
    });

    it('deletes the bindings of an endpoint with it', async () => {
      const id = await activeService(stack.api, 'redis', redis.config);
      const { endpointId, client } = await bound(id);
      expect(await pinged(client)).to.include({ ok: true });
      await must(stack.api.delete(`/api/endpoints/${endpointId}`));
      await eventually(async () => expect(await pinged(client)).to.include({ kind: 'unbound' }));
    });

    it('refuses a binding under a pool_id that the endpoint uses already', async () => {
      const id = await createService(stack.api, 'redis', redis.config);
      const { endpointId } = await bound(id);
      const again = await stack.api.post(`/api/endpoints/${endpointId}/services`, {
        service_id: await createService(stack.api, 'redis', redis.config),
        pool_id: 'cache',
      });
      expectFailure(again, 'pool_id_taken', /"cache"/);
    });
  });

  describe('a handler', () => {
    it('refuses calls of services without a token, or with an invalid one', async () => {
      const endpointId = await createEndpoint(stack.api, '/forged');
      const id = await activeService(stack.api, 'redis', redis.config);
      await bind(stack.api, endpointId, id, 'cache');
      const forged = [
        { token: '' },
        { token: endpointId },
        { token: `${endpointId}.${'A'.repeat(43)}` },
        { token: 'x'.repeat(1_000) },
      ];
      for (const head of forged) {
        const client = await connectServices(stack.servicesSocket);
        expect(await client.send(head)).to.include({ ok: false, kind: 'unauthenticated' });
        await client.closed;
      }
      const client = await connectServices(stack.servicesSocket);
      await client.send(ping, '["PING"]').then(
        () => expect.fail('answered without a token'),
        () => undefined,
      );
      await client.closed;
    });

    it('refuses calls of a service that is bound only to another endpoint', async () => {
      await bound(await activeService(stack.api, 'redis', redis.config));
      const other = await clientOf(await createEndpoint(stack.api, '/other'));
      expect(await pinged(other)).to.include({ kind: 'unbound' });
    });

    it('closes only the connection of a handler that violates the protocol', async () => {
      const id = await activeService(stack.api, 'redis', redis.config);
      const { endpointId, client } = await bound(id);
      for (const garbage of [Buffer.from('GET / HTTP/1.1\r\n\r\n'), Buffer.alloc(64, 0xff)]) {
        const bad = await clientOf(endpointId);
        bad.write(garbage);
        await bad.closed;
      }
      for (const head of [[], 1, { pool: 1, op: 'get' }, { pool: 'cache', op: 'get', deadline_ms: -1 }]) {
        const bad = await clientOf(endpointId);
        await bad.send(head).catch(() => undefined);
        await bad.closed;
      }
      expect(await pinged(client)).to.include({ ok: true });
    });

    it('answers unknown operations of a handler with an error', async () => {
      const { client } = await bound(await activeService(stack.api, 'redis', redis.config));
      expect(await client.send({ pool: 'cache', op: 'drop' })).to.include({ kind: 'invalid' });
      for (const op of ['begin', 'commit', 'rollback']) {
        expect(await client.send({ pool: 'cache', op })).to.include({ kind: 'invalid' });
      }
      expect(await client.send({ ...ping, tx: true }, '["PING"]')).to.include({ kind: 'invalid' });
    });
  });

  it('counts and times calls of services in the metrics', async () => {
    const id = await activeService(stack.api, 'redis', redis.config);
    const { client } = await bound(id);
    await pinged(client);
    await client.send({ pool: 'cache', op: 'command' }, '["NO SUCH COMMAND"]');
    const text = String((await stack.api.get('/metrics')).body);
    const labels = `service="${id}",service_type="redis"`;
    expect(text).to.include(`edge_gateway_service_calls_total{${labels},operation="command",result="ok"} 1`);
    expect(text).to.include(
      `edge_gateway_service_calls_total{${labels},operation="command",result="backend"} 1`,
    );
    expect(text).to.include(
      `edge_gateway_service_call_duration_seconds_count{${labels},operation="command"} 2`,
    );
    expect(text).to.include(`edge_gateway_service_pool_in_use{${labels}} 0`);
    expect(text).to.include(`edge_gateway_service_pool_waiting{${labels}} 0`);
    expect(text).to.include(`edge_gateway_service_reconnects_total{${labels}} 0`);
    await redis.stop();
    await eventually(async () => expect(await pinged(client)).to.include({ ok: false }));
    await redis.start();
    await eventually(async () => expect(await pinged(client)).to.include({ ok: true }));
    const again = String((await stack.api.get('/metrics')).body);
    expect(again).to.include(`edge_gateway_service_reconnects_total{${labels}} 1`);
    await must(stack.api.delete(`/api/services/${id}`));
    await eventually(async () => expect(String((await stack.api.get('/metrics')).body)).to.not.include(id));
  });
});
