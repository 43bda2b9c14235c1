/**
 * The management API's contract, table by table, over HTTP against the real processes. What single routes do with wrong
 * input is in test/api; this is the walk a client would take through the document.
 */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import type { HttpResponse } from '../support/client.js';
import { eventually } from '../support/eventually.js';
import { uniqueName } from '../support/names.js';
import { type Stack, startStack } from '../support/processes.js';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const HANDLER = `use rust_edge_gateway_sdk::prelude::*;
fn handle(_req: Request) -> Response { Response::ok(json!({"ok": "contract"})) }
handler_loop!(handle);
`;

const DOMAIN_FIELDS = ['id', 'name', 'host', 'description', 'enabled', 'created_at', 'updated_at'];
const COLLECTION_FIELDS = [
  'id',
  'domain_id',
  'name',
  'description',
  'base_path',
  'enabled',
  'created_at',
  'updated_at',
];
const ENDPOINT_FIELDS = [
  ...[
    'id',
    'name',
    'path',
    'method',
    'domain',
    'collection_id',
    'description',
    'code',
    'dependencies',
    'enabled',
  ],
  ...['status', 'created_at', 'updated_at'],
];
const SUMMARY_FIELDS = ['id', 'name', 'path', 'method', 'domain', 'collection_id', 'description', 'enabled'];
const SERVICE_FIELDS = ['id', 'name', 'service_type', 'config', 'enabled', 'created_at', 'updated_at'];

/** One valid config for each type of service, with the keys of the contract. */
const CONFIGS = {
  postgres: {
    host: 'db',
    port: 5432,
    database: 'd',
    username: 'u',
    password: 'p',
    ssl_mode: 'disable',
    pool_size: 5,
  },
  mysql: {
    host: 'db',
    port: 3306,
    database: 'd',
    username: 'u',
    password: 'p',
    use_ssl: false,
    pool_size: 5,
  },
  redis: { host: 'cache', port: 6379, password: null, database: 0, use_tls: false, pool_size: 5 },
  sqlite: { path: 'contract.db', create_if_missing: true },
  objstore: { endpoint: 's3:9000', access_key: 'a', secret_key: 's', use_ssl: false, bucket: 'b' },
  ftp: {
    host: 'ftp',
    port: 21,
    username: 'u',
    password: 'p',
    protocol: 'ftp',
    base_path: '/',
    timeout_seconds: 30,
  },
  email: {
    ...{ host: 'mail', port: 587, username: 'u', password: 'p', encryption: 'starttls' },
    ...{ from_address: 'a@b.test', from_name: 'A' },
  },
  mongodb: { uri: 'mongodb://db/d' },
  memcached: { servers: ['cache:11211'] },
} as const;

type Fields = Record<string, unknown> & { id: string };

