import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { freePort } from '../../support/ports.js';
import { must, type Stack, startStack } from '../../support/processes.js';
import { expectAccessible, expectUnharmed, HOSTILE, openBrowser, type Ui } from '../../support/ui.js';

interface ServiceView {
  readonly id: string;
  readonly config: Readonly<Record<string, unknown>>;
}

describe('UI: services', () => {
  let stack: Stack;
  let ui: Ui;
  const show = async (id: string) => (await must(stack.api.get(`/api/services/${id}`))) as ServiceView;
  const create = async (body: object) => (await must(stack.api.post('/api/services', body))) as ServiceView;

  before(async () => {
    stack = await startStack({ processes: ['web', 'actor-host'] });
    ui = await openBrowser(stack.apiUrl);
  });
  after(async () => {
    await ui?.close();
    await stack?.close();
  });

  it('the services page sets secrets of the installation, and deletes those that no service uses', async () => {
    const { page, close } = await ui.open('/ui/services');
    const secrets = page.getByRole('region', { name: 'Secrets of the installation' });
    const dialog = page.getByRole('dialog');
    await secrets.getByText('There are none.').waitFor();
    await secrets.getByRole('button', { name: 'Add a secret' }).click();
    await dialog.getByLabel('Name').fill('not a name');
    await dialog.getByLabel('Value', { exact: true }).fill('hidden');
    await dialog.getByRole('button', { name: 'Add' }).click();
    await dialog.locator('.problem').first().waitFor();
    await dialog.getByLabel('Name').fill('CACHE_PASSWORD');
    await expectAccessible(page);
    await dialog.getByRole('button', { name: 'Add' }).click();
    await secrets.getByText('CACHE_PASSWORD').waitFor();
    const config = { host: '127.0.0.1', port: 1, password: { secret: 'CACHE_PASSWORD' } };
    const { id } = await create({ name: 'with a secret', service_type: 'redis', config });
    const remove = async () => {
      await secrets.getByRole('button', { name: 'Delete CACHE_PASSWORD' }).click();
      await dialog.getByRole('button', { name: 'Delete' }).click();
    };
    await remove();
    await dialog.getByRole('alert').getByText('with a secret').waitFor();
    await page.keyboard.press('Escape');
    await must(stack.api.delete(`/api/services/${id}`));
    await remove();
    await secrets.getByText('There are none.').waitFor();
    await close();
  });

  it('the services page makes a service by a form of its type, and tests, activates and deletes it', async () => {
    const { page, close } = await ui.open('/ui/services');
    await page.getByText('There are no services yet').waitFor();
    await page.getByRole('button', { name: 'New service' }).first().click();
    // What is of all types stays with another one.
    await page.getByLabel('Name', { exact: true }).fill('pets');
    await page.getByLabel('Type').selectOption('sqlite');
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).to.equal('pets');
    await page.getByLabel('Path').fill('pets.db');
    await page.getByText('More settings').click();
    await page.getByLabel('Max size MB').fill('16');
    await page.getByRole('button', { name: 'Create the service' }).click();
    await page.getByRole('heading', { name: 'pets', level: 1 }).waitFor();
    const id = page.url().split('/').at(-1) ?? '';
    expect((await show(id)).config).to.include({ max_size_mb: 16, create_if_missing: true });

    await page.getByRole('button', { name: 'Test' }).click();
    await page.getByText(/^Connected to SQLite/).waitFor();
    await page.getByText(/\d ms/).first().waitFor();
    await page.getByRole('button', { name: 'Activate' }).click();
    await page.getByText('connected', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Deactivate' }).click();
    await page.getByText('inactive', { exact: true }).waitFor();

    // The last test is known in the list, after a reload too.
    await page.goto('/ui/services');
    await page.getByRole('row', { name: /pets/ }).getByText(/ms/).waitFor();
    await page.getByRole('link', { name: 'pets' }).click();
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByText('No endpoint uses it').waitFor();
    await page.getByRole('button', { name: 'Delete the service' }).click();
    await page.getByText('There are no services yet').waitFor();
    await close();
  });

  it('the form of a service says what is wrong at its field, and a failed test says why', async () => {
    const port = await freePort();
    const { page, close } = await ui.open('/ui/services?new=http');
    await page.getByLabel('Name', { exact: true }).fill('bills');
    await page.getByLabel('Base URL').fill('ftp://nowhere');
    await page.getByRole('button', { name: 'Create the service' }).click();
    const field = page.locator('.field', { has: page.getByLabel('Base URL') });
    await field.getByText('must be a URL that begins with https:// or http://').waitFor();
    expect(await page.getByText('must be a URL that begins').count()).to.equal(1);
    expect(await page.getByLabel('Base URL').getAttribute('aria-invalid')).to.equal('true');
    expect(await page.evaluate("document.activeElement.getAttribute('aria-invalid')")).to.equal('true');

    // What has been typed is there after a reload.
    await page.getByLabel('Base URL').fill(`http://127.0.0.1:${port}`);
    await eventually(async () =>
      expect(await page.evaluate('JSON.stringify({ ...sessionStorage })')).to.include('http://127'),
    );
    await page.reload();
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).to.equal('bills');
    await page.getByText('More settings').click();
    await page.getByLabel(/Allow private addresses/).check();
    await page.getByRole('button', { name: 'Create the service' }).click();
    await page.getByRole('button', { name: 'Test' }).click();
    await page.getByText(/The test failed .*refused/).waitFor();
    await page.getByRole('link', { name: 'Change the settings' }).click();
    await page.getByLabel('Base URL').waitFor();
    await expectAccessible(page);
    await close();
  });

  it('the settings of a service keep a password that is left empty, and never show it', async () => {
    const config = { host: 'db.example', database: 'a', username: 'ada', password: 'hunter2-hunter2' };
    const { id } = await create({ name: 'orders', service_type: 'postgres', config });
    const { page, close } = await ui.open(`/ui/services/${id}`);
    await page.getByText('stored, and not shown').waitFor();
    expect(await page.content()).not.to.include('hunter2');
    await page.getByRole('link', { name: 'Settings' }).click();
    await page.getByLabel('Database').fill('b');
    expect(await page.content()).not.to.include('hunter2');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The service is saved.').waitFor();
    expect((await show(id)).config).to.include({ database: 'b', password: 'hunter2-hunter2' });

    await page.getByLabel('Password', { exact: true }).fill('another-one');
    await page.getByText('More settings').click();
    await page.getByLabel('SSL mode').selectOption('require');
    await page.getByRole('button', { name: 'Save' }).click();
    await eventually(async () =>
      expect((await show(id)).config).to.include({ password: 'another-one', ssl_mode: 'require' }),
    );

    // One of the installation, by its name.
    await must(stack.api.put('/api/secrets/DB_PASSWORD', { value: 'of the installation' }));
    await page.reload();
    await page.getByLabel('Password: how').selectOption('secret');
    await page.getByLabel('Password', { exact: true }).selectOption('DB_PASSWORD');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The service is saved.').waitFor();
    expect((await show(id)).config['password']).to.deep.equal({ secret: 'DB_PASSWORD' });
    await page.goto(`/ui/services/${id}`);
    await page.getByText('the secret DB_PASSWORD').waitFor();
    await expectAccessible(page);
    await close();
  });

  it('the page of a service shows which endpoints use it, and what is deleted with it', async () => {
    const body = { name: HOSTILE.slice(0, 120), service_type: 'sqlite', config: { path: HOSTILE } };
    const { id } = await create(body);
    const endpoint = (await must(
      stack.api.post('/api/endpoints', {
        name: HOSTILE.slice(0, 120),
        path: '/pets',
        method: 'GET',
        domain: '*',
      }),
    )) as { id: string };
    await must(stack.api.post(`/api/endpoints/${endpoint.id}/services`, { service_id: id, pool_id: 'db' }));
    const { page, close } = await ui.open(`/ui/services/${id}`);
    const link = page.getByRole('link', { name: '/pets' });
    await link.waitFor();
    expect(await link.getAttribute('href')).to.equal(`/ui/endpoints/${endpoint.id}`);
    const who = await page.getByRole('link', { name: 'Who changed this?' }).getAttribute('href');
    expect(who).to.equal(`/ui/access/audit?object_kind=service&object_id=${id}&outcome=changed`);
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByText('One binding goes with it').waitFor();
    await expectAccessible(page);
    await page.keyboard.press('Escape');
    await page.getByText('One binding goes with it').waitFor({ state: 'detached' });
    await page.goto('/ui/services');
    await page.getByRole('row').nth(1).waitFor();
    await expectAccessible(page);
    await expectUnharmed(page);
    await close();
  });
});
