/** Handlers written for SDK 0.1, in `test/sdk-0.1`: compiled as they are, started and called over HTTP. */

import { readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { expect } from 'chai';
import { BACKENDS, type RunningBackend } from '../../support/backends/all.js';
import type { HttpResponse } from '../../support/client.js';
import { deploy, type Stack, startStack } from '../../support/processes.js';
import { activeService, bind } from '../../support/test-services.js';

const FOLDER = new URL('../../../../test/sdk-0.1/', import.meta.url);

const source = (name: string) => readFile(new URL(name, FOLDER), 'utf8');

/** The notes of `storage.rs` kept elsewhere: the literal of SDK 0.1 names the place. */
const DATABASE =
  'Storage { storage_type: Kind::Database, pool_id: made.pool_id, base_path: None, table_name: made.table_name }';
const IN_FILES = DATABASE.replace('base_path: None', 'base_path: made.table_name.clone()');
const ELSEWHERE: Readonly<Record<string, string>> = {
  objstore: IN_FILES.replace('Kind::Database', 'Kind::ObjectStorage'),
  ftp: IN_FILES.replace('Kind::Database', 'Kind::FileStorage'),
};

describe('handlers for SDK 0.1', function () {
  this.timeout(120_000);
  let stack: Stack;
  const backends: RunningBackend[] = [];
  before(async () => {
    stack = await startStack({ env: { SQLITE_DIR: tmpdir() } });
  });
  after(async () => {
    await stack.close();
    for (const backend of backends) await backend.remove();
  });

  /** An active service of this type with a backend of its own. */
  async function service(type: keyof typeof BACKENDS): Promise<string> {
    const backend: RunningBackend = await BACKENDS[type]();
    backends.push(backend);
    return activeService(stack.api, type, backend.config);
  }

  it('has a test for each file of test/sdk-0.1', async () => {
    expect(await readdir(FOLDER)).to.have.members(['literals.rs', 'pools.rs', 'storage.rs']);
  });

  it('serves a handler for SDK 0.1 that writes responses in full and copies requests (literals.rs)', async () => {
    await deploy(stack.api, { path: '/literals/{name}', code: await source('literals.rs') });
    const { status, headers, body } = await stack.gateway.get('/literals/a');
    expect([status, headers['content-type'], body]).to.deep.equal([
      200,
      'text/plain',
      'seen GET /copied/literals/a',
    ]);
  });

  for (const type of ['sqlite', 'postgres', 'mysql'] as const) {
    it(`serves a handler for SDK 0.1 with rows in ${type} and keys in Redis (pools.rs)`, async () => {
      const path = `/pools/${type}`;
      const id = await deploy(stack.api, { path, code: await source('pools.rs') });
      await bind(stack.api, id, await service(type), 'main');
      const answer = { inserted: 1, name: 'a', rows: 1, cached: null };
      const { status, body } = await stack.gateway.get(path);
      expect([status, body]).to.deep.equal([200, answer]);
      await bind(stack.api, id, await service('redis'), 'cache');
      expect((await stack.gateway.get(path)).body).to.deep.equal({ ...answer, rows: 2, cached: 'yes' });
    });
  }

  for (const type of ['sqlite', 'postgres', 'mysql', 'objstore', 'ftp'] as const) {
    it(`serves a handler for SDK 0.1 that uses each method of Storage, on ${type} (storage.rs)`, async () => {
      const original = await source('storage.rs');
      expect(original).to.include(DATABASE);
      const code = original.replace(DATABASE, ELSEWHERE[type] ?? DATABASE);
      const id = await service(type);
      const path = `/notes/${type}`;
      for (const method of ['GET', 'POST', 'PUT', 'DELETE']) {
        await bind(stack.api, await deploy(stack.api, { path, method, code }), id, 'main');
      }
      const { gateway } = stack;
      const seen = ({ status, body }: HttpResponse) => [status, body];
      const open = { id: 'one', text: 'milk', status: 'open' };
      const done = { id: 'one', text: 'milk', status: 'done' };
      const other = { id: 'two', text: 'tea', status: 'open' };

      expect(seen(await gateway.get(path))).to.deep.equal([200, []]);
      expect(seen(await gateway.post(path, open))).to.deep.equal([201, open]);
      // Without an id, the record gets the one it is stored under.
      expect(seen(await gateway.post(`${path}?id=two`, { text: 'tea', status: 'open' }))).to.deep.equal([
        201,
        other,
      ]);
      expect((await gateway.post(path, open)).status).to.equal(409);
      expect(seen(await gateway.get(path))).to.deep.equal([200, [open, other]]);
      expect(seen(await gateway.put(path, done))).to.deep.equal([200, done]);
      expect((await gateway.put(`${path}?id=none`, done)).status).to.equal(404);
      expect(seen(await gateway.get(`${path}?status=open`))).to.deep.equal([200, [other]]);
      expect(seen(await gateway.get(`${path}?status=done`))).to.deep.equal([200, [done]]);
      expect(seen(await gateway.get(`${path}?status=lost`))).to.deep.equal([200, []]);
      expect(seen(await gateway.delete(path))).to.deep.equal([200, { gone: true }]);
      expect(seen(await gateway.delete(path))).to.deep.equal([200, { gone: false }]);
      expect(seen(await gateway.get(path))).to.deep.equal([200, [other]]);
      expect((await gateway.post(path, 'no JSON')).status).to.equal(400);
    });
  }
});