describe('the contract', () => {
  let stack: Stack;
  let host = 0;
  before(async () => {
    stack = await startStack();
  });
  after(() => stack.close());

  const newHost = () => `h${++host}.contract.test`;
  const newPath = () => `/contract/${++host}`;

  /** The payload of a success in the envelope. */
  function dataOf({ status, body }: HttpResponse, expected = 200): unknown {
    const answer = body as { ok: boolean; data: unknown; error?: string };
    expect(answer, JSON.stringify(body)).to.have.keys('ok', 'data');
    expect(answer.ok).to.equal(true);
    expect(status).to.equal(expected);
    return answer.data;
  }
  const objectOf = (response: HttpResponse, expected?: number) => dataOf(response, expected) as Fields;
  const listOf = (response: HttpResponse) => dataOf(response) as Fields[];
  function expectFailure({ status, body }: HttpResponse, expected: number, message: RegExp): void {
    expect(body, JSON.stringify(body)).to.include({ ok: false });
    expect((body as { error: unknown }).error)
      .to.be.a('string')
      .and.match(message);
    expect(status).to.equal(expected);
  }
  const createDomain = async (fields = {}) =>
    objectOf(await stack.api.post('/api/domains', { name: 'D', host: newHost(), ...fields }), 201);
  const createCollection = async (domain_id: string, fields = {}) =>
    objectOf(await stack.api.post('/api/collections', { domain_id, name: uniqueName('C'), ...fields }), 201);
  const createEndpoint = async (fields = {}) =>
    objectOf(
      await stack.api.post('/api/endpoints', {
        name: 'E',
        path: newPath(),
        method: 'GET',
        domain: '*',
        ...fields,
      }),
      201,
    );
  const createService = async (fields = {}) =>
    objectOf(
      await stack.api.post('/api/services', {
        name: uniqueName('S'),
        service_type: 'sqlite',
        config: CONFIGS.sqlite,
        ...fields,
      }),
      201,
    );
  const ids = (rows: readonly Fields[]) => rows.map(({ id }) => id);

  describe('2. resources and their fields', () => {
    it('creates a domain with the fields of the contract, and refuses one without a required field', async () => {
      const domain = await createDomain({ name: 'Shop', host: 'shop.contract.test' });
      expect(domain).to.include.keys(DOMAIN_FIELDS);
      expect(domain).to.include({
        name: 'Shop',
        host: 'shop.contract.test',
        description: null,
        enabled: true,
      });
      expectAssigned(domain);
      expect(await createDomain({ description: 'text', enabled: false })).to.include({
        description: 'text',
        enabled: false,
      });
      for (const missing of ['name', 'host']) {
        const fields = { name: 'D', host: newHost(), [missing]: undefined };
        expectFailure(await stack.api.post('/api/domains', fields), 400, new RegExp(missing));
      }
    });

    it('creates a collection with the fields of the contract, and refuses one without a required field', async () => {
      const { id: domain_id } = await createDomain();
      const collection = await createCollection(domain_id, { name: 'Items' });
      expect(collection).to.include.keys(COLLECTION_FIELDS);
      expect(collection).to.include({
        domain_id,
        name: 'Items',
        description: null,
        base_path: null,
        enabled: true,
      });
      expectAssigned(collection);
      for (const missing of ['domain_id', 'name']) {
        const fields = { domain_id, name: 'C', [missing]: undefined };
        expectFailure(await stack.api.post('/api/collections', fields), 400, new RegExp(missing));
      }
    });

    it('creates an endpoint with the fields of the contract, and refuses one without a required field', async () => {
      const path = newPath();
      const endpoint = await createEndpoint({ path: `${path}/{id}`, name: 'Show' });
      expect(endpoint).to.include.keys(ENDPOINT_FIELDS);
      expect(endpoint).to.include({
        ...{ name: 'Show', path: `${path}/{id}`, method: 'GET', domain: '*', status: 'created' },
        ...{ collection_id: null, description: null, code: null, dependencies: null, enabled: true },
      });
      expectAssigned(endpoint);
      for (const missing of ['name', 'path', 'method', 'domain']) {
        const fields = { name: 'E', path: newPath(), method: 'GET', domain: '*', [missing]: undefined };
        expectFailure(await stack.api.post('/api/endpoints', fields), 400, new RegExp(missing));
      }
      for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH']) {
        expect(await createEndpoint({ method })).to.include({ method });
      }
      const dependencies = {
        regex: '1',
        chrono: { version: '0.4', features: ['serde'] },
        rand: { version: '0.8', optional: true },
      };
      expect((await createEndpoint({ dependencies }))['dependencies']).to.deep.equal(dependencies);
    });

    it('creates services of each type of the contract with its fields, and refuses incomplete ones', async () => {
      for (const [service_type, config] of Object.entries(CONFIGS)) {
        const service = await createService({ name: service_type, service_type, config });
        expect(service).to.include.keys(SERVICE_FIELDS);
        expect(service).to.include({ name: service_type, service_type, enabled: true });
        expect(service['config']).to.deep.include(config);
        expectAssigned(service);
      }
      for (const missing of ['name', 'service_type', 'config']) {
        const fields = { name: 'S', service_type: 'sqlite', config: CONFIGS.sqlite, [missing]: undefined };
        expectFailure(await stack.api.post('/api/services', fields), 400, new RegExp(missing));
      }
    });

    it('answers /api/health and /api/stats with the fields of the contract', async () => {
      const health = dataOf(await stack.api.get('/api/health'));
      expect(health).to.include.keys('status', 'version');
      expect(health).to.include({ status: 'healthy' });
      const stats = dataOf(await stack.api.get('/api/stats')) as Record<string, unknown>;
      for (const key of ['endpoints_total', 'endpoints_running', 'requests_handled', 'uptime_seconds']) {
        expect(stats[key], key).to.satisfy(Number.isInteger);
      }
    });

    function expectAssigned({ id, created_at, updated_at }: Fields): void {
      expect(id).to.match(UUID);
      expect(created_at).to.match(TIMESTAMP);
      expect(updated_at).to.match(TIMESTAMP);
    }
  });

  describe('3. states and transitions', () => {
    it('moves an endpoint through the states of the contract, from created to running, stopped and error', async () => {
      const { id } = await createEndpoint({ code: HANDLER });
      const status = async () => objectOf(await stack.api.get(`/api/endpoints/${id}`))['status'];
      const post = (step: string) => stack.api.post(`/api/endpoints/${id}/${step}`);
      expect(await status()).to.equal('created');
      dataOf(await post('compile'));
      expect(await status()).to.equal('compiled');
      dataOf(await post('start'));
      expect(await status()).to.equal('running');
      dataOf(await post('compile'));
      expect(await status()).to.equal('compiled');
      dataOf(await post('start'));
      dataOf(await post('stop'));
      expect(await status()).to.equal('stopped');
      dataOf(await post('start'));
      expect(await status()).to.equal('running');
      dataOf(await stack.api.put(`/api/endpoints/${id}`, { code: 'fn broken(' }));
      expect(await status()).to.equal('running');
      expectFailure(await post('compile'), 422, /error/);
      expect(await status()).to.equal('error');
      dataOf(await post('stop'));
    });
  });

  describe('4. endpoints: Domains', () => {
    it('lists domains by GET /api/domains', async () => {
      const domain = await createDomain();
      expect(listOf(await stack.api.get('/api/domains'))).to.deep.include(domain);
    });

    it('creates, shows, updates and deletes a domain by /api/domains', async () => {
      const domain = await createDomain();
      const path = `/api/domains/${domain.id}`;
      expect(objectOf(await stack.api.get(path))).to.deep.equal(domain);
      const updated = objectOf(await stack.api.put(path, { description: 'new' }));
      expect(updated).to.deep.equal({ ...domain, description: 'new', updated_at: updated['updated_at'] });
      expect(updated['updated_at']).to.not.equal(domain['updated_at']);
      expect(dataOf(await stack.api.delete(path))).to.equal(null);
      expectFailure(await stack.api.get(path), 404, new RegExp(domain.id));
    });

    it('deletes the collections and endpoints of a domain with it', async () => {
      const domain = await createDomain();
      const collection = await createCollection(domain.id);
      const inside = await createEndpoint({ domain: '*', collection_id: collection.id });
      const attached = await createEndpoint({ domain: domain['host'] });
      dataOf(await stack.api.delete(`/api/domains/${domain.id}`));
      for (const path of [
        `collections/${collection.id}`,
        `endpoints/${inside.id}`,
        `endpoints/${attached.id}`,
      ]) {
        expectFailure(await stack.api.get(`/api/${path}`), 404, /does not exist/);
      }
    });

    it('lists only the collections of a domain by GET /api/domains/{id}/collections', async () => {
      const domain = await createDomain();
      const collection = await createCollection(domain.id);
      await createCollection((await createDomain()).id);
      expect(listOf(await stack.api.get(`/api/domains/${domain.id}/collections`))).to.deep.equal([
        collection,
      ]);
    });
  });

  describe('4. endpoints: Collections', () => {
    it('lists the collections of all domains, or of one domain with domain_id', async () => {
      const [one, other] = [await createDomain(), await createDomain()];
      const [mine, theirs] = [await createCollection(one.id), await createCollection(other.id)];
      expect(ids(listOf(await stack.api.get('/api/collections')))).to.include.members([mine.id, theirs.id]);
      expect(listOf(await stack.api.get(`/api/collections?domain_id=${one.id}`))).to.deep.equal([mine]);
    });

    it('creates, shows, updates and deletes a collection, whose endpoints are deleted with it', async () => {
      const collection = await createCollection((await createDomain()).id, {
        base_path: '/v1',
        enabled: false,
      });
      const path = `/api/collections/${collection.id}`;
      expect(objectOf(await stack.api.get(path))).to.deep.equal(collection);
      const updated = objectOf(await stack.api.put(path, { name: 'New' }));
      expect(updated).to.deep.equal({ ...collection, name: 'New', updated_at: updated['updated_at'] });
      expect(updated['updated_at']).to.not.equal(collection['updated_at']);
      const endpoint = await createEndpoint({ collection_id: collection.id });
      expect(dataOf(await stack.api.delete(path))).to.equal(null);
      expectFailure(await stack.api.get(`/api/endpoints/${endpoint.id}`), 404, /does not exist/);
    });

    it('lists the endpoints of a collection as summaries', async () => {
      const collection = await createCollection((await createDomain()).id);
      const endpoint = await createEndpoint({ collection_id: collection.id, code: HANDLER });
      const [summary, ...more] = listOf(await stack.api.get(`/api/collections/${collection.id}/endpoints`));
      expect(more).to.be.empty;
      expect(summary).to.have.all.keys(SUMMARY_FIELDS);
      expect(endpoint).to.deep.include(summary);
    });
  });

  describe('4. endpoints: Endpoints', () => {
    it('lists endpoints with code and status, filtered by domain, collection_id and enabled', async () => {
      const domain = await createDomain();
      const collection = await createCollection(domain.id);
      const path = '/same/path';
      const one = await createEndpoint({
        path,
        domain: domain['host'],
        collection_id: collection.id,
        code: HANDLER,
      });
      const off = await createEndpoint({ path: '/off', domain: domain['host'], enabled: false });
      const list = async (query: string) => ids(listOf(await stack.api.get(`/api/endpoints?${query}`)));
      expect(await list('')).to.include.members([one.id, off.id]);
      expect(await list(`domain=${domain['host']}`)).to.deep.equal([one.id, off.id]);
      expect(await list(`collection_id=${collection.id}`)).to.deep.equal([one.id]);
      expect(await list('enabled=false'))
        .to.include(off.id)
        .and.not.include(one.id);
      expect(await list(`enabled=true&domain=${domain['host']}`)).to.deep.equal([one.id]);
      expect(listOf(await stack.api.get('/api/endpoints'))).to.deep.include(one);
      expect(one).to.include({ code: HANDLER, status: 'created' });
    });

    it('creates, shows, updates and deletes an endpoint by /api/endpoints', async () => {
      const endpoint = await createEndpoint();
      const path = `/api/endpoints/${endpoint.id}`;
      expect(objectOf(await stack.api.get(path))).to.deep.equal(endpoint);
      const updated = objectOf(await stack.api.put(path, { description: 'new' }));
      expect(updated).to.deep.equal({ ...endpoint, description: 'new', updated_at: updated['updated_at'] });
      expect(dataOf(await stack.api.delete(path))).to.deep.equal({ id: endpoint.id, deleted: true });
      expectFailure(await stack.api.get(path), 404, /does not exist/);
    });

    it('compiles, starts and stops an endpoint, and serves it while it runs', async () => {
      const path = newPath();
      const { id } = await createEndpoint({ path, code: HANDLER });
      const compiled = dataOf(await stack.api.post(`/api/endpoints/${id}/compile`)) as Record<
        string,
        unknown
      >;
      expect(compiled).to.include({ status: 'compiled' });
      expect(compiled['message']).to.match(/success/i);
      const started = dataOf(await stack.api.post(`/api/endpoints/${id}/start`)) as Record<string, unknown>;
      expect(started).to.have.keys('status', 'pid').and.include({ status: 'running' });
      expect(started['pid']).to.satisfy(Number.isInteger);
      expect((await stack.gateway.get(path)).body).to.deep.equal({ ok: 'contract' });
      const { endpoints_running } = dataOf(await stack.api.get('/api/stats')) as {
        endpoints_running: number;
      };
      expect(endpoints_running).to.be.at.least(1);
      expect(dataOf(await stack.api.post(`/api/endpoints/${id}/stop`))).to.deep.equal({ status: 'stopped' });
      expect((await stack.gateway.get(path)).status).to.equal(503);
    });

    it('answers a compilation that fails with the output of the compiler', async () => {
      const { id } = await createEndpoint({ code: HANDLER.replace('Response::ok', 'Response::oops') });
      const answer = await stack.api.post(`/api/endpoints/${id}/compile`);
      expectFailure(answer, 422, /error\[E\d+\][\s\S]*oops[\s\S]*handler\.rs:2:/);
    });

    it('binds a service to an endpoint, and removes the binding, by /api/endpoints/{id}/services', async () => {
      const [endpoint, service] = [await createEndpoint(), await createService()];
      const path = `/api/endpoints/${endpoint.id}/services`;
      const bound = objectOf(await stack.api.post(path, { service_id: service.id, pool_id: 'main' }), 201);
      expect(bound).to.include({ endpoint_id: endpoint.id, service_id: service.id, pool_id: 'main' });
      for (const missing of ['service_id', 'pool_id']) {
        const fields = { service_id: service.id, pool_id: 'other', [missing]: undefined };
        expectFailure(await stack.api.post(path, fields), 400, new RegExp(missing));
      }
      expect(dataOf(await stack.api.delete(`${path}/${service.id}`))).to.include({ service_id: service.id });
      expectFailure(await stack.api.delete(`${path}/${service.id}`), 404, /bound/);
    });
  });

  describe('4. endpoints: Services', () => {
    it('creates, lists, shows, updates and deletes a service by /api/services', async () => {
      const service = await createService();
      const path = `/api/services/${service.id}`;
      expect(listOf(await stack.api.get('/api/services'))).to.deep.include(service);
      expect(objectOf(await stack.api.get(path))).to.deep.equal(service);
      const config = { path: 'other.db', create_if_missing: false };
      const updated = objectOf(await stack.api.put(path, { name: 'New', config, enabled: false }));
      expect(updated).to.deep.include({ id: service.id, name: 'New', enabled: false, config });
      expect(dataOf(await stack.api.delete(path))).to.deep.equal({ id: service.id, deleted: true });
      expectFailure(await stack.api.get(path), 404, /does not exist/);
    });
  });

  describe('5. to 9.', () => {
    it('answers 100 API requests at once without credentials and without a rate limit', async () => {
      const answers = await Promise.all(Array.from({ length: 100 }, () => stack.api.get('/api/health')));
      expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([200]));
    });

    it('answers failed API requests in the envelope of the contract', async () => {
      const missing = randomUUID();
      expectFailure(await stack.api.get(`/api/domains/${missing}`), 404, new RegExp(missing));
      expectFailure(await stack.api.get('/api/domains/none'), 400, /id/);
      expectFailure(await stack.api.get('/api/nothing'), 404, /nothing/);
      expectFailure(await stack.api.post('/api/domains', '{'), 400, /JSON/);
      expectFailure(await stack.api.post('/api/health'), 405, /GET/);
      for (const step of ['compile', 'start', 'stop']) {
        expectFailure(await stack.api.post(`/api/endpoints/${missing}/${step}`), 404, new RegExp(missing));
      }
      const { id } = await createEndpoint({ code: HANDLER });
      expectFailure(await stack.api.post(`/api/endpoints/${id}/start`), 409, /compile/);
      expectFailure(await stack.api.post(`/api/endpoints/${id}/stop`), 409, /not running/);
    });

    it('counts requests that handlers answered', async () => {
      const path = newPath();
      await stack.deploy({ path, code: HANDLER });
      const handled = async () =>
        (dataOf(await stack.api.get('/api/stats')) as { requests_handled: number }).requests_handled;
      const before = await handled();
      for (let request = 0; request < 5; request++) await stack.gateway.get(path);
      await eventually(async () => expect(await handled()).to.be.at.least(before + 5));
    });
  });
});
