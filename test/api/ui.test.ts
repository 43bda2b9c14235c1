/** The files of the web UI: who gets them, how they are kept, and what their page may do. */
import { readdir, readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { startApi, type TestApi } from '../support/api.js';
import { expectFailure } from '../support/expect.js';

const ASSETS = 'ui/dist/assets';

describe('the files of the web UI', () => {
  let api: TestApi;
  before(async () => {
    // A credential is needed for all else.
    api = await startApi({ config: { API_KEY: 'the-right-key' } });
  });
  after(() => api.close());

  it('serves the pages of the web UI to everybody, also behind a link of another site', async () => {
    const headers = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' };
    for (const path of ['/ui', '/ui/', '/ui/endpoints', '/ui/endpoints/x/logs?level=error']) {
      const page = await api.get(path, { headers });
      expect(page.status, path).to.equal(200);
      expect(page.headers['content-type']).to.match(/^text\/html/);
      expect(page.headers['cache-control']).to.equal('no-store');
      expect(page.body).to.match(/<script type="module" src="\/ui\/assets\/main-\w+\.js">/);
    }
  });

  it('the page of the web UI runs only scripts of its own files, and is shown in no frame', async () => {
    const [one, other] = [await api.get('/ui'), await api.get('/ui')];
    const policy = String(one.headers['content-security-policy']);
    const nonce = /'nonce-([^']+)'/.exec(policy)?.[1] ?? '';
    expect(nonce).to.have.lengthOf.at.least(22);
    expect(policy.replace(nonce, 'N').split('; ')).to.deep.equal([
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self' 'nonce-N'",
      "img-src 'self' data: blob:",
      "connect-src 'self'",
      "frame-src 'self'",
      "base-uri 'none'",
      "form-action 'self'",
      "frame-ancestors 'none'",
      "require-trusted-types-for 'script'",
      "trusted-types 'none'",
    ]);
    expect(one.body).to.include(`content="${nonce}"`);
    expect(other.body).not.to.include(nonce);
    expect(one.headers['x-frame-options']).to.equal('DENY');
    expect(one.headers['x-content-type-options']).to.equal('nosniff');
    // Neither scripts nor styles stand in the page.
    expect(String(one.body)).not.to.match(/<script(?![^>]*src=)|<style|\sstyle=|\son\w+=/);
  });

  it('lets browsers keep the assets of the web UI for a year', async () => {
    for (const name of await readdir(ASSETS)) {
      const { status, headers } = await api.get(`/ui/assets/${name}`);
      expect(status, name).to.equal(200);
      expect(headers['cache-control'], name).to.equal('public,max-age=31536000,immutable');
      expect(headers['x-content-type-options'], name).to.equal('nosniff');
    }
  });

  it('sends assets of the web UI compressed to clients that accept it', async () => {
    const script = (await readdir(ASSETS)).find((name) => /^code-tab-\w+\.js$/.test(name)) ?? '';
    for (const [accepted, suffix] of [
      ['br', '.br'],
      ['gzip', '.gz'],
      ['identity', ''],
    ] as const) {
      const { headers } = await api.send('HEAD', `/ui/assets/${script}`, {
        headers: { 'accept-encoding': accepted },
      });
      expect(headers['content-encoding']).to.equal(accepted === 'identity' ? undefined : accepted);
      const { length } = await readFile(`${ASSETS}/${script}${suffix}`);
      expect(headers['content-length']).to.equal(String(length));
      expect(headers['content-type']).to.match(/^text\/javascript/);
    }
  });

  it('serves no other files under the path of the web UI', async () => {
    for (const path of [
      '/ui/assets/none.js',
      '/ui/assets/',
      '/ui/assets/../index.html',
      '/ui/assets/..%2findex.html',
      '/ui/assets/..%2f..%2fpackage.json',
      '/ui/assets/%2e%2e/%2e%2e/package.json',
      '/ui/assets/%00',
      '/ui/assets/%ff',
    ]) {
      const response = await api.get(path);
      // The client has made another path of some, which is that of a page.
      if (response.status === 200) expect(response.body, path).to.include('<div id="app">');
      else expect(response.status, path).to.be.oneOf([400, 401, 404]);
      expect(JSON.stringify(response.body)).not.to.include('workspaces');
    }
    expectFailure(await api.send('PUT', '/ui/assets/x'), 'method_not_allowed');
    expectFailure(await api.get('/uix'), 'unauthorized');
  });
});
