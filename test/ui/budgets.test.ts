/** How much a browser loads of the web UI before it shows something. */
import { stat } from 'node:fs/promises';
import { expect } from 'chai';
import { expectData } from '../support/expect.js';
import { type Stack, startStack } from '../support/processes.js';
import { openBrowser, type Ui } from '../support/ui.js';

const FIRST_PAGE_BYTES = 60 * 1024;
const EDITOR_BYTES = 200 * 1024;

describe('what a browser loads of the web UI', function () {
  this.timeout(60_000);
  let stack: Stack;
  let ui: Ui;
  before(async () => {
    stack = await startStack({ processes: ['web'] });
    ui = await openBrowser(stack.apiUrl);
  });
  after(async () => {
    await ui?.close();
    await stack?.close();
  });

  /** The files that a page loads. @param shown a text that tells when it is there */
  async function filesOf(path: string, shown: string): Promise<Set<string>> {
    const files = new Set<string>();
    const { page, close } = await ui.open('about:blank');
    page.on('request', (request) => {
      const { origin, pathname } = new URL(request.url());
      if (origin === stack.apiUrl && !pathname.startsWith('/api/')) files.add(pathname);
      // From nowhere else.
      expect([stack.apiUrl, 'null']).to.include(origin);
    });
    await page.goto(path);
    await page.locator(shown).first().waitFor();
    await page.waitForLoadState('load');
    await close();
    return files;
  }

  /** Compressed with gzip, as far as they are compressed. */
  async function sizeOf(files: Iterable<string>): Promise<number> {
    let bytes = 0;
    for (const file of files) {
      if (!file.startsWith('/ui/assets/')) continue;
      const path = file.replace('/ui/', 'ui/dist/');
      bytes += (await stat(`${path}.gz`).catch(() => stat(path))).size;
    }
    return bytes;
  }

  it('is at most 60 KB for the first page', async () => {
    const files = await filesOf('/ui', 'h1');
    expect([...files]).to.include('/ui');
    expect(await sizeOf(files)).to.be.within(10_000, FIRST_PAGE_BYTES);
  });

  it('is at most 200 KB more for the editor', async () => {
    const body = { name: 'x', path: '/x', method: 'GET', domain: '*', code: 'fn handle() {}' };
    const { id } = expectData<{ id: string }>(await stack.api.post('/api/endpoints', body), 201);
    const first = await filesOf('/ui', 'h1');
    const editor = await filesOf(`/ui/endpoints/${id}`, '.cm-content');
    const more = [...editor].filter((file) => !first.has(file));
    expect(await sizeOf(more)).to.be.within(50_000, EDITOR_BYTES);
  });
});
