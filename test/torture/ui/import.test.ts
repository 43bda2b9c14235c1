import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { eventually } from '../../support/eventually.js';
import { slowToCompile } from '../../support/handler-sources.js';
import { must, type Stack, startStack } from '../../support/processes.js';
import { expectAccessible, HOSTILE, openBrowser, type Ui } from '../../support/ui.js';
import { zipOf } from '../../support/zip.js';

const RESPONSES = '{ "200": { description: Fine } }';
const DOCUMENT = `openapi: 3.1.0
info: { title: Pets, version: "1.0" }
paths:
  /pets:
    get: { operationId: listPets, responses: ${RESPONSES} }
    post: { operationId: makePet, responses: ${RESPONSES} }
    head: { operationId: headPets, responses: ${RESPONSES} }
`;
const GOOD = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(_: Request) -> Response { Response::ok("imported") }
handler_loop!(handle);
`;
const BUNDLE = zipOf({
  'openapi.yaml': `openapi: 3.1.0
info: { title: Parts, version: "1.0" }
paths:
  /good: { get: { operationId: good, responses: ${RESPONSES} } }
  /broken: { get: { operationId: broken, responses: ${RESPONSES} } }
`,
  'handlers/good.rs': GOOD,
  'handlers/broken.rs': GOOD.replace('Response::ok', 'Response::oops'),
});

/** In the life of this test it does not end. */
const SLOW = zipOf({
  'openapi.yaml': `openapi: 3.1.0
