/**
 * The management API's contract for running services and object files, row by row, over HTTP against the real
 * processes.
 */
import { expect } from 'chai';
import { type S3Backend, startS3Backend } from '../support/backends/s3.js';
import { must, type Stack, startStack } from '../support/processes.js';
import { createService } from '../support/test-services.js';

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

describe('contract of running services', function () {
  this.timeout(60_000);
  let stack: Stack;
  let s3: S3Backend;
  before(async () => {
    s3 = await startS3Backend();
    stack = await startStack({ processes: ['web', 'actor-host'] });
  });
  after(async () => {
    await stack.close();
    await s3.remove();
  });

  const file = () => ({ path: 'contract.db' });

  it('activates and deactivates a service with the answers of the contract, section 3', async () => {
    const id = await createService(stack.api, 'sqlite', file(), 'S');
    for (const [operation, active] of [
      ['activate', true],
      ['deactivate', false],
    ] as const) {
      const { status, body } = await stack.api.post(`/api/services/${id}/${operation}`);
      expect(status).to.equal(200);
      expect(body).to.have.all.keys('success', 'data');
      expect(body).to.have.property('success', true);
      const { data } = body as { data: object };
      expect(data).to.have.all.keys('id', 'name', 'service_type', 'active', 'message');
      expect(data).to.include({ id, name: 'S', service_type: 'sqlite', active });
      expect(data).to.have.property('message').that.is.a('string');
    }
  });

  it('tests the connection of a service with the answers of the contract, section 4', async () => {
    const id = await createService(stack.api, 'sqlite', file());
    const reached = await must(stack.api.post(`/api/services/${id}/test`));
    expect(reached).to.have.all.keys('connected', 'latency_ms', 'message');
    expect(reached).to.have.property('connected', true);
    const missing = { path: 'none.db', create_if_missing: false };
    const other = await createService(stack.api, 'sqlite', missing);
    const { status, body } = await stack.api.post(`/api/services/${other}/test`);
    expect({ status, ok: (body as { ok: boolean }).ok }).to.deep.equal({ status: 200, ok: true });
    const { data } = body as { data: object };
    expect(data).to.have.all.keys('connected', 'error');
    expect(data).to.have.property('connected', false);
  });

  it('uploads, lists, reads and deletes object files with the answers of the contract, section 4', async () => {
    const before = await stack.api.get('/api/minio/objects');
    expect(before.status).to.equal(503);
    const id = await createService(stack.api, 'objstore', s3.config);
    expect((await stack.api.post(`/api/services/${id}/activate`)).body).to.have.property('success', true);

    const form = new FormData();
    form.append('file', new Blob(['hello']), 'whatever.bin');
    form.append('key', 'a/folder/hello world.txt');
    const answer = await fetch(`${stack.apiUrl}/api/minio/objects`, { method: 'POST', body: form });
    expect(answer.status).to.equal(200);
    const uploaded = (await answer.json()) as object;
    expect(uploaded).to.have.all.keys('key', 'bucket', 'size', 'message');
    expect(uploaded).to.include({ key: 'a/folder/hello world.txt', bucket: 'files', size: 5 });

    const listed = (await stack.api.get('/api/minio/objects?prefix=a/')).body as { objects: object[] };
    expect(listed).to.have.all.keys('bucket', 'prefix', 'objects');
    expect(listed).to.include({ bucket: 'files', prefix: 'a/' });
    expect(listed.objects).to.have.length(1);
    expect(listed.objects[0]).to.have.all.keys('key', 'size', 'last_modified');
    expect(listed.objects[0]).to.include({ key: 'a/folder/hello world.txt', size: 5 });
    expect(listed.objects[0]).to.have.property('last_modified').that.matches(TIMESTAMP);

    const path = '/api/minio/objects/a/folder/hello%20world.txt';
    const read = await stack.api.get(path);
    expect(read).to.include({ status: 200, body: 'hello' });
    expect(read.headers['content-type']).to.match(/^text\/plain/);

    const deleted = await stack.api.delete(path);
    expect(deleted.body).to.deep.equal({ key: 'a/folder/hello world.txt', bucket: 'files', deleted: true });
    expect((await stack.api.get(path)).status).to.equal(404);
  });
});
