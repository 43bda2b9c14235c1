/** Dry runs of imports, what is kept of imports, and the services that a bundle binds. */
import type { Static } from '@sinclair/typebox';
import { expect } from 'chai';
import type { ImportPlan, ImportView, OpenApiImported } from '../../src/api/imports/imports.schema.js';
import { startApi, type TestApi } from '../support/api.js';
import type { HttpResponse } from '../support/client.js';
import { expectData, expectFailure } from '../support/expect.js';
import { multipart } from '../support/form.js';
import { createService } from '../support/test-services.js';
import { zipOf } from '../support/zip.js';

type Plan = Static<typeof ImportPlan>;

const spec = (operations: Readonly<Record<string, string>>, title = 'Pets') =>
  JSON.stringify({
    openapi: '3.0.3',
    info: { title, version: '1' },
    paths: Object.fromEntries(
      Object.entries(operations).map(([path, operationId]) => [
        path,
        { get: { operationId, responses: { 200: { description: 'ok' } } } },
      ]),
    ),
  });
const HANDLER = 'use rust_edge_gateway_sdk::prelude::*;\n';

describe('an import', () => {
  let api: TestApi;
  let host: string;
  let domainId: string;
  let count = 0;

  before(async () => {
    api = await startApi();
  });
  after(() => api.close());
  beforeEach(async () => {
    host = `plan${++count}.example`;
    domainId = expectData<{ id: string }>(await api.post('/api/domains', { name: 'D', host }), 201).id;
  });

  const importSpec = (text: string, query = '', more: object = {}) =>
    api.post(`/api/import/openapi${query}`, { spec: text, domain: host, ...more });
  const importBundle = (files: Readonly<Record<string, string>>, query = '') => {
    const form = multipart([{ name: 'bundle', filename: 'a.zip', content: zipOf(files) }]);
    return api.post(`/api/import/bundle?domain=${host}${query}`, form.body, { headers: form.headers });
  };
  const warningsOf = ({ body }: HttpResponse) => (body as { warnings?: string[] }).warnings ?? [];
  /** All that an import could change. */
  const stored = () =>
    Promise.all(
      ['collections', 'endpoints', 'imports', 'import_handlers', 'endpoint_services'].map((table) =>
        api.store.knex(table).select().orderBy(1),
      ),
    );

  describe('dry runs of imports', () => {
    it('the dry run of a document says what would be made and changed, and stores nothing', async () => {
      const create = { domain_id: domainId, create_collection: true };
      const before = await stored();
      const first = await importSpec(spec({ '/a': 'a', '/b': 'b' }), '?dry_run=true', create);
      const plan = expectData<Plan>(first);
      expect(plan).to.deep.include({ dry_run: true, endpoints_created: 2, endpoints_updated: 0, errors: [] });
      expect(plan.collection).to.deep.equal({ id: null, name: 'Pets', base_path: null });
      const created = { id: null, method: 'GET', change: 'created', code: 'generated', handler: null };
      expect(plan.endpoints).to.deep.equal([
        { ...created, name: 'a', path: '/a' },
        { ...created, name: 'b', path: '/b' },
      ]);
      expect(await stored()).to.deep.equal(before);

      const imported = expectData<Static<typeof OpenApiImported>>(
        await importSpec(spec({ '/a': 'a', '/b': 'b', '/c': 'c' }), '', create),
      );
      const ids = imported.endpoints.map(({ id }) => id);
      await api.put(`/api/endpoints/${ids[1]}`, { code: '// mine' });
      const after = await stored();
      const again = await importSpec(spec({ '/a': 'renamed', '/b': 'b', '/d': 'd' }), '?dry_run=1', create);
      const second = expectData<Plan>(again);
      expect(second.collection).to.deep.include({ id: imported.collection?.id });
      expect(second.endpoints.map(({ id, name, change, code }) => [id, name, change, code])).to.deep.equal([
        [ids[0], 'renamed', 'updated', 'generated'],
        [ids[1], 'b', 'unchanged', 'kept'],
        [null, 'd', 'created', 'generated'],
      ]);
      expect(warningsOf(again).join('\n')).to.match(/"c" \(GET \/c, .* is no longer in the document/);
      expect(await stored()).to.deep.equal(after);
    });

    it('a dry run names all operations that it leaves out', async () => {
      const paths = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`/a#${at}`, `a${at}`]));
      const answer = await importSpec(spec({ ...paths, '/b/{c}': 'b', '/b/{d}': 'c' }), '?dry_run=true');
      const { left_out } = expectData<Plan>(answer);
      expect(left_out).to.have.length(61);
      expect(left_out[59]).to.match(/^GET \/a#59: left out: .*fragment/);
      expect(left_out[60]).to.match(/^Left out, .*: GET \/b\/\{d\} \(like GET \/b\/\{c\}\)$/);
      expect(warningsOf(answer)).to.include.members(left_out);
    });

    it('the dry run of a bundle says which handlers it would use, and compiles nothing', async () => {
      const before = await stored();
      const files = { 'openapi.yaml': spec({ '/a': 'getA', '/b': 'getB' }), 'get_a.rs': HANDLER };
      const manifest = JSON.stringify({ routes: [{ method: 'GET', path: '/b', handler: 'lost' }] });
      const answer = await importBundle(
        { ...files, 'bundle.yaml': manifest },
        '&dry_run=true&compile=true&start=true',
      );
      const plan = expectData<Plan>(answer);
      expect(plan.endpoints.map(({ name, code, handler }) => [name, code, handler])).to.deep.equal([
        ['getA', 'handler', 'get_a.rs'],
        ['getB', 'generated', null],
      ]);
      expect(plan.errors).to.have.length(1);
      expect(plan.errors[0]).to.deep.include({
        stage: 'match',
        endpoint_id: null,
        name: 'getB',
        handler: 'lost.rs',
      });
      expect(warningsOf(answer).join('\n')).to.include('getB has no handler in the bundle');
      expect(await stored()).to.deep.equal(before);
    });

    it('a dry run fails as the import would', async () => {
      const taken = { name: 'Owner', path: '/a', method: 'GET', domain: host };
      await api.post('/api/collections', { name: 'Other', domain_id: domainId });
      expectData(await api.post('/api/endpoints', taken), 201);
      const target = { domain_id: domainId, create_collection: true };
      const before = await stored();
      for (const query of ['', '?dry_run=true'])
        expectFailure(await importSpec(spec({ '/a': 'a' }), query, target), 'route_taken', /"Owner"/);
      expectFailure(await importSpec('{', '?dry_run=true'), 'invalid_spec', /./);
      expectFailure(await importSpec(spec({}), '?dry_run=perhaps'), 'invalid_input', /^query\.dry_run/);
      expect(await stored()).to.deep.equal(before);
    });
  });

  it('shows the import of a document with its result, all of its warnings, and its events', async () => {
    const answer = await importSpec(spec({ '/a': 'a', '/b': 'b' }));
    const { import_id, endpoints } = expectData<Static<typeof OpenApiImported>>(answer);
    const view = expectData<Static<typeof ImportView>>(await api.get(`/api/imports/${import_id}`));
    expect(view).to.deep.include({
      id: import_id,
      state: 'succeeded',
      title: 'Pets',
      compile: false,
      handlers: [],
    });
    expect(view.finished_at).to.be.a('string');
    expect(view.result?.endpoints.map(({ id }) => id)).to.deep.equal(endpoints.map(({ id }) => id));
    const paths = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`/a?${at}`, `a${at}`]));
    const many = spec({ ...paths, '/c': 'c' }, 'Many');
    const warned = await importSpec(many);
    expect(warningsOf(warned)).to.have.length(51);
    const { import_id: second } = expectData<Static<typeof OpenApiImported>>(warned);
    expect(
      expectData<Static<typeof ImportView>>(await api.get(`/api/imports/${second}`)).warnings,
    ).to.have.length(60);
    const events = await api.get(`/api/imports/${import_id}/events`);
    expect(events.body).to.match(/^event: done$/m);
  });

  describe('services that a bundle binds', () => {
    const bundle = (bindings: object) => ({
      'openapi.yaml': spec({ '/a': 'getA', '/b': 'getB', '/c': 'getC' }),
      'get_a.rs': HANDLER,
      'get_b.rs': HANDLER,
      'bundle.yaml': JSON.stringify({ bindings }),
    });
    const service = (name: string) => createService(api, 'sqlite', { path: 'none.db' }, name);
    const bindingsOf = async (id: string | null | undefined) =>
      expectData<{ service_id: string; pool_id: string }[]>(
        await api.get(`/api/endpoints/${id}/services`),
      ).map(({ service_id, pool_id }) => [pool_id, service_id]);

    it('a bundle binds services by their names to the endpoints that have a handler', async () => {
      const [db, cache] = [await service('pet store'), await service('pet cache')];
      const files = bundle({ db: 'pet store', cache: 'pet cache', again: 'pet store' });
      const planned = expectData<Plan>(await importBundle(files, '&dry_run=true'));
      expect(planned.endpoints_created).to.equal(3);
      expect(await api.store.knex('endpoint_services').whereIn('service_id', [db, cache])).to.deep.equal([]);

      const { endpoints } = expectData<Plan>(await importBundle(files));
      const [a, b, c] = endpoints.map(({ id }) => id);
      for (const id of [a, b])
        expect(await bindingsOf(id)).to.have.deep.members([
          ['again', db],
          ['cache', cache],
          ['db', db],
        ]);
      expect(await bindingsOf(c)).to.deep.equal([]);
      // Again is no change.
      const { version } = (await api.store.knex('services').where({ id: db }).first('version')) as {
        version: number;
      };
      expect(warningsOf(await importBundle(files)).join('\n')).to.not.include('bound');
      expect(await api.store.knex('services').where({ id: db }).first('version')).to.deep.equal({ version });
    });

    it('keeps the binding of an operator when a bundle binds another service with the same name', async () => {
      const [, theirs] = [await service('ours'), await service('theirs')];
      const { endpoints } = expectData<Plan>(await importBundle(bundle({})));
      const [a, b] = endpoints.map(({ id }) => id);
      expectData(await api.post(`/api/endpoints/${a}/services`, { service_id: theirs, pool_id: 'db' }), 201);
      const answer = await importBundle(bundle({ db: 'ours' }));
      expect(warningsOf(answer).join('\n')).to.match(/1 of the endpoints keep another service .* as "db"/);
      expect(await bindingsOf(a)).to.deep.equal([['db', theirs]]);
      expect(await bindingsOf(b)).to.have.length(1);
    });

    it('refuses a bundle that binds a service that does not exist, and imports nothing', async () => {
      const before = await stored();
      expectFailure(
        await importBundle(bundle({ db: 'nobody' })),
        'invalid_bundle',
        /^bindings\.db: there is no service with the name "nobody"/,
      );
      expect(await stored()).to.deep.equal(before);
    });
  });
});
