/** How much a browser loads of the web UI before it shows something. */
import { expect } from 'chai';
import { expectData } from '../support/expect.js';
import { type Stack, startStack } from '../support/processes.js';
import { openBrowser, type Ui } from '../support/ui.js';
import { gzippedBytes, loadedFor } from '../support/ui-files.js';

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

  async function filesOf(path: string, shown: string): Promise<ReadonlySet<string>> {
    const { page, close } = await ui.open('about:blank');
    const { files, origins } = await loadedFor(page, path, shown);
    // From nowhere else.
    for (const origin of origins) expect([stack.apiUrl, 'null']).to.include(origin);
    await close();
    return files;
  }

  it('a browser loads at most 60 KB for the first page of the web UI', async () => {
    const files = await filesOf('/ui', 'h1');
    expect([...files]).to.include('/ui');
    expect(await gzippedBytes(files)).to.be.within(10_000, FIRST_PAGE_BYTES);
  });

  it('a browser loads at most 200 KB more for the editor of code', async () => {
    const body = { name: 'x', path: '/x', method: 'GET', domain: '*', code: 'fn handle() {}' };
    const { id } = expectData<{ id: string }>(await stack.api.post('/api/endpoints', body), 201);
    const first = await filesOf('/ui', 'h1');
    const editor = await filesOf(`/ui/endpoints/${id}`, '.cm-content');
    const more = [...editor].filter((file) => !first.has(file));
    expect(await gzippedBytes(more)).to.be.within(50_000, EDITOR_BYTES);
  });
});
