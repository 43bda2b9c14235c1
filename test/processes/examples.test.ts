/** The handlers in `examples/`, deployed as they are. */
import { readdir, readFile } from 'node:fs/promises';
import { expect } from 'chai';
import type { HttpResponse } from '../support/client.js';
import { type Stack, startStack } from '../support/processes.js';

const FOLDER = new URL('../../../examples/', import.meta.url);

describe('examples', () => {
  let stack: Stack;
  before(async () => {
    stack = await startStack();
  });
  after(() => stack.close());

  const calls: Record<string, () => Promise<HttpResponse>> = {
    hello: () => stack.gateway.get('/hello/J%C3%BCrgen'),
    echo: () => stack.gateway.post('/echo', { text: 'hi', times: 2 }),
    upload: () =>
      stack.gateway.post(
        '/upload',
        '--b\r\nContent-Disposition: form-data; name="title"\r\n\r\nSun\r\n--b\r\nContent-Disposition: form-data; ' +
          'name="photo"; filename="sun.jpg"\r\nContent-Type: image/jpeg\r\n\r\n1234\r\n--b--\r\n',
        { headers: { 'content-type': 'multipart/form-data; boundary=b' } },
      ),
    'async-sleep': () => stack.gateway.get('/sleep/5'),
  };

  it('are all called here', async () => {
    expect(await readdir(FOLDER)).to.have.same.members(Object.keys(calls));
  });

  for (const [name, call] of Object.entries(calls)) {
    it(`${name} compiles, starts and answers`, async () => {
      const { endpoint } = JSON.parse(await readFile(new URL(`${name}/endpoint.json`, FOLDER), 'utf8')) as {
        endpoint: { path: string };
      };
      const code = await readFile(new URL(`${name}/handler.rs`, FOLDER), 'utf8');
      await stack.deploy({ ...endpoint, code });
      const { status, body } = await call();
      expect(status, JSON.stringify(body)).to.be.within(200, 299);
    });
  }

  it('hello greets by the decoded name', async () => {
    expect((await stack.gateway.get('/hello/J%C3%BCrgen')).body).to.deep.equal({ message: 'Hello, Jürgen!' });
  });
});
