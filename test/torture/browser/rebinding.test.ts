/** A real browser with a page of a stranger, whose host name leads to the management API all of a sudden. */
import { expect } from 'chai';
import type { Browser, Page } from 'playwright-core';
import { type Stack, startStack } from '../../support/processes.js';
import { launchBrowser } from '../../support/ui.js';

const STRANGER = 'stranger.test';

describe('a page whose host name leads to an API that asks for no key', function () {
  this.timeout(120_000);
  let stack: Stack;
  let browser: Browser;
  let page: Page;
  before(async () => {
    stack = await startStack({ processes: ['web'] });
    browser = await launchBrowser([
      `--host-resolver-rules=MAP ${STRANGER} 127.0.0.1`,
      // Newer browsers ask whether a page may reach the machine itself; older ones do not.
      '--disable-features=LocalNetworkAccessChecks',
    ]);
    page = await browser.newPage();
    const origin = `http://${STRANGER}:${new URL(stack.apiUrl).port}`;
    // What the stranger's own server answers before the name leads elsewhere.
    const html = { contentType: 'text/html', body: '<title>a page of a stranger</title>' };
    await page.route(`${origin}/page`, (route) => route.fulfill(html));
    await page.goto(`${origin}/page`);
  });
  after(async () => {
    await browser?.close();
    await stack?.close();
  });

  const fromPage = (path: string, method: string, body: string | null) =>
    page.evaluate(
      `fetch('${path}', { method: '${method}', body: ${JSON.stringify(body)}, headers: { 'Content-Type': 'application/json' } })
         .then(async (answer) => ({ status: answer.status, text: await answer.text() }))`,
    ) as Promise<{ status: number; text: string }>;

  it('a page of a stranger neither reads nor changes anything', async () => {
    expect(await page.title()).to.equal('a page of a stranger');
    const domain = JSON.stringify({ name: 'd', host: 'made.example' });
    for (const [path, method, body] of [
      ['/api/domains', 'GET', null],
      ['/api/domains', 'POST', domain],
      ['/api/session', 'GET', null],
      ['/api/openapi.json', 'GET', null],
      ['/metrics', 'GET', null],
    ] as const) {
      const { status, text } = await fromPage(path, method, body);
      expect(status, `${method} ${path}: ${text}`).to.equal(403);
      expect(text).to.include('foreign_origin');
    }
    expect((await stack.api.get('/api/domains')).body)
      .to.have.property('data')
      .with.length(0);
  });
});
