import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { openDatabase } from '../../src/store/database.js';
import { removeNode } from '../../src/store/nodes.js';
import { startApi, type TestApi } from '../support/api.js';
import { eventually } from '../support/eventually.js';
import { expectData, expectFailure, NO_ID } from '../support/expect.js';
import { addNode } from '../support/nodes.js';
import { freePort } from '../support/ports.js';

describe('health and statistics', () => {
  let api: TestApi;

  before(async () => {
    api = await startApi({ config: { COMPILE_WAIT_MS: 1 } });
  });
  after(() => api.close());

  it('the health check says that the API is healthy, and shows its version', async () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    expect((await api.get('/api/health')).body).to.deep.equal({
      ok: true,
      data: {
        status: 'healthy',
        version,
        sandbox: { gateway: null, worker: null },
        rustc: [],
        preparing: [],
        log: { hour_percent: 0, leaves_out: false },
        key_rotation: null,
      },
    });
  });

  it('lists the parts of the API at /api/, and leads from / to the web UI', async () => {
    const { parts, gateway } = expectData<{ parts: { path: string }[]; gateway: { port: number } }>(
      await api.get('/api/'),
    );
    expect(gateway.port).to.equal(api.config.GATEWAY_PORT);
    for (const { path } of parts) expect((await api.get(path)).status, path).to.be.within(200, 302);
    expect(await api.send('HEAD', '/api/')).to.include({ status: 200 });
    expect((await api.get('/api')).body).to.deep.equal((await api.get('/api/')).body);
    const { status, headers } = await api.get('/');
    expect({ status, location: headers.location }).to.deep.equal({ status: 302, location: '/ui' });
    for (const path of ['/', '/ui']) expectFailure(await api.post(path), 'method_not_allowed');
  });

  it('the health check shows the weakest sandbox of the live nodes of each kind', async () => {
    const { knex } = api.store;
    const node = (kind: string, sandbox: string) => ({
      id: randomUUID(),
      kind,
      hostname: 'h',
      pid: 1,
      heartbeat_at: knex.raw('now()'),
      info: JSON.stringify({ sandbox }),
    });
    const shown = async () => expectData<{ sandbox: unknown }>(await api.get('/api/health')).sandbox;
    try {
      const gateway = node('gateway', 'namespaces');
      await knex('nodes').insert([gateway, node('worker', 'namespaces'), node('worker', 'limits')]);
      await eventually(async () =>
        expect(await shown()).to.deep.equal({ gateway: 'namespaces', worker: 'limits' }),
      );
      await knex('nodes').where({ id: gateway.id }).delete();
      await eventually(async () => expect(await shown()).to.deep.equal({ gateway: null, worker: 'limits' }));
    } finally {
      await knex('nodes').delete();
    }
  });

  it('shows what workers are preparing, in the health check and in responses to a compile', async () => {
    const preparing = [{ what: 'Rust SDK', crates: 12, of: 34, seconds: 20, problem: null }];
    const id = await addNode(api.store, 'worker', { info: { preparing } });
    try {
      await eventually(async () =>
        expect(expectData(await api.get('/api/health'))).to.deep.include({ preparing }),
      );
      const body = { name: 'E', path: '/prepared', method: 'GET', domain: '*', code: 'fn main() {}' };
      const endpoint = expectData<{ id: string }>(await api.post('/api/endpoints', body), 201).id;
      const compile = (headers = {}) =>
        api.post(`/api/endpoints/${endpoint}/compile`, undefined, { headers });
      expect(expectData(await compile({ prefer: 'respond-async' }), 202)).to.deep.include({ preparing });
      const late = await compile();
      expectFailure(late, 'wait_timeout', /Still being prepared: Rust SDK: crates 12 of 34, 20 s\.$/);
      expect(late.body).to.have.deep.nested.property('details.preparing', preparing);
      expectData(await api.delete(`/api/endpoints/${endpoint}`));
    } finally {
      await removeNode(api.store, id);
    }
  });

  it('statistics start with zero counts', async () => {
    const stats = expectData<Record<string, number>>(await api.get('/api/stats'));
    expect(stats).to.have.all.keys(
      'endpoints_total',
      'endpoints_running',
      'requests_handled',
      'uptime_seconds',
    );
    expect(stats).to.include({ endpoints_total: 0, endpoints_running: 0, requests_handled: 0 });
    expect(stats['uptime_seconds']).to.satisfy(Number.isInteger);
  });

  it('statistics count endpoints, those that run on live gateways, and requests', async () => {
    const { knex } = api.store;
    const ids: string[] = [];
    for (const path of ['/a', '/b', '/c', '/d']) {
      const body = { name: 'E', path, method: 'GET', domain: '*' };
      ids.push(expectData<{ id: string }>(await api.post('/api/endpoints', body), 201).id);
    }
    const [running, failing, stopping, onDead] = ids;
    const live = NO_ID.replace(/0$/, '1');
    const second = NO_ID.replace(/0$/, '2');
    const dead = NO_ID.replace(/0$/, '3');
    const heartbeat_at = (seconds: number) => knex.raw('now() - make_interval(secs => ?)', [seconds]);
    const node = { kind: 'gateway', hostname: 'h', pid: 1 };
    await knex('nodes').insert([
      { ...node, id: live, heartbeat_at: heartbeat_at(0) },
      { ...node, id: second, heartbeat_at: heartbeat_at(0) },
      { ...node, id: dead, heartbeat_at: heartbeat_at(3600) },
    ]);
    for (const id of [running, failing, onDead]) {
      const [deployment] = await knex('deployments')
        .insert({
          ...{ endpoint_id: id, kind: 'start', targets: '[]', request_id: 'r' },
          ...{ outcome: 'succeeded', revision: 1 },
        })
        .returning<{ id: string }[]>('id');
      await knex('endpoints').where({ id }).update({ desired_deployment_id: deployment?.id });
    }
    await knex('observations').insert([
      { node_id: live, endpoint_id: running, state: 'running', version: 1 },
      { node_id: second, endpoint_id: running, state: 'running', version: 1 },
      { node_id: live, endpoint_id: failing, state: 'failed', version: 1 },
      { node_id: live, endpoint_id: stopping, state: 'running', version: 1 },
      { node_id: dead, endpoint_id: onDead, state: 'running', version: 1 },
    ]);
    await knex('request_counters').insert([
      { node_id: live, requests: 3_000_000_000 },
      { node_id: NO_ID, requests: 5 },
    ]);
    expect(expectData(await api.get('/api/stats'))).to.include({
      endpoints_total: 4,
      endpoints_running: 1,
      requests_handled: 3_000_000_005,
    });
  });
});

describe('the API without a database', () => {
  it('stays healthy without a database, and answers 503 to all else', async () => {
    const away = openDatabase(`postgres://nobody@127.0.0.1:${await freePort()}/none`, () => undefined);
    const api = await startApi({ deps: (deps) => ({ ...deps, store: away }) });
    try {
      expectData(await api.get('/api/health'));
      for (const path of ['/api/domains', '/api/stats', `/api/endpoints/${NO_ID}`]) {
        expectFailure(await api.get(path), 'database_unavailable');
      }
      expectFailure(await api.post('/api/domains', { name: 'A', host: 'a.example' }), 'database_unavailable');
      expectFailure(await api.delete(`/api/domains/${NO_ID}`), 'database_unavailable');
      expect(api.logged.lines.filter(({ level }) => level >= 50)).to.deep.equal([]);
    } finally {
      await api.close();
      await away.close();
    }
  });
});
