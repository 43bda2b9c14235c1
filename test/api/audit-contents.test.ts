/** What rows of the audit say of requests: changes that end with an error, and which objects changed. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { ADMIN, addUser, type Person } from '../support/access.js';
import { startApi, type TestApi } from '../support/api.js';
import { expectData, expectFailure } from '../support/expect.js';

const A = 'a.example';
const REDIS = { service_type: 'redis', config: { host: '127.0.0.1', port: 1 } };
const SPEC = JSON.stringify({
  openapi: '3.0.3',
  info: { title: 'I', version: '1' },
  paths: { '/i': { get: { operationId: 'i', responses: { 200: { description: 'ok' } } } } },
});

interface Row {
  readonly action: string;
  readonly outcome: string;
  readonly status: number;
  readonly object_kind: string | null;
  readonly object_id: string | null;
  readonly before: Record<string, unknown> | null;
  readonly after: Record<string, unknown> | null;
}

describe('rows of the audit', () => {
  let api: TestApi;
  let admin: Person;
  let domain: string;
  let endpoint: string;

  before(async () => {
    // Nobody runs anything here, so what waits for that fails soon.
    api = await startApi({ config: { START_TIMEOUT_MS: 100, REQUEST_TIMEOUT_MS: 100 } });
    admin = await addUser(api, {}, { email: ADMIN, role: 'admin' });
    domain = await make('/api/domains', { name: A, host: A });
    endpoint = await make('/api/endpoints', { name: 'e', path: '/e', method: 'GET', domain: A });
  });
  after(() => api.close());

  const make = async (path: string, body: object): Promise<string> =>
    expectData<{ id: string }>(await api.post(path, body, admin), 201).id;
  let requests = 0;
  /** The rows that a request has left. */
  const rowsOf = async (
    method: string,
    path: string,
    body?: object,
  ): Promise<{ readonly rows: Row[]; readonly body: unknown }> => {
    const id = `request-${++requests}`;
    const headers = { ...admin.headers, 'x-request-id': id };
    const response = await api.send(method, path, { headers, ...(body && { body }) });
    return { rows: await api.store.knex('audit').where({ request_id: id }), body: response.body };
  };

  it('rows of the audit name their objects and people, also those that are deleted', async () => {
    const collection = await make('/api/collections', { name: 'Shelf', domain_id: domain });
    const by = { name: 'Ada', email: 'ada@example.test', password: 'correct horse battery', role: 'editor' };
    const user = await make('/api/users', by);
    await make('/api/endpoints', {
      ...{ name: 'named', path: '/named', method: 'POST', domain: A, collection_id: collection },
    });
    await api.delete(`/api/collections/${collection}`, admin);
    await api.delete(`/api/users/${user}`, admin);
    const entries = expectData<{ object_id: string; action: string; names: object }[]>(
      await api.get('/api/audit?limit=5', admin),
    );
    const admins = { [admin.id]: { kind: 'user', name: ADMIN } };
    const shelf = { [collection]: { kind: 'collection', name: 'Shelf' } };
    const [userDeleted, deleted, made] = entries;
    expect(userDeleted?.names).to.deep.equal({
      ...admins,
      [user]: { kind: 'user', name: 'ada@example.test' },
    });
    expect(deleted?.names).to.deep.include({ ...admins, ...shelf });
    // Its collection is gone, and it with that.
    expect(made?.names).to.deep.include({
      ...admins,
      ...shelf,
      [made?.object_id ?? '']: { kind: 'endpoint', name: `POST ${A}/named` },
    });

    const any = await make('/api/endpoints', { name: 'any', path: '/any', method: 'GET', domain: '*' });
    const named = async () => {
      const [last] = expectData<{ names: object }[]>(await api.get('/api/audit?limit=1', admin));
      return last?.names;
    };
    const anyNamed = { [any]: { kind: 'endpoint', name: 'GET /any' } };
    expect(await named()).to.deep.include(anyNamed);
    await api.delete(`/api/endpoints/${any}`, admin);
    expect(await named()).to.deep.include(anyNamed);

    // By its host, also after what was changed of it last was something else.
    const gone = await make('/api/domains', { name: 'Gone', host: 'gone.example' });
    await api.put(`/api/domains/${gone}`, { name: 'Renamed' }, admin);
    await api.store.knex('domains').where({ id: gone }).delete();
    expect(await named()).to.deep.include({ [gone]: { kind: 'domain', name: 'gone.example' } });

    // Deployments are called what they have serve.
    const [deployment] = await api.store
      .knex('deployments')
      .insert({
        ...{ endpoint_id: endpoint, kind: 'canary', outcome: 'succeeded', request_id: 'r', revision: 1 },
        targets: JSON.stringify([
          { version: 1, percent: 90 },
          { version: 2, percent: 10 },
        ]),
      })
      .returning('id');
    await api.store
      .knex('audit')
      .where({ object_id: gone })
      .update({ after: { confirmed_deployment_id: deployment.id } });
    expect(await named()).to.deep.include({
      [deployment.id]: { kind: 'deployment', name: 'version 1 (90 %) and version 2 (10 %)' },
    });
  });

  describe('rows of changes that end with an error', () => {
    it('the audit has a change that ended with 504: a service is no longer active, and not yet deleted', async () => {
      const id = await make('/api/services', { name: 'stays', ...REDIS });
      const activated_at = new Date();
      await api.store.knex('services').where({ id }).update({ activated_at });
      await addHost('actor-host');
      const { rows, body } = await rowsOf('DELETE', `/api/services/${id}`);
      expect(body).to.include({ code: 'wait_timeout' });
      expect(rows.map(({ outcome, status, object_id }) => [outcome, status, object_id])).to.deep.equal([
        ['changed', 504, id],
      ]);
      expect(rows[0]?.before).to.have.property('activated_at').that.is.a('string');
      expect(rows[0]?.after).to.deep.equal({ activated_at: null });
    });

    it('the audit has no row of a failed stop that changed nothing', async () => {
      const { rows, body } = await rowsOf('POST', `/api/endpoints/${endpoint}/stop`);
      expect(body).to.include({ code: 'endpoint_not_running' });
      expect(rows).to.deep.equal([]);
    });
  });

  /** A node that is alive and does nothing. */
  async function addHost(kind: string): Promise<void> {
    await api.store.knex('nodes').insert({ id: randomUUID(), kind, hostname: 'h', pid: 1 });
  }

  it('the audit says which service was bound to which endpoint, and unbound', async () => {
    const service_id = await make('/api/services', { name: 'bound', ...REDIS });
    const path = `/api/endpoints/${endpoint}/services`;
    const bound = await rowsOf('POST', path, { service_id, pool_id: 'p' });
    expect(bound.rows[0]?.object_id).to.equal(endpoint);
    expect(bound.rows[0]?.after).to.include({ service_id, pool_id: 'p' });
    const { rows } = await rowsOf('DELETE', `${path}/${service_id}`);
    expect(rows[0]).to.include({ object_kind: 'service', object_id: service_id });
    expect(rows[0]?.after).to.deep.include({ endpoint_id: endpoint, unbound: ['p'] });
  });

  it('the audit says to which domain or endpoint a secret or a key belongs', async () => {
    for (const [kind, id] of [
      ['domain', domain],
      ['endpoint', endpoint],
    ]) {
      const path = `/api/${kind}s/${id}/secrets/DB_PASS`;
      for (const method of ['PUT', 'DELETE']) {
        const { rows } = await rowsOf(method, path, method === 'PUT' ? { value: 'a secret' } : undefined);
        expect(rows[0], JSON.stringify(rows)).to.include({ object_kind: 'secret', object_id: 'DB_PASS' });
        expect(rows[0]?.after).to.deep.equal({ [`${kind}_id`]: id });
      }
    }
    const made = await rowsOf('POST', `/api/domains/${domain}/keys`, { label: 'of a partner' });
    const key = (made.body as { data: { id: string } }).data.id;
    expect(made.rows[0]?.after).to.deep.equal({ key_id: key, label: 'of a partner' });
    const revoked = await rowsOf('DELETE', `/api/domains/${domain}/keys/${key}`);
    expect(revoked.rows[0]).to.include({ object_kind: 'key', object_id: key });
    expect(revoked.rows[0]?.after).to.deep.equal({ domain_id: domain });
  });

  it('the audit says which object a refused request was to change or read', async () => {
    const viewer = await addUser(api, admin, { email: 'v@example.test', role: 'viewer' });
    const scoped = await addUser(api, admin, {
      email: 's@example.test',
      role: 'editor',
      domains: ['s.test'],
    });
    const key = randomUUID();
    let at = 0;
    for (const [method, path, by, object, named] of [
      ['DELETE', `/api/domains/${domain}`, viewer.headers, ['domain', domain], null],
      ['GET', `/api/domains/${domain}`, scoped.headers, ['domain', domain], null],
      ['PUT', `/api/domains/${domain}`, {}, ['domain', domain], null],
      ['POST', '/api/domains', viewer.headers, ['domain', null], null],
      ['DELETE', `/api/domains/${domain}/keys/${key}`, viewer.headers, ['key', key], { domain_id: domain }],
    ] as const) {
      const headers = { ...by, 'x-request-id': `refused-${++at}` };
      expect((await api.send(method, path, { headers })).status).to.be.oneOf([401, 403, 404]);
      const rows: Row[] = await api.store.knex('audit').where({ request_id: `refused-${at}` });
      const found = rows.map(({ outcome, object_kind, object_id, after }) => [
        outcome,
        [object_kind, object_id],
        after,
      ]);
      expect(found, `${method} ${path}`).to.deep.equal([['refused', object, named]]);
    }
  });

  it('the audit has the id of an object in lower case when the request has it in upper case', async () => {
    const id = await make('/api/domains', { name: 'one', host: 'written.example' });
    const { rows } = await rowsOf('PUT', `/api/domains/${id.toUpperCase()}`, { name: 'two' });
    expect(rows.map(({ object_id }) => object_id)).to.deep.equal([id]);
  });

  it('the audit says what an import made, and has no row of a dry run', async () => {
    const body = { spec: SPEC, domain: A, domain_id: domain, create_collection: true };
    expect((await rowsOf('POST', '/api/import/openapi?dry_run=true', body)).rows).to.deep.equal([]);
    const { rows, body: answer } = await rowsOf('POST', '/api/import/openapi', body);
    const { import_id } = (answer as { data: { import_id: string } }).data;
    expect(rows[0]?.object_kind).to.equal('import');
    expect(rows[0]?.after).to.include({ import_id, domain: A });
    expect(rows[0]?.after?.['endpoint_ids']).to.have.length(1);
  });

  it('the audit names the service of an object whose deletion was refused', async () => {
    const { rows, body } = await rowsOf('DELETE', `/api/minio/objects/some/key?service=${endpoint}`);
    expect(body).to.include({ ok: false });
    expect(rows).to.deep.equal([]);
    const editor = await addUser(api, admin, { email: 'e@example.test', role: 'editor', domains: [A] });
    const headers = { ...editor.headers, 'x-request-id': 'object' };
    expectFailure(
      await api.delete(`/api/minio/objects/some/key?service=${endpoint}`, { headers }),
      'not_found',
    );
    const [refused] = await api.store.knex('audit').where({ request_id: 'object' });
    expect(refused).to.include({ object_kind: 'object', object_id: 'some/key', outcome: 'refused' });
    expect(refused.after).to.deep.equal({ service: endpoint });
  });
});
