/** How many imports and plans one may have that are not read yet, over HTTP. */
import { readdir } from 'node:fs/promises';
import { type ClientRequest, request } from 'node:http';
import { join } from 'node:path';
import { expect } from 'chai';
import type { ApiDependencies } from '../../src/api/api-dependencies.js';
import { startApi, type TestApi } from '../support/api.js';
import type { HttpResponse } from '../support/client.js';
import { eventually } from '../support/eventually.js';
import { expectData, expectFailure } from '../support/expect.js';
import { multipart } from '../support/form.js';
import { zipOf } from '../support/zip.js';

const SPEC = `
openapi: 3.0.3
info: { title: Pets, version: "1" }
paths:
  /pets:
    get: { operationId: listPets, responses: { "200": { description: ok } } }
`;
const ZIP = zipOf({ 'openapi.yaml': SPEC });
const ROOM = 200_000;

describe('imports and plans that are not read yet', () => {
  let api: TestApi;
  let room: ApiDependencies['importReader']['room'];
  const start = async (bodies: number) => {
    api = await startApi({
      config: { IMPORTS_QUEUED_LIMIT: bodies, IMPORTS_SPOOLED_LIMIT_BYTES: ROOM },
      deps: (deps) => {
        ({ room } = deps.importReader);
        return deps;
      },
    });
  };
  afterEach(() => api.close());

  const send = (zip: Buffer, query = 'domain=a.example') => {
    const form = multipart([{ name: 'bundle', filename: 'a.zip', content: zip }]);
    return api.post(`/api/import/bundle?${query}`, form.body, { headers: form.headers });
  };
  /** Begins to send a bundle, of which so many bytes arrive. */
  const begin = async (bytes: number): Promise<ClientRequest> => {
    const form = multipart([{ name: 'bundle', filename: 'a.zip', content: Buffer.alloc(bytes) }]);
    const outgoing = request(`${api.url}/api/import/bundle?domain=a.example`, {
      ...{ method: 'POST', headers: { ...form.headers, 'content-length': form.body.length + 1_000 } },
    });
    outgoing.on('error', () => undefined);
    outgoing.write(form.body.subarray(0, -100));
    await eventually(() => expect(room.bytes).to.be.above(bytes - 1_000));
    return outgoing;
  };
  const end = async (outgoing: ClientRequest) => {
    outgoing.destroy();
    await eventually(() => expect(room.bytes).to.equal(0));
    await eventually(async () => expect(await uploads()).to.have.length(0));
  };
  const uploads = async () => {
    const names = await readdir(join(api.config.DATA_DIR, 'uploads'), { recursive: true });
    return names.filter((name) => name.includes('/'));
  };
  const expectTooMany = (response: HttpResponse, message: RegExp) => {
    expectFailure(response, 'too_many_imports', message);
    expect(response.status).to.equal(429);
    expect(response.headers).to.have.property('retry-after', '5');
  };

  it('refuses imports, plans and exports of documents beyond the number that one may have, until one was read', async () => {
    await start(1);
    expectData(await send(ZIP));
    const arriving = await begin(10_000);
    const tooMany = /1 imports and plans.*IMPORTS_QUEUED_LIMIT/;
    expectTooMany(await send(ZIP), tooMany);
    expectTooMany(await api.post('/api/import/openapi', { spec: SPEC, domain: 'a.example' }), tooMany);
    expectTooMany(await api.post('/api/apply?dry_run=true', { files: { 'edge.yaml': '{}' } }), tooMany);
    expectTooMany(await api.get('/api/export/openapi?domain=a.example'), tooMany);
    await end(arriving);
    expectData(await send(ZIP));
    expectData(await api.get('/api/export/openapi?domain=a.example'));
    expect(room.bytes).to.equal(0);
  });

  it('refuses a bundle that makes those of one larger than they may be together, and keeps nothing of it', async () => {
    await start(5);
    const arriving = await begin(60_000);
    const large = zipOf({ 'openapi.yaml': SPEC, 'large.bin': Buffer.from(randomText(60_000)) });
    expectTooMany(await send(large), /100000 bytes.*IMPORTS_SPOOLED_LIMIT_BYTES/);
    expect(await uploads()).to.have.length(1);
    expectData(await send(ZIP));
    await end(arriving);
    expect((await send(large)).status).not.to.equal(429);
    expect(room.bytes).to.equal(0);
  });
});

/** That no archive makes smaller. */
function randomText(length: number): Buffer {
  let state = 1;
  return Buffer.from(
    Array.from({ length }, () => {
      state = (state * 48_271) % 2_147_483_647;
      return state & 255;
    }),
  );
}