info: { title: Slow, version: "1.0" }
paths: { /slow: { get: { operationId: slow, responses: ${RESPONSES} } } }
`,
  'handlers/slow.rs': slowToCompile(1_000_000_000_000, 0),
});

describe('UI: import', () => {
  let stack: Stack;
  let ui: Ui;
  let clicks = 0;
  const file = (page: Page) => page.getByLabel('Choose a file').and(page.locator('input'));
  const click = async (page: Page, role: 'button' | 'link', name: string | RegExp) => {
    clicks++;
    await page.getByRole(role, { name }).first().click();
  };

  before(async () => {
    stack = await startStack();
    ui = await openBrowser(stack.apiUrl);
    await must(stack.api.post('/api/domains', { name: 'Pets', host: 'pets.test' }));
  });
  after(async () => {
    await ui?.close();
    await stack?.close();
  });

  it('the import page leads from a document to trying its first endpoint in two clicks', async () => {
    const { page, close } = await ui.open('/ui/import');
    const nothing = { name: 'nothing.json', mimeType: 'application/json', buffer: Buffer.alloc(0) };
    await file(page).setInputFiles(nothing);
    await page.getByText('nothing.json is empty').waitFor();
    clicks = 0;
    await file(page).setInputFiles({
      name: 'pets.yaml',
      mimeType: 'text/yaml',
      buffer: Buffer.from(DOCUMENT),
    });
    await page.getByText('2 new, 0 changed, 0 as they are, 1 left out').waitFor();
    await page.getByText('In a new collection “Pets”').waitFor();
    await page.getByText(/HEAD/).first().waitFor();
    await expectAccessible(page);
    await click(page, 'button', 'Import 2 endpoints');
    await page.waitForURL(/\/ui\/imports\//);
    await click(page, 'link', 'Try GET /pets');
    await page.waitForURL(/\/ui\/endpoints\/[0-9a-f-]{36}\/try$/);
    expect(clicks).to.equal(2);
    const id = page.url().split('/').at(-2);
    expect(await must(stack.api.get(`/api/endpoints/${id}`))).to.include({
      domain: 'pets.test',
      path: '/pets',
    });

    // The way back leads to the import; again, it would change nothing.
    await page.goBack();
    await page.getByText('succeeded').waitFor();
    await expectAccessible(page);
    await page.goto('/ui/import');
    await page.getByLabel('Document', { exact: true }).fill(DOCUMENT);
    await page.getByText('0 new, 0 changed, 2 as they are, 1 left out').waitFor();
    // What was pasted is there after a reload.
    await page.reload();
    await page.getByText('0 new, 0 changed, 2 as they are, 1 left out').waitFor();
    await close();
  });

  it('the import page refuses a text that is not a document, and says why', async () => {
    const { page, close } = await ui.open('/ui/import');
    await page.getByLabel('Document', { exact: true }).fill('no: document');
    await page.getByRole('alert').getByText('It cannot be imported like this').waitFor();
    await page
      .locator('.field .problem')
      .getByText(/openapi/)
      .waitFor();
    expect(await page.getByRole('button', { name: 'Import', exact: true }).isDisabled()).to.equal(true);
    await page.getByLabel('Document', { exact: true }).fill(DOCUMENT.replaceAll('/pets', '/others'));
    await page.getByText('2 new, 0 changed').waitFor();
    await close();
  });

  it('the import of a ZIP shows which handler has failed with its errors, and links to its code', async () => {
    const { page, close } = await ui.open('/ui/import');
    await file(page).setInputFiles({ name: 'parts.zip', mimeType: 'application/zip', buffer: BUNDLE });
    await page.getByRole('cell', { name: 'handlers/broken.rs' }).waitFor();
    await click(page, 'button', 'Import 2 endpoints');
    await page.waitForURL(/\/ui\/imports\//);
    const address = page.url();
    // Its address leads here at any time: it goes on without the page.
    await page.reload();
    await page.getByText('One handler has failed').waitFor({ timeout: 60_000 });
    await page
      .getByText(/no function or associated item named `oops`|no .*oops/)
      .first()
      .waitFor();
    await page.getByText('failed', { exact: true }).first().waitFor();
    await page.getByRole('link', { name: 'Try GET /good' }).first().waitFor();
    await expectAccessible(page);
    await click(page, 'link', 'See the build');
    await page.waitForURL(/\/ui\/builds\//);
    await page.goto(address);
    await click(page, 'link', 'Mend the code');
    await page.waitForURL(/\/ui\/endpoints\/[0-9a-f-]{36}\/code$/);
    expect((await stack.gateway.get('/good', { headers: { host: 'pets.test' } })).status).to.equal(200);
    await close();
  });

  it('the import page previews a changed ZIP again, though it has the same name', async () => {
    const { page, close } = await ui.open('/ui/import');
    const choose = async (paths: readonly string[]) => {
      const lines = paths.map((path) => `  ${path}: { get: { responses: ${RESPONSES} } }\n`);
      const text = `openapi: 3.1.0\ninfo: { title: Anew, version: "1" }\npaths:\n${lines.join('')}`;
      const buffer = zipOf({ 'openapi.yaml': text });
      await file(page).setInputFiles({ name: 'anew.zip', mimeType: 'application/zip', buffer });
    };
    await page.getByLabel('Document', { exact: true }).fill(DOCUMENT);
    await choose(['/first']);
    await page.getByRole('button', { name: 'Import 1 endpoint' }).waitFor();
    await choose(['/first', '/second']);
    await page.getByRole('button', { name: 'Import 2 endpoints' }).waitFor();
    // What was typed is there when it is taken away again.
    await page.getByRole('button', { name: 'Remove' }).click();
    expect(await page.getByLabel('Document', { exact: true }).inputValue()).to.equal(DOCUMENT);
    await close();
  });

  it('the page of an import shows its progress after a reload, and after its events were refused', async () => {
    const { page, close } = await ui.open('/ui/import');
    await file(page).setInputFiles({ name: 'slow.zip', mimeType: 'application/zip', buffer: SLOW });
    await click(page, 'button', 'Import 1 endpoint');
    await page.waitForURL(/\/ui\/imports\//);
    const progress = page.getByRole('progressbar', { name: 'Handlers that are done' });
    await page.getByText('0 of 1 handlers are done').waitFor();
    await page.reload();
    await progress.waitFor();
    await page.getByRole('row', { name: /slow/ }).getByText('compiling', { exact: true }).waitFor();

    // Nothing else tells the page that something has changed.
    await page.route('**/api/events', (route) => route.abort());
    let refused = 0;
    await page.route('**/api/imports/*/events', (route) =>
      refused++ === 0 ? route.fulfill({ status: 503 }) : route.continue(),
    );
    await page.reload();
    await progress.waitFor();
    await eventually(async () => expect(refused).to.be.above(0));
    const [build] = (await must(stack.api.get('/api/builds?state=running'))) as { id: string }[];
    await must(stack.api.post(`/api/builds/${build?.id}/cancel`));
    await page.getByText('One handler has failed').waitFor();
    await progress.waitFor({ state: 'detached' });
    await close();
  });

  it('the import page makes a new domain, and shows hostile text as text', async () => {
    const title = JSON.stringify(`${HOSTILE}\u202e`);
    const document = `{"openapi": "3.1.0", "info": {"title": ${title}, "version": "1"}, "paths": {"/x": {"get": {"operationId": ${title}, "summary": ${title}}, "trace": {"summary": ${title}}}}}`;
    const { page, close } = await ui.open('/ui/import');
    await page.getByLabel('Host', { exact: true }).selectOption({ label: 'A new domain …' });
    await page.getByLabel('Host of the new domain').fill('shop.test');
    await page.getByLabel('Document', { exact: true }).fill(document);
    // What reorders the text around it is said.
    await page.getByRole('region', { name: 'Preview' }).getByText(`${HOSTILE}U+202E`).waitFor();
    await click(page, 'button', 'Import 1 endpoint');
    await page.waitForURL(/\/ui\/imports\//);
    await page.getByRole('link', { name: 'Try GET /x' }).first().waitFor();
    await page.getByRole('heading', { level: 1 }).getByText(`${HOSTILE}U+202E`).waitFor();
    await expectAccessible(page);
    expect(await page.locator('img, main script').count()).to.equal(0);
    const domains = (await must(stack.api.get('/api/domains'))) as { host: string }[];
    expect(domains.map(({ host }) => host)).to.include('shop.test');
    await close();
  });
});
