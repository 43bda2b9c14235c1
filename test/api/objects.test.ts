import { expect } from 'chai';
import { startApi, type TestApi } from '../support/api.js';
import { expectFailure } from '../support/expect.js';

describe('object files', () => {
  let api: TestApi;

  before(async () => {
    api = await startApi();
  });
  after(() => api.close());

  it('says that they cannot be reached, whatever the key', async () => {
    for (const [method, path] of [
      ['GET', '/api/minio/objects'],
      ['GET', '/api/minio/objects?prefix=a/b'],
      ['POST', '/api/minio/objects'],
      ['GET', '/api/minio/objects/a/b%20c/d.txt'],
      ['DELETE', '/api/minio/objects/a/b%20c/d.txt'],
    ] as const) {
      const response = await api.send(method, path);
      expectFailure(response, 'not_implemented');
      expect(response.body).to.have.all.keys('ok', 'error', 'code');
    }
  });
});
