/** Alerts: made with a secret that is shown once, changed, and deleted. */
import { expect } from 'chai';
import { expectData } from '../../support/expect.js';
import { type Stack, startStack } from '../../support/processes.js';
import { expectAccessible, expectFits, openBrowser, type Ui } from '../../support/ui.js';

describe('UI: alerts', () => {
  let stack: Stack;
  let ui: Ui;
  before(async () => {
    stack = await startStack({ processes: ['web'], env: { ALLOW_PRIVATE_URLS: 'true' } });
    ui = await openBrowser(stack.apiUrl);
  });
  after(async () => {
    await ui?.close();
    await stack?.close();
  });

  it('the alerts page makes, edits and deletes an alert', async () => {
    const endpoint = { name: 'pets', path: '/pets', method: 'GET', domain: 'shop.test' };
    const { id } = expectData<{ id: string }>(await stack.api.post('/api/endpoints', endpoint), 201);
    const { page, close } = await ui.open('/ui/alerts');
    await page.getByText('There are no alerts yet').waitFor();
    await page.getByRole('button', { name: 'New alert' }).first().click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('When').selectOption({ label: 'Too many requests fail' });
    await dialog.getByLabel('Percent of the requests').fill('20');
    await dialog.getByLabel('About').selectOption('endpoint');
    await dialog.getByLabel('Endpoint', { exact: true }).fill('GET shop.test/nothing');
    await dialog.getByLabel('Webhook').fill('ftp://127.0.0.1/hook');
    await dialog.getByRole('button', { name: 'Create' }).click();
    await dialog.locator('.problem, [role=alert]').first().waitFor();
    await dialog.getByLabel('Endpoint', { exact: true }).fill('GET shop.test/pets');
    await dialog.getByRole('button', { name: 'Create' }).click();
    // Said once, at its field.
    await dialog.locator('.problem').waitFor();
    await dialog.getByText('Nothing was saved: see the field that is marked').waitFor();
    expect(await dialog.locator('.notice.bad').count()).to.equal(0);
    await dialog.getByLabel('Webhook').fill('http://127.0.0.1:9/hook');
    await expectAccessible(page);
    await dialog.getByRole('button', { name: 'Create' }).click();
    expect(await dialog.getByLabel('Secret').inputValue()).to.match(/^whsec_/);
    await dialog.getByRole('button', { name: 'I have copied it' }).click();

    const row = page.getByRole('row', { name: /20 % of the requests of 5 min fail/ });
    expect(await row.getByRole('link').getAttribute('href')).to.equal(`/ui/endpoints/${id}`);
    await expectAccessible(page);
    await page.setViewportSize({ width: 360, height: 740 });
    await expectFits(page);
    await row.getByRole('button', { name: 'Edit' }).click();
    await dialog.getByLabel('Percent of the requests').fill('30');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('row', { name: /30 %/ }).waitFor();
    const [alert] = expectData<{ percent: number; scope: unknown }[]>(await stack.api.get('/api/alerts'));
    expect(alert).to.deep.include({ percent: 30, scope: { endpoint_id: id } });
    const changed = page.getByRole('row', { name: /30 %/ });
    await changed.getByRole('button', { name: 'Events' }).click();
    await page.getByText('It has reported nothing yet').waitFor();
    await page.keyboard.press('Escape');
    await changed.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('button', { name: 'Delete the alert' }).click();
    await page.getByText('There are no alerts yet').waitFor();
    await close();
  });

  it('saving an alert keeps what others have changed of it meanwhile', async () => {
    const alert = {
      on: 'error_rate',
      percent: 20,
      url: 'http://127.0.0.1:9/hook',
      scope: { domain: 'a.test' },
    };
    const { id } = expectData<{ id: string }>(await stack.api.post('/api/alerts', alert), 201);
    const { page, close } = await ui.open(`/ui/alerts?edit=${id}`);
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Webhook').fill('http://127.0.0.1:9/other');
    await dialog.getByLabel('Percent of the requests').fill('30');
    await dialog.getByLabel('Percent of the requests').fill('20');
    const theirs = { enabled: false, percent: 50, scope: { domain: 'b.test' } };
    expectData(await stack.api.put(`/api/alerts/${id}`, theirs));
    await page.getByText('50 % of the requests of 5 min fail').waitFor();
    expect(await dialog.getByLabel('Percent of the requests').inputValue()).to.equal('50');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(expectData(await stack.api.get(`/api/alerts/${id}`))).to.deep.include({
      ...theirs,
      url: 'http://127.0.0.1:9/other',
    });
    expectData(await stack.api.delete(`/api/alerts/${id}`));
    await close();
  });

  it('the form of an alert keeps what was typed when others delete the alert', async () => {
    const alert = { on: 'crash_loop', url: 'http://127.0.0.1:9/hook' };
    const { id } = expectData<{ id: string }>(await stack.api.post('/api/alerts', alert), 201);
    const { page, close } = await ui.open(`/ui/alerts?edit=${id}`);
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Webhook').fill('http://127.0.0.1:9/other');
    expectData(await stack.api.delete(`/api/alerts/${id}`));
    await dialog.getByText('This alert has been deleted').waitFor();
    expect(await dialog.getByLabel('Webhook').inputValue()).to.equal('http://127.0.0.1:9/other');
    expect(await dialog.getByRole('button', { name: 'Save' }).isDisabled()).to.equal(true);
    await expectAccessible(page);
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(new URL(page.url()).search).to.equal('');
    await close();
  });
});
