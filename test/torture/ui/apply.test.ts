/** Files that are applied in the web UI: from a plan to what is, back again, and as an export. */
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { unzipSync } from 'fflate';
import type { Page } from 'playwright-core';
import { ADMIN, PASSWORD, signIn } from '../../support/access.js';
import { must, type Stack, startStack } from '../../support/processes.js';
import {
  expectAccessible,
  expectFits,
  expectUnharmed,
  HOSTILE,
  openBrowser,
  type Ui,
} from '../../support/ui.js';
import { zipOf } from '../../support/zip.js';

const HOST = 'shop.test';
const code = (text: string) => `use rust_edge_gateway_sdk::prelude::*;
fn handle(_: Request) -> Response { Response::ok("${text}") }
handler_loop!(handle);
`;
const ENDPOINT = { host: HOST, method: 'GET', route: '/hello', handler: 'hello.rs' };
const folder = (text: string, more: object = {}, source = code(text)) =>
  zipOf({
    'edge.yaml': JSON.stringify({
      ...{ stack: 'shop', domains: [{ host: HOST, variables: { CURRENCY: text } }], endpoints: [ENDPOINT] },
      ...more,
    }),
    'hello.rs': source,
  });

describe('UI: apply and export', function () {
  this.timeout(120_000);
  let stack: Stack;
  let ui: Ui;
  before(async () => {
    stack = await startStack({ processes: ['web', 'worker', 'gateway'] });
    ui = await openBrowser(stack.apiUrl);
  });
  after(async () => {
    await ui?.close();
    await stack?.close();
  });

  const preview = (page: Page) => page.getByRole('region', { name: 'Preview' });
  const choose = (page: Page, buffer: Buffer) =>
    page
      .getByLabel('Choose a file')
      .and(page.locator('input'))
      .setInputFiles({ name: 'shop.zip', mimeType: 'application/zip', buffer });
  const answer = async () => (await stack.gateway.get('/hello', { headers: { host: HOST } })).body;

  it('the apply page previews a ZIP, applies it, and shows the result of a live endpoint', async () => {
    const { page, close } = await ui.open('/ui');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: /^Search/ }).fill('stack files');
    await page.getByRole('option', { name: /^Apply/ }).click();
    await page.waitForURL(/\/ui\/apply$/);
    await page.getByText('Nothing was applied yet').waitFor();
    await expectAccessible(page);
    await choose(page, folder('one'));
    await preview(page).getByRole('heading', { name: '2 new, 0 changed, 0 deleted' }).waitFor();
    await preview(page).getByText(`GET ${HOST}/hello`).click();
    await preview(page)
      .getByRole('row', { name: /^code sha256:/ })
      .waitFor();
    await expectAccessible(page);
    await page.getByRole('button', { name: 'Apply 2 changes' }).click();
    await page.waitForURL(/\/ui\/applies\//);
    await page.getByText('Everything is as the files say.').waitFor({ timeout: 60_000 });
    await page.getByText('2 new, 0 changed, 0 deleted; 1 of them got new code that serves').waitFor();
    expect(await answer()).to.equal('one');
    await expectAccessible(page);
    await page.setViewportSize({ width: 360, height: 740 });
    await expectFits(page);
    await close();
  });

  it('the apply page shows the changed lines of code, applies them, and rolls the apply back', async () => {
    const { page, close } = await ui.open('/ui/apply');
    await page.getByRole('link', { name: 'shop' }).waitFor();
    await choose(page, folder('two'));
    await preview(page).getByRole('heading', { name: '0 new, 2 changed, 0 deleted' }).waitFor();
    await preview(page).getByText(`GET ${HOST}/hello`).click();
    await preview(page).locator('.line-added').getByText('Response::ok("two")').waitFor();
    await preview(page).locator('.line-removed').getByText('Response::ok("one")').waitFor();
    await preview(page).getByText(HOST, { exact: true }).click();
    await preview(page).getByRole('row', { name: 'variables.CURRENCY one two' }).waitFor();
    await expectAccessible(page);
    await page.setViewportSize({ width: 360, height: 740 });
    await expectFits(page);
    await page.getByRole('button', { name: 'Apply 2 changes' }).click();
    await page.getByText('Everything is as the files say.').waitFor();
    expect(await answer()).to.equal('two');

    await page.getByRole('button', { name: 'Roll back …' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText(/^0 new, 2 changed, 0 deleted/).waitFor();
    await expectAccessible(page);
    await dialog.getByRole('button', { name: 'Roll back' }).click();
    await page.getByText('It is as it was before.').waitFor();
    expect(await answer()).to.equal('one');
    // The link leads back to the apply, and the list has both.
    await page.getByRole('link', { name: 'an earlier apply' }).click();
    await page.getByRole('heading', { name: 'Apply of shop' }).waitFor();
    await page.getByRole('link', { name: 'Apply' }).last().click();
    await page.getByRole('row', { name: /a rollback/ }).waitFor();
    expect(await page.getByRole('row').count()).to.equal(4);
    await close();
  });

  it('the apply page says which code does not compile, and that nothing was changed', async () => {
    const { page, close } = await ui.open('/ui/apply');
    await choose(page, folder('one', {}, code('one').replace('Response::ok', 'Response::oops')));
    await page.getByRole('button', { name: 'Apply 1 change' }).click();
    await page.getByText('Nothing was changed.').waitFor({ timeout: 60_000 });
    await page.getByRole('heading', { name: /shop\.test\/hello.* does not compile/ }).waitFor();
    await page
      .getByText(/no .*oops/)
      .first()
      .waitFor();
    expect(await page.getByRole('button', { name: 'Roll back …' }).count()).to.equal(0);
    await expectAccessible(page);
    expect(await answer()).to.equal('one');
    await close();
  });

  it('the apply page shows errors of edge.yaml with their lines, and conflicts, and keeps the text', async () => {
    await must(stack.api.post('/api/domains', { name: 'Other', host: 'other.test' }));
    const { page, close } = await ui.open('/ui/apply');
    const text = page.getByLabel('edge.yaml', { exact: true });
    await text.fill('stack: shop\ndomains: [{host: a.test, nonsense: 1}]\nendpoints: [{host: a.test}]\n');
    const alert = page.getByRole('alert');
    await alert.getByText(/edge\.yaml:2.*nonsense/).waitFor();
    await alert
      .getByText(/edge\.yaml:3.*method/)
      .first()
      .waitFor();
    expect(await page.getByRole('button', { name: 'Apply', exact: true }).isDisabled()).to.equal(true);
    await expectAccessible(page);
    await text.fill('stack: other\ndomains: [{host: other.test}]\n');
    await alert.getByText('What is in the way').waitFor();
    await page.reload();
    await alert.getByText('What is in the way').waitFor();
    await page.getByLabel('Take over objects that belong to no stack').check();
    await preview(page).getByRole('heading', { name: '0 new, 1 changed, 0 deleted' }).waitFor();
    await close();
  });

  it('the apply page asks before it deletes what the files no longer have', async () => {
    const { page, close } = await ui.open('/ui/apply');
    await page.getByLabel('edge.yaml', { exact: true }).fill(`stack: shop\ndomains: [{host: ${HOST}}]\n`);
    await preview(page).getByText('Of the stack, but not in the folder').waitFor();
    await page.getByLabel('Delete what belongs to the stack').check();
    await preview(page).getByRole('heading', { name: '0 new, 1 changed, 1 deleted' }).waitFor();
    await page.getByRole('button', { name: 'Apply 2 changes …' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText(`GET ${HOST}/hello`).waitFor();
    await expectAccessible(page);
    await page.keyboard.press('Escape');
    expect(await answer()).to.equal('one');
    await page.getByRole('button', { name: 'Apply 2 changes …' }).click();
    await dialog.getByRole('button', { name: 'Apply, and delete one object' }).click();
    await page.getByText('Everything is as the files say.').waitFor();
    expect((await stack.gateway.get('/hello', { headers: { host: HOST } })).status).to.equal(404);
    await page.getByRole('button', { name: 'Roll back …' }).click();
    await dialog.getByText(/^1 new, 1 changed, 0 deleted/).waitFor();
    await dialog.getByRole('button', { name: 'Roll back' }).click();
    await page.getByText('It is as it was before.').waitFor({ timeout: 60_000 });
    expect(await answer()).to.equal('one');
    await close();
  });

  it('the apply page says that its plan is outdated, and shows the new one', async () => {
    const { page, close } = await ui.open('/ui/apply');
    await choose(page, folder('three'));
    await preview(page).getByRole('heading', { name: '0 new, 2 changed, 0 deleted' }).waitFor();
    const [domain] = ((await must(stack.api.get('/api/domains'))) as { id: string; host: string }[]).filter(
      ({ host }) => host === HOST,
    );
    await must(stack.api.put(`/api/domains/${domain?.id}/variables`, { CURRENCY: 'three' }));
    await page.getByRole('button', { name: 'Apply 2 changes' }).click();
    await page.getByRole('status').getByText('plan_changed').waitFor();
    await preview(page).getByRole('heading', { name: '0 new, 1 changed, 0 deleted' }).waitFor();
    expect(await answer()).to.equal('one');
    await close();
  });

  it('the apply page shows a conflict that is newer than its plan, and disables Apply', async () => {
    const { page, close } = await ui.open('/ui/apply');
    await page.getByLabel('edge.yaml', { exact: true }).fill('stack: late\ndomains: [{host: late.test}]\n');
    await preview(page).getByRole('heading', { name: '1 new, 0 changed, 0 deleted' }).waitFor();
    await must(stack.api.post('/api/domains', { name: 'Late', host: 'late.test' }));
    await page.getByRole('button', { name: 'Apply 1 change' }).click();
    await page.getByRole('status').getByText('apply_conflict').waitFor();
    await preview(page).getByText('What is in the way').waitFor();
    expect(await page.getByRole('button', { name: 'Apply', exact: true }).isDisabled()).to.equal(true);
    await close();
  });

  it('the apply page shows the typed text again when a ZIP is removed', async () => {
    const { page, close } = await ui.open('/ui/apply');
    const text = page.getByLabel('edge.yaml', { exact: true });
    await text.fill('stack: typed\ndomains: [{host: typed.test}]\n');
    await preview(page).getByRole('heading', { name: '1 new, 0 changed, 0 deleted' }).waitFor();
    await choose(page, folder('one'));
    await preview(page).getByRole('heading', { name: '0 new, 1 changed, 0 deleted' }).waitFor();
    await page.getByRole('button', { name: 'Remove' }).click();
    expect(await text.inputValue()).to.include('typed.test');
    await preview(page).getByRole('heading', { name: '1 new, 0 changed, 0 deleted' }).waitFor();
    await close();
  });

  it('the export page shows what has changed since it was last open', async () => {
    const domains = (await must(stack.api.get('/api/domains'))) as { id: string; host: string }[];
    const shop = domains.find(({ host }) => host === HOST);
    const set = (CURRENCY: string) => must(stack.api.put(`/api/domains/${shop?.id}/variables`, { CURRENCY }));
    await set('before');
    const show = () => page.getByRole('button', { name: 'Show them' }).click();
    const { page, close } = await ui.open(`/ui/export?domain=${HOST}`);
    await show();
    await page.getByText('CURRENCY: before').waitFor();
    await page.getByRole('link', { name: 'Services', exact: true }).click();
    await page.getByRole('heading', { name: 'Services', exact: true }).waitFor();
    await set('after');
    await page.goBack();
    await show();
    await page.getByText('CURRENCY: after').waitFor();
    await close();
  });

  it('the export page says the size of a binary file instead of showing it, and has the browser save it', async () => {
    const host = 'binary.test';
    const content = Buffer.from([0x00, 0xff, 0x10]);
    const files = { 'logo.bin': { base64: content.toString('base64') } };
    await must(stack.api.post('/api/domains', { name: 'Binary', host }));
    const endpoint = { name: 'logo', path: '/logo', method: 'GET', domain: host, code: code('logo'), files };
    await must(stack.api.post('/api/endpoints', endpoint));
    const { page, close } = await ui.open(`/ui/export?domain=${host}`);
    await page.getByRole('button', { name: 'Show them' }).click();
    await page.getByText('binary, 3 bytes').waitFor();
    await expectAccessible(page);
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download logo.bin' }).click();
    expect(await readFile(await (await download).path())).to.deep.equal(content);
    await close();
  });

  it('the export page shows everything, a domain or a stack, and saves a ZIP or an OpenAPI document', async () => {
    const { page, close } = await ui.open('/ui/export');
    await page.getByRole('button', { name: 'Show them' }).click();
    await page.getByText('host: other.test').waitFor();
    await expectAccessible(page);
    await page.getByLabel('What').selectOption({ label: HOST });
    await page.waitForURL(/\/ui\/export\?domain=shop\.test$/);
    const saved = async (name: string) => {
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name }).click(),
      ]);
      return { name: download.suggestedFilename(), content: await readFile(await download.path()) };
    };
    const zip = await saved('Download a ZIP');
    expect(zip.name).to.equal('shop.test.zip');
    const files = unzipSync(zip.content);
    expect(Object.keys(files)).to.have.members(['edge.yaml', 'shop.test/GET_hello.rs']);
    const document = await saved(`Download ${HOST}`);
    expect(document.name).to.equal('shop.test.openapi.json');
    expect(JSON.parse(document.content.toString())).to.have.property('openapi');

    await page.getByLabel('What').selectOption({ label: 'A stack …' });
    await page.getByLabel('Stack').fill('nothing');
    await page.getByRole('button', { name: 'Download a ZIP' }).click();
    await page
      .getByRole('status')
      .getByText(/not_found/)
      .waitFor();
    await page.getByLabel('Stack').fill('shop');
    await page.getByRole('button', { name: 'Show them' }).click();
    await page.getByText('stack: shop').waitFor();
    expect(await page.getByText('other.test').count()).to.equal(1);
    await page.reload();
    await page.getByRole('button', { name: 'Show them' }).waitFor();
    await page.setViewportSize({ width: 360, height: 740 });
    await expectFits(page);

    // What was exported changes nothing when it is applied.
    await page.goto('/ui/apply');
    await choose(page, zip.content);
    await preview(page).getByRole('heading', { name: 'Nothing would change' }).waitFor();
    await close();
  });

  it('the apply page and the export page show hostile names as text', async () => {
    const { page, close } = await ui.open('/ui/apply');
    const domain = { host: 'hostile.test', name: HOSTILE, description: HOSTILE };
    await page
      .getByLabel('edge.yaml', { exact: true })
      .fill(JSON.stringify({ stack: 'h', domains: [domain] }));
    await preview(page).getByText('hostile.test').click();
    await preview(page).getByRole('cell', { name: HOSTILE }).first().waitFor();
    await expectUnharmed(page);
    await page.getByRole('button', { name: 'Apply 1 change' }).click();
    await page.getByText('Everything is as the files say.').waitFor();
    await page.goto('/ui/export');
    await page.getByRole('button', { name: 'Show them' }).click();
    await page.getByText(HOSTILE.slice(0, 12)).first().waitFor();
    await expectUnharmed(page);
    await close();
  });

  it('the apply page and the export page offer a viewer nothing that makes changes', async () => {
    const user = (email: string, role: string) => ({ email, name: role, password: PASSWORD, role });
    await must(stack.api.post('/api/users', user(ADMIN, 'admin')));
    const admin = { headers: await signIn(stack.api, ADMIN) };
    await must(stack.api.post('/api/users', user('eve@example.test', 'viewer'), admin));
    const [name = '', value = ''] = (await signIn(stack.api, 'eve@example.test'))['cookie']?.split('=') ?? [];
    const { page, context, close } = await ui.open('about:blank');
    await context.addCookies([{ name, value, url: stack.apiUrl }]);
    await page.goto('/ui/apply');
    await page.getByRole('link', { name: 'shop', exact: true }).first().click();
    await page.getByRole('heading', { name: 'The plan' }).waitFor();
    expect(await page.getByRole('button', { name: 'Roll back …' }).count()).to.equal(0);
    await page.goBack();
    await page.getByRole('heading', { name: 'What was applied' }).waitFor();
    expect(await page.getByRole('button', { name: /^Apply/ }).count()).to.equal(0);
    await page.goto('/ui/export');
    await page.getByRole('button', { name: 'Show them' }).click();
    await page.getByText('host: other.test').waitFor();
    expect(await page.getByRole('link', { name: 'apply', exact: true }).count()).to.equal(0);
    await close();
  });
});
