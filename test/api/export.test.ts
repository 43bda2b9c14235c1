/** Exports: what is applied again changes nothing. */
import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { PassThrough } from 'node:stream';
import { Ajv } from 'ajv';
import { expect } from 'chai';
import { unzipSync } from 'fflate';
import { parse } from 'yaml';
import { EXPORT_TURNS } from '../../src/api/apply/export.js';
import { ownerOfActor } from '../../src/model/owner.js';
import { startApi, type TestApi } from '../support/api.js';
import { defineExample, EXAMPLES_FOLDER } from '../support/examples.js';
import { expectData } from '../support/expect.js';
import { askForPlan, type Files, type ShownPlan } from '../support/plans.js';
import { exportsChangeNothing } from '../support/random-exports.js';
import { makeInstallation, SECRETS } from '../support/random-installations.js';

describe('an export', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi();
    for (const name of SECRETS) expectData(await api.put(`/api/secrets/${name}`, { value: 'x' }));
  });
  after(() => api.close());

  const exported = async (query = '') =>
    expectData<{ files: Files }>(await api.get(`/api/export${query}`)).files;
  const changesOf = async (files: Files, query = '') =>
    expectData<ShownPlan>(await askForPlan(api, files, query)).changes;

  // With other installations in test/torture.
  it('the export of any installation is an empty plan when it is applied', () =>
    exportsChangeNothing(api, { seed: 20_261_214, numRuns: 20 }));

  it('an export waits until another one of the same user is sent', async () => {
    const owner = ownerOfActor({ kind: 'anonymous', address: '127.0.0.1' });
    const events: string[] = [];
    const sending = await EXPORT_TURNS.run(
      owner,
      async () => new PassThrough(),
      (content) => content,
    );
    const answered = async () => {
      const files = await exported();
      events.push('answered');
      return files;
    };
    const waiting = Promise.all([answered(), answered()]);
    // An export takes as long as a few of these.
    for (let time = 0; time < 30; time++) await api.get('/api/domains');
    events.push('sent');
    sending.destroy();
    const [first, second] = await waiting;
    expect(events).to.deep.equal(['sent', 'answered', 'answered']);
    expect(first).to.deep.equal(second);
  });

  it('an export has files in readable places, no values of secrets, and is the same each time', async () => {
    await makeInstallation(api, {
      domains: [null, null, null],
      collections: [],
      services: [],
      endpoints: [],
    });
    const create = async (path: string, body: object) =>
      expectData<{ id: string }>(await api.post(path, body), 201).id;
    const domain_id = await create('/api/domains', { name: 'api.example.com', host: 'api.example.com' });
    const collection_id = await create('/api/collections', { domain_id, name: 'shop', base_path: '/v1' });
    const endpoint = { method: 'GET', domain: 'api.example.com', code: 'fn main() {}\n' };
    const id = await create('/api/endpoints', {
      ...endpoint,
      collection_id,
      name: 'getPet',
      path: '/pets/{id}',
    });
    await create('/api/endpoints', { ...endpoint, collection_id, name: 'GetPet', path: '/Pets' });
    await create('/api/endpoints', { ...endpoint, domain: '*', name: '../../é / x', path: '/x' });
    const config = { host: 'h', password: 'a literal' };
    const service_id = await create('/api/services', { name: 'db', service_type: 'redis', config });
    expectData(await api.post(`/api/endpoints/${id}/services`, { service_id, pool_id: 'cache' }), 201);
    const files = await exported();
    expect(Object.keys(files)).to.deep.equal([
      'edge.yaml',
      'all-hosts/e_x.rs',
      'api.example.com/shop/GetPet.rs',
      'api.example.com/shop/getPet-2.rs',
    ]);
    expect(files['edge.yaml']).to.equal(`stack: installation
services:
- name: db
  service_type: redis
  stack: null
  config:
    database: 0
    host: h
    password:
      stored: true
    pool_size: 10
    port: 6379
    use_tls: false
  active: false
domains:
- host: api.example.com
  stack: null
collections:
- host: api.example.com
  name: shop
  stack: null
  base_path: /v1
endpoints:
- host: "*"
  method: GET
  route: /x
  stack: null
  name: ../../é / x
  handler: all-hosts/e_x.rs
  running: false
  dependencies: {}
- host: api.example.com
  method: GET
  collection: shop
  path: /Pets
  stack: null
  name: GetPet
  handler: api.example.com/shop/GetPet.rs
  running: false
  dependencies: {}
- host: api.example.com
  method: GET
  collection: shop
  path: /pets/{id}
  stack: null
  name: getPet
  handler: api.example.com/shop/getPet-2.rs
  running: false
  dependencies: {}
  bindings:
    cache: db
`);
    expect(await exported()).to.deep.equal(files);
    // As a ZIP it is the same folder.
    const archive = await fetch(`${api.url}/api/export`, { headers: { accept: 'application/zip' } });
    expect(archive.headers.get('content-type')).to.equal('application/zip');
    const unpacked = unzipSync(new Uint8Array(await archive.arrayBuffer()));
    const texts = Object.entries(unpacked).map(([path, bytes]) => [path, Buffer.from(bytes).toString()]);
    expect(Object.fromEntries(texts)).to.deep.equal(files);
    // One domain has the services that it uses.
    const part = await exported('?domain=API.example.com');
    expect(part['edge.yaml']).to.include('name: db').and.not.include('host: "*"');
  });

  it('an export that is adopted changes only the stack of each object', async () => {
    const files = await exported();
    const changes = await changesOf(files, '&adopt=true');
    expect(changes).to.have.length(6);
    for (const { fields } of changes)
      expect(fields).to.deep.equal([{ path: 'stack', before: null, after: 'installation' }]);
  });

  it('an export is valid by the published schema of files', async () => {
    const published = JSON.parse(await readFile('docs/edge.schema.json', 'utf8')) as object;
    expect((await api.get('/api/edge.schema.json')).body).to.deep.equal(published);
    const check = new Ajv({ strict: false, validateFormats: false }).compile(published);
    const valid = parse((await exported())['edge.yaml'] ?? '') as { services: { config: object }[] };
    expect(check(valid), JSON.stringify(check.errors)).to.equal(true);
    const [service] = valid.services;
    for (const wrong of [
      { ...valid, stacks: 1 },
      { ...valid, services: [{ ...service, config: { host: 'h', password: 'a literal' } }] },
      { ...valid, domains: [{ host: 'a.example', policies: { timeout: 'soon' } }] },
    ])
      expect(check(wrong), JSON.stringify(wrong)).to.equal(false);
  });

  for (const example of readdirSync(EXAMPLES_FOLDER))
    it(`the export of the example ${example} is an empty plan`, async () => {
      await makeInstallation(api, {
        domains: [null, null, null],
        collections: [],
        services: [],
        endpoints: [],
      });
      await defineExample(api, example);
      const files = await exported();
      expect(Object.keys(files).length).to.be.above(1);
      expect(await changesOf(files)).to.deep.equal([]);
    });
});
