/** The settings of an endpoint in the web UI: each part is a form, with the errors of the API at their fields. */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { expectData } from '../../support/expect.js';
import { type Stack, startStack } from '../../support/processes.js';
import { expectAccessible, expectFits, openBrowser, type Ui } from '../../support/ui.js';

const HOSTILE = '<b>bold</b>';
const CODE = `use rust_edge_gateway_sdk::prelude::*;

fn handle(_req: Request) -> Response {
    Response::ok(json!({"greeting": std::env::var("GREETING").ok(), "key": std::env::var("API_KEY").ok()}))
}

handler_loop!(handle);
`;

describe('the settings of an endpoint in the web UI', function () {
  this.timeout(180_000);
  let stack: Stack;
  let ui: Ui;
  let id: string;
  before(async () => {
    stack = await startStack();
    id = await stack.deploy({ name: 'greeter', path: '/greeting', code: CODE });
    ui = await openBrowser(stack.apiUrl);
  });
  after(async () => {
    await ui?.close();
    await stack?.close();
  });

  const open = (section: string) => ui.open(`/ui/endpoints/${id}/settings?section=${section}`);
  const save = async (page: Page) => {
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved', { exact: true }).first().waitFor();
    await page.getByRole('button', { name: 'Discard changes' }).waitFor({ state: 'detached' });
  };
  const stored = async () => expectData<Record<string, unknown>>(await stack.api.get(`/api/endpoints/${id}`));

  it('each part of the settings of an endpoint has its own address', async () => {
    const { page, close } = await ui.open(`/ui/endpoints/${id}/settings`);
    const settings = page.getByRole('navigation', { name: 'Settings' });
    const parts = {
      'Variables and secrets': 'In force',
      Limits: 'Limits',
      Policies: 'Policies',
      Services: 'Services',
      Schedules: 'Schedules',
      'Queued requests': 'Queued requests',
      General: 'Delete',
    };
    for (const [part, heading] of Object.entries(parts)) {
      await settings.getByRole('link', { name: part, exact: true }).click();
      await page.getByRole('heading', { name: heading, exact: true }).waitFor();
      await expectAccessible(page);
      await page.setViewportSize({ width: 360, height: 740 });
      await expectFits(page);
      await page.setViewportSize({ width: 1280, height: 800 });
    }
    expect(page.url()).to.match(/section=general$/);
    await page.goBack();
    await page.getByRole('heading', { name: 'Queued requests', exact: true }).waitFor();
    await close();
  });

  it('the settings rename an endpoint, and show an error of the API about its path at the field', async () => {
    const { page, close } = await open('general');
    await page.getByLabel('Name', { exact: true }).fill(HOSTILE);
    await save(page);
    expect(await stored()).to.include({ name: HOSTILE });
    await page.getByText(`/ ${HOSTILE}`).waitFor();
    await page.getByLabel('Path').fill('no slash');
    await page.getByRole('button', { name: 'Save' }).click();
    await page
      .getByText(/must begin with|must start with|\//)
      .first()
      .waitFor();
    await page.locator('[aria-invalid=true]').waitFor();
    expect(await page.locator('[aria-invalid=true]').inputValue()).to.equal('no slash');
    expect(await stored()).to.include({ path: '/greeting' });
    // Nothing that was typed is lost on a reload.
    await page.reload();
    await page.getByRole('button', { name: 'Discard changes' }).waitFor();
    expect(await page.getByLabel('Path').inputValue()).to.equal('no slash');
    await page.getByRole('button', { name: 'Discard changes' }).click();
    expect(await page.getByLabel('Path').inputValue()).to.equal('/greeting');
    await close();
  });

  it('the settings set and clear a limit of an endpoint, and refuse a wrong one at its field', async () => {
    const { page, close } = await open('limits');
    await page.getByLabel('Memory').fill('lots');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.locator('[aria-invalid=true]').waitFor();
    await page.getByLabel('Memory').fill('64');
    await save(page);
    expect((await stored())['limits']).to.deep.equal({ memory_mb: 64 });
    await page.getByLabel('Memory').fill('');
    await save(page);
    expect((await stored())['limits']).to.equal(null);
    await close();
  });

  it('the settings give an endpoint variables and secrets, which its handler has at once', async () => {
    const { page, close } = await open('variables');
    await page.getByRole('button', { name: 'Add a variable' }).click();
    await page.getByLabel('Name of the new variable').fill('GREETING');
    await page.getByLabel('Value of GREETING').fill('good day');
    await save(page);
    await page.getByRole('button', { name: 'Add a secret' }).click();
    const dialog = page.getByRole('dialog');
    await expectAccessible(page);
    await dialog.getByLabel('Name').fill('LD_PRELOAD');
    await dialog.getByLabel('Value', { exact: true }).fill('a-secret-value');
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await dialog.locator('[aria-invalid=true]').waitFor();
    await dialog.getByLabel('Name').fill('API_KEY');
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByRole('cell', { name: 'API_KEY' }).waitFor();
    await page.getByRole('cell', { name: 'GREETING' }).waitFor();
    expect(await page.content()).not.to.include('a-secret-value');
    // It is in force when the API has answered.
    expect((await stack.gateway.get('/greeting')).body).to.deep.equal({
      greeting: 'good day',
      key: 'a-secret-value',
    });
    await close();
  });

  it('the settings set a policy of an endpoint, with an error at its field, and clear it again', async () => {
    const { page, close } = await open('policies');
    await page.getByRole('button', { name: /^Edit .*CORS|^Edit Other origins|^Edit Cross/i }).click();
    await page.getByLabel('Here').selectOption({ label: 'Set' });
    await page.getByLabel(/^Origins/).fill('https://example.com/path');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText(/^Line 1: /).waitFor();
    await page.getByLabel(/^Origins/).fill('https://example.com');
    await save(page);
    await page.getByText('Origins: https://example.com', { exact: true }).waitFor();
    expect((await stored())['policies']).to.deep.equal({ cors: { origins: ['https://example.com'] } });
    const answer = await stack.gateway.get('/greeting', { headers: { origin: 'https://example.com' } });
    expect(answer.headers['access-control-allow-origin']).to.equal('https://example.com');
    await page.getByLabel('Here').selectOption({ label: 'Not set: what is set farther away counts' });
    await save(page);
    expect((await stored())['policies']).to.equal(null);

    // What is set is said in words.
    const rate_limit = { requests: 600, window_seconds: 60, by: 'address' };
    const policies = { rate_limit, timeout: 5_000, body_limit: 65_536, auth: { api_key: {} } };
    expectData(await stack.api.put(`/api/endpoints/${id}`, { policies }));
    for (const words of ['600 requests in 60 s by address', '5 s', '64 KiB', 'a key in X-Api-Key'])
      await page.getByText(words, { exact: true }).waitFor();
    expectData(await stack.api.put(`/api/endpoints/${id}`, { policies: null }));
    await close();
  });

  it('the settings bind a service to an endpoint, and unbind it', async () => {
    const service = { name: HOSTILE, service_type: 'sqlite', config: { path: 'settings.db' } };
    expectData(await stack.api.post('/api/services', service), 201);
    const { page, close } = await open('services');
    await page.getByLabel('Service', { exact: true }).selectOption({ label: `${HOSTILE} (sqlite)` });
    await page.getByLabel('Name in the handler').fill('orders');
    await page.getByRole('button', { name: 'Bind', exact: true }).click();
    await page.getByRole('button', { name: 'Unbind orders' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Unbind' }).click();
    await page.getByText('None is bound.').waitFor();
    await close();
  });

  it('the settings add a schedule to an endpoint, with an error at its field, and show its next run', async () => {
    const { page, close } = await open('schedules');
    await page.getByRole('button', { name: 'Add a schedule' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('When').fill('every day');
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await dialog.locator('[aria-invalid=true]').waitFor();
    await expectAccessible(page);
    await dialog.getByLabel('When').fill('0 3 * * *');
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByText(/^Next run/).waitFor();
    await page.getByRole('button', { name: 'Delete 0 3 * * *' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByText('There are none.').waitFor();
    await close();
  });

  it('the settings delete an endpoint after they have said what is deleted with it', async () => {
    const { page, close } = await open('general');
    await page.getByRole('button', { name: 'Delete this endpoint' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('1 secret').waitFor();
    await dialog.getByText('1 variable').waitFor();
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await page.waitForURL('**/ui/endpoints');
    expect((await stack.api.get(`/api/endpoints/${id}`)).status).to.equal(404);
    await close();
  });
});
