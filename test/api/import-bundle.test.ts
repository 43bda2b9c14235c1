/** Bundles over HTTP, without anybody who compiles: what is stored, what is refused, and what is said meanwhile. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Static } from '@sinclair/typebox';
import { expect } from 'chai';
import type { EndpointView } from '../../src/api/endpoints/endpoints.schema.js';
import type { BundleImported, ImportView } from '../../src/api/imports/imports.schema.js';
import type { ErrorCode } from '../../src/errors.js';
import type { Changes } from '../../src/reconcile/changes.js';
import { removeNode } from '../../src/store/nodes.js';
import { startApi, type TestApi } from '../support/api.js';
import type { HttpResponse } from '../support/client.js';
import { eventually } from '../support/eventually.js';
import { expectData, expectFailure, NO_ID, TIMESTAMP, UUID } from '../support/expect.js';
import { type FormPart, multipart } from '../support/form.js';
import { call } from '../support/http.js';
import { addNode } from '../support/nodes.js';
import { rawZip, zipOf } from '../support/zip.js';

type Imported = Static<typeof BundleImported>;
type Import = Static<typeof ImportView>;
type Endpoint = Static<typeof EndpointView>;

const SPEC = `
openapi: 3.0.3
info: { title: Pets, version: "1" }
servers: [{ url: /v1 }]
paths:
  /pets:
    get: { operationId: listPets, responses: { "200": { description: ok } } }
    post: { operationId: addPet, responses: { "201": { description: ok } } }
`;
const HANDLER = 'use rust_edge_gateway_sdk::prelude::*;\n// lists\n';
const FILES = { 'openapi.yaml': SPEC, 'handlers/list_pets.rs': HANDLER, 'handlers/other.rs': '// nobody\n' };
const WORKER = '11111111-1111-4111-8111-111111111111';

describe('importing bundles over HTTP', () => {
  let api: TestApi;
  let waiting = 0;
  let host: string;
  let domainId: string;
  let count = 0;

  before(async () => {
    api = await startApi({
      config: { BUNDLE_LIMIT_BYTES: 100_000, IMPORT_WAIT_MS: 300 },
      deps: (deps) => {
        // Counts who waits for an import.
        const waitFor: Changes['waitFor'] = async (...args) => {
          waiting++;
          return deps.changes.waitFor(...args).finally(() => {
            waiting--;
          });
        };
        return { ...deps, changes: Object.assign(Object.create(deps.changes), { waitFor }) as Changes };
      },
    });
  });
  after(() => api.close());
  beforeEach(async () => {
    host = `b${++count}.example`;
    domainId = expectData<{ id: string }>(await api.post('/api/domains', { name: 'D', host }), 201).id;
  });

  const sendForm = (parts: readonly FormPart[], query = `domain=${host}`, headers: object = {}) => {
    const form = multipart(parts);
    return api.post(`/api/import/bundle?${query}`, form.body, { headers: { ...form.headers, ...headers } });
  };
  const send = (zip: Buffer, query?: string, headers?: object) =>
    sendForm([{ name: 'bundle', filename: 'a.zip', content: zip }], query, headers);
  const imported = async (files: Record<string, string>, query = '') =>
    expectData<Imported>(await send(zipOf(files), `domain=${host}${query}`));
  const warningsOf = ({ body }: HttpResponse) => (body as { warnings?: string[] }).warnings ?? [];
  const endpoint = async (id: string | undefined) =>
    expectData<Endpoint>(await api.get(`/api/endpoints/${id}`));
  const view = async (id: string) => expectData<Import>(await api.get(`/api/imports/${id}`));
  const counts = () =>
    Promise.all(
      ['collections', 'endpoints', 'imports', 'import_handlers'].map(async (table) =>
        Number((await api.store.knex(table).count())[0]?.['count']),
      ),
    );
  const uploads = async ({ DATA_DIR } = api.config) => {
    const folder = join(DATA_DIR, 'uploads');
    const folders = await readdir(folder).catch(() => []);
    return (await Promise.all(folders.map((name) => readdir(join(folder, name))))).flat();
  };
  /** Runs with a worker that is alive but never does anything. */
  const withIdleWorker = async (work: () => Promise<void>) => {
    await addNode(api.store, 'worker', { id: WORKER });
    try {
      await work();
    } finally {
      await removeNode(api.store, WORKER);
    }
  };

  it('a bundle stores endpoints with the handlers that match, and generates those of the others', async () => {
    const answer = await send(zipOf(FILES), `domain=${host}&domain_id=${domainId}&create_collection=1`);
    const result = expectData<Imported>(answer);
    expect(result.import_id).to.match(UUID);
    expect(result.collection).to.include({ name: 'Pets', base_path: '/v1' });
    expect(result).to.include({ endpoints_created: 2, endpoints_updated: 0, handlers_matched: 1 });
    expect(result).to.include({ compiled: 0, started: 0 });
    expect(result.endpoints.map(({ id: _, ...shown }) => shown)).to.deep.equal([
      { name: 'listPets', path: '/pets', method: 'GET', handler: 'handlers/list_pets.rs', status: 'created' },
      { name: 'addPet', path: '/pets', method: 'POST', handler: null, status: 'created' },
    ]);
    expect(warningsOf(answer).join('\n'))
      .to.match(/addPet/)
      .and.match(/other\.rs/);
    const [list, add] = result.endpoints;
    expect((await endpoint(list?.id)).code).to.equal(HANDLER);
    expect((await endpoint(add?.id)).code).to.include('501');
    expect(await uploads()).to.deep.equal([]);
    const shown = await view(result.import_id);
    expect(shown.created_at).to.match(TIMESTAMP);
    expect(shown).to.deep.include({ title: 'Pets', compile: false, start: false, handlers: [], result });
    expect(shown.state).to.equal(result.errors.length > 0 ? 'failed' : 'succeeded');
    expect(shown.warnings).to.deep.equal(warningsOf(answer));
  });

  it('a bundle replaces code by its handlers, and keeps code for which it has none', async () => {
    const [list, add] = (await imported(FILES)).endpoints;
    await api.put(`/api/endpoints/${list?.id}`, { code: '// changed by hand' });
    await api.put(`/api/endpoints/${add?.id}`, { code: '// written by hand' });
    expect(await imported(FILES)).to.include({ endpoints_created: 0, endpoints_updated: 2 });
    expect((await endpoint(list?.id)).code).to.equal(HANDLER);
    expect((await endpoint(add?.id)).code).to.equal('// written by hand');
    const { 'handlers/list_pets.rs': _, ...without } = FILES;
    await imported(without);
    expect((await endpoint(list?.id)).code).to.equal(HANDLER);
  });

  it('a bundle gives the dependencies of its manifest to the endpoints with a handler', async () => {
    const manifest = 'dependencies:\n  regex: "1"\n';
    const [list, add] = (await imported({ ...FILES, 'bundle.yaml': manifest })).endpoints;
    expect(await endpoint(list?.id)).to.deep.include({ dependencies: { regex: '1' } });
    expect(await endpoint(add?.id)).to.include({ dependencies: null });
    const key = async () =>
      (await api.store.knex('endpoints').where({ id: list?.id }).first('source_key')).source_key;
    const before = await key();
    await imported(FILES);
    expect(await endpoint(list?.id)).to.deep.include({ dependencies: { regex: '1' } });
    await imported({ ...FILES, 'bundle.yaml': manifest.replace('"1"', '"1.10"') });
    expect(await endpoint(list?.id)).to.deep.include({ dependencies: { regex: '1.10' } });
    expect(await key()).not.to.equal(before);
  });

  for (const name of ['bundle', 'file', 'zip']) {
    it(`accepts the archive of a bundle as the file ${name} of the form`, async () => {
      const answer = await sendForm([{ name, filename: 'a.zip', content: zipOf(FILES) }]);
      expect(expectData<Imported>(answer).endpoints_created).to.equal(2);
    });
  }

  it('ignores unknown fields of the form and the query of a bundle, and warns of them', async () => {
    const file = { name: 'zip', filename: 'a.zip', content: zipOf(FILES) };
    const answer = await sendForm([{ name: 'domain', content: 'x' }, file], `domain=${host}&more=1`);
    expectData(answer);
    expect(warningsOf(answer)).to.include('form.domain: is not a known field and was ignored');
    expect(warningsOf(answer)).to.include('query.more: is not a known field and was ignored');
  });

  describe('bundles that are refused', () => {
    const zip = () => zipOf(FILES);
    const refused: Record<string, [() => Promise<HttpResponse>, ErrorCode, RegExp]> = {
      'without a form': [
        () =>
          api.post(`/api/import/bundle?domain=${host}`, zip(), {
            headers: { 'content-type': 'application/zip' },
          }),
        'unsupported_media_type',
        /multipart\/form-data/,
      ],
      'without a file': [() => sendForm([]), 'invalid_input', /form\.bundle: is required.*`file` or `zip`/],
      'with a field in place of the file': [
        () => sendForm([{ name: 'bundle', content: 'text' }]),
        'invalid_input',
        /form\.bundle: must be a file/,
      ],
      'with a file of another name': [
        () => sendForm([{ name: 'archive', filename: 'a.zip', content: zip() }]),
        'invalid_input',
        /form\.archive: is no file of this form; it has bundle, file, zip/,
      ],
      'with two files': [
        () => sendForm(['bundle', 'zip'].map((name) => ({ name, filename: 'a.zip', content: zip() }))),
        'invalid_input',
        /more files/,
      ],
      'that is too large': [() => send(Buffer.alloc(150_000)), 'body_too_large', /100000 bytes/],
      'that is far too large': [() => send(Buffer.alloc(1_500_000)), 'body_too_large', /100000 bytes/],
      'without a domain': [() => send(zip(), ''), 'invalid_input', /query\.domain: is required/],
      'with a flag that is not a boolean': [
        () => send(zip(), `domain=${host}&compile=yes`),
        'invalid_input',
        /query\.compile: must be one of true, 1, false, 0, not "yes"/,
      ],
      'that is to be started but not compiled': [
        () => send(zip(), `domain=${host}&start=1`),
        'invalid_input',
        /query\.start: needs compile=true/,
      ],
      'with a domain that does not exist': [
        () => send(zip(), `domain=${host}&domain_id=${NO_ID}`),
        'not_found',
        /domain 0000/,
      ],
      'with a domain of another host': [
        () => send(zip(), `domain=other.example&domain_id=${domainId}`),
        'domain_mismatch',
        /"other\.example"/,
      ],
      'whose collection is to be created without a domain_id': [
        () => send(zip(), `domain=${host}&create_collection=true`),
        'invalid_input',
        /query\.domain_id: is required/,
      ],
      'that is not a ZIP archive': [() => send(Buffer.from('no zip at all')), 'invalid_bundle', /ZIP/],
      'that is empty': [() => send(rawZip([])), 'invalid_bundle', /no files/],
      'without spec and routes': [() => send(zipOf({ 'handlers/a.rs': '' })), 'invalid_bundle', /./],
      'with a path that leads out of it': [
        () => send(rawZip([{ name: '../openapi.yaml', data: SPEC }])),
        'invalid_bundle',
        /\.\.\/openapi\.yaml/,
      ],
      'with a broken manifest': [
        () => send(zipOf({ ...FILES, 'bundle.yaml': 'routes: 3' })),
        'invalid_bundle',
        /bundle\.yaml/,
      ],
      'with a dependency that is not valid': [
        () => send(zipOf({ ...FILES, 'bundle.yaml': 'dependencies: { a: { git: x } }' })),
        'invalid_dependency',
        /./,
      ],
      'that is to be compiled when no worker runs': [
        () => send(zip(), `domain=${host}&compile=true`),
        'no_worker',
        /worker/,
      ],
    };
    for (const [what, [request, code, message]] of Object.entries(refused)) {
      it(`refuses a bundle ${what}, and imports nothing`, async () => {
        const before = await counts();
        expectFailure(await request(), code, message);
        expect(await counts()).to.deep.equal(before);
        expect(await uploads()).to.deep.equal([]);
      });
    }

    it('refuses a bundle that is to be started when no gateway runs, and imports nothing', () =>
      withIdleWorker(async () => {
        const before = await counts();
        expectFailure(await send(zip(), `domain=${host}&compile=true&start=true`), 'no_gateway');
        expect(await counts()).to.deep.equal(before);
      }));

    it('refuses a bundle with the route of another endpoint, and imports nothing', async () => {
      const body = { name: 'Mine', path: '/v1/pets', method: 'POST', domain: host };
      const mine = expectData<Endpoint>(await api.post('/api/endpoints', body), 201);
      const before = await counts();
      const refusal = await send(zip(), `domain=${host}&domain_id=${domainId}&create_collection=true`);
      expectFailure(refusal, 'route_taken', new RegExp(`POST /v1/pets .*"Mine" \\(${mine.id}\\)`));
      expect(await counts()).to.deep.equal(before);
    });
  });

  it('answers 504 when the handlers of a bundle take too long, and names the path of the import', () =>
    withIdleWorker(async () => {
      const answer = await send(zipOf(FILES), `domain=${host}&compile=true`);
      expectFailure(answer, 'wait_timeout', /\/api\/imports\//);
      const { import_id: id } = (answer.body as { details: { import_id: string } }).details;
      const shown = await view(id);
      expect(shown).to.deep.include({ state: 'queued', result: null, finished_at: null });
      expect(shown.counts).to.deep.equal({
        queued: 1,
        compiling: 0,
        compiled: 0,
        starting: 0,
        started: 0,
        failed: 0,
      });
      expect(shown.handlers.map(({ name, handler, state }) => ({ name, handler, state }))).to.deep.equal([
        { name: 'listPets', handler: 'handlers/list_pets.rs', state: 'queued' },
      ]);
    }));

  it('answers a bundle at once when none of its handlers has to be compiled', async () => {
    const { 'handlers/list_pets.rs': _, 'handlers/other.rs': __, ...generated } = FILES;
    const answer = await send(zipOf(generated), `domain=${host}&compile=true&start=true`);
    expect(expectData<Imported>(answer)).to.include({ handlers_matched: 0, compiled: 0 });
    const prefers = await send(zipOf(FILES), `domain=${host}`, { prefer: 'respond-async' });
    expect(expectData<Imported>(prefers)).to.include({ endpoints_updated: 2 });
  });

  describe('events', () => {
    const accepted = async () => {
      const answer = await send(zipOf(FILES), `domain=${host}&compile=true`, { prefer: 'respond-async' });
      return expectData<{ import_id: string }>(answer, 202).import_id;
    };

    it('answers 404 to the events of an import that does not exist', async () => {
      expectFailure(await api.get(`/api/imports/${NO_ID}/events`), 'not_found');
      expectFailure(await api.get(`/api/imports/${NO_ID}`), 'not_found');
      expectFailure(await api.get('/api/imports/x/events'), 'invalid_input');
    });

    it('answers 204 to a client that has received the last event of an import', async () => {
      const { import_id: id } = await imported(FILES);
      const eventsAfter = (last: string) =>
        api.get(`/api/imports/${id}/events`, { headers: { 'last-event-id': last } });
      const { status, body } = await api.get(`/api/imports/${id}/events`);
      expect(status).to.equal(200);
      const [last] = /(?<=^event: done\nid: )\d+$/m.exec(String(body)) ?? [];
      expect(last).to.match(/^\d+$/);
      // A browser that gets this does not come back.
      expect(await eventsAfter(String(last))).to.include({ status: 204, body: undefined });
      expect(await eventsAfter('9007199254740993000'), 'no id of ours').to.include({ status: 204 });
      const again = await eventsAfter(String(Number(last) - 1));
      expect(again.status).to.equal(200);
      expect(again.body).to.include('event: done');
    });

    it('stops waiting for the events of an import when the client disconnects', async () => {
      const id = await accepted();
      const clients = [1, 2, 3].map(() => new AbortController());
      const calls = clients.map(({ signal }) =>
        call(`${api.url}/api/imports/${id}/events`, { signal }).catch((error: unknown) => error),
      );
      await eventually(() => expect(waiting).to.equal(3));
      for (const client of clients) client.abort();
      for (const answer of await Promise.all(calls)) expect(answer).to.be.instanceOf(Error);
      await eventually(() => expect(waiting).to.equal(0));
      expect(api.logged.lines.filter(({ level }) => level >= 40)).to.deep.equal([]);
    });

    it('ends the events of an import, and a waiting import, when the process stops', async () => {
      const own = await startApi();
      try {
        const form = multipart([{ name: 'zip', filename: 'a.zip', content: zipOf(FILES) }]);
        const sent = await own.post('/api/import/bundle?domain=*&compile=true', form.body, {
          headers: { ...form.headers, prefer: 'respond-async' },
        });
        const { import_id: id } = expectData<{ import_id: string }>(sent, 202);
        const answer = call(`${own.url}/api/imports/${id}/events`);
        await addNode(own.store, 'worker', { id: WORKER });
        const waits = own.post('/api/import/bundle?domain=*&compile=true', form.body, {
          headers: form.headers,
        });
        await eventually(async () => {
          const [{ count: imports } = { count: 0 }] = await own.store.knex('imports').count();
          expect(Number(imports)).to.equal(2);
          // The archive is not kept while the request waits.
          expect(await uploads(own.config)).to.deep.equal([]);
        });
        // Resolves only when no answer is under way any more.
        await own.close();
        const { text } = await answer;
        expect(text).to.include('event: progress').and.not.include('event: done');
        expectFailure(await waits, 'wait_timeout');
      } catch (error) {
        await own.close();
        throw error;
      }
    });
  });
});
