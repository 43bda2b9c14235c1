/** The tree of endpoints in the web UI: finding, making, renaming and deleting, also among 10,000. */
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { expectData } from '../../support/expect.js';
import { must, type Stack, startStack } from '../../support/processes.js';
import { expectAccessible, expectFits, openBrowser, type Ui } from '../../support/ui.js';

const HOSTILE = `<img src=x onerror="document.title='broken'"><b>bold</b> \u202egnp.exe & 'quotes'`;

describe('endpoints in the web UI', function () {
  this.timeout(180_000);
  let stack: Stack;
  let ui: Ui;
  before(async () => {
    stack = await startStack({ processes: ['web', 'gateway'] });
    ui = await openBrowser(stack.apiUrl);
  });
  after(async () => {
    await ui?.close();
    await stack?.close();
  });

  const create = async (path: string, body: object) =>
    expectData(await stack.api.post(path, body), 201) as { readonly id: string };

  it('the endpoints page says that there are no endpoints yet', async () => {
    const { page, close } = await ui.open('/ui/endpoints');
    await page.getByRole('heading', { name: 'There are no endpoints yet' }).waitFor();
    await expectAccessible(page);
    await close();
  });

  it('the endpoints page makes a domain, a collection in it, and an endpoint in that', async () => {
    const { page, close } = await ui.open('/ui/endpoints');
    const newDomain = page.getByRole('button', { name: 'New domain' });
    // At its field, without the name that the API has for it; also of what is too long for a name.
    for (const host of ['a'.repeat(300), 'no host']) {
      await newDomain.click();
      await page.getByLabel('Host').fill(host);
      await page.getByRole('button', { name: 'Create' }).click();
      await page.locator('.field').filter({ hasText: 'Host' }).locator('.problem').waitFor();
      await page.getByRole('button', { name: 'Cancel' }).click();
    }
    await newDomain.click();
    await expectAccessible(page);
    await page.getByLabel('Host').fill('api.example.com');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('heading', { name: 'api.example.com' }).waitFor();

    await page.getByRole('button', { name: 'What to do with the domain api.example.com' }).click();
    await page.getByRole('menuitem', { name: 'New collection' }).click();
    await page.getByLabel('Name').fill('shop');
    await page.getByLabel('Base path').fill('/shop');
    await expectAccessible(page);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'shop' }).waitFor();

    await page.getByRole('button', { name: 'What to do with the collection shop' }).click();
    await page.getByRole('menuitem', { name: 'New endpoint' }).press('Enter');
    await page.getByLabel('Path').fill('/pets/{id}');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.waitForURL(/\/ui\/endpoints\/[0-9a-f-]{36}$/);
    const [made] = expectData(await stack.api.get('/api/overview/endpoints')) as object[];
    expect(made).to.include({
      ...{ method: 'GET', route: '/shop/pets/{id}', domain: 'api.example.com', collection: 'shop' },
      ...{
        name: '/pets/{id}',
        status: 'created',
        running: false,
        asleep: false,
        requests: 0,
        errors: 0,
        enabled: true,
      },
    });
    await page.goBack();
    await page.getByRole('link', { name: '/shop/pets/{id}' }).waitFor();
    await close();
  });

  it('the endpoints page renames a collection, and deletes a domain with all that is in it', async () => {
    const { page, close } = await ui.open('/ui/endpoints');
    await page.getByRole('button', { name: 'What to do with the collection shop' }).click();
    await page.getByRole('menuitem', { name: 'Settings' }).click();
    await page.getByLabel('Name').fill('store');
    await page.getByLabel('Base path').fill('no path');
    await page.getByRole('button', { name: 'Save' }).click();
    await page
      .getByText(/base path|base_path|begin/i)
      .first()
      .waitFor();
    await page.getByLabel('Base path').fill('');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('heading', { name: 'Settings of store' }).waitFor();
    await page.getByRole('link', { name: 'Endpoints' }).first().click();
    await page.getByRole('heading', { name: 'store' }).waitFor();
    const [collection] = expectData(await stack.api.get('/api/collections')) as object[];
    expect(collection).to.include({ name: 'store', base_path: null });

    await page.getByRole('button', { name: 'What to do with the domain api.example.com' }).click();
    await page.getByRole('menuitem', { name: 'Delete' }).click();
    await page.getByText(/^Deleted with it: 1 collection and \d+ endpoints?, with their versions/).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'What to do with the domain api.example.com' }).click();
    await page.getByRole('menuitem', { name: 'Delete' }).click();
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('heading', { name: 'There are no endpoints yet' }).waitFor();
    expect(expectData(await stack.api.get('/api/collections'))).to.deep.equal([]);
    await close();
  });

  it('the page of a domain makes a key for callers, which it shows once, and revokes it', async () => {
    const domain = await create('/api/domains', { name: 'Keys', host: 'keys.example.com' });
    const { page, close } = await ui.open(`/ui/domains/${domain.id}`);
    await page.getByRole('link', { name: 'Keys of callers' }).click();
    await page.getByText('There are none').waitFor();
    await page.getByRole('button', { name: 'New key' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('Shop on iOS');
    // What is typed is not lost unasked.
    await page.keyboard.press('Escape');
    await dialog.getByRole('button', { name: 'Go on typing' }).click();
    await expectAccessible(page);
    await dialog.getByRole('button', { name: 'Make the key' }).click();
    const key = await dialog.getByLabel('Key', { exact: true }).inputValue();
    expect(key).to.match(/^egk_/);
    await dialog.getByRole('button', { name: 'I have copied it' }).click();
    const row = page.getByRole('row', { name: /Shop on iOS/ });
    await row.getByText(key.slice(0, 10)).waitFor();
    await expectAccessible(page);
    await row.getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('button', { name: 'Revoke the key' }).click();
    await page.getByText('There are none').waitFor();
    expect(expectData(await stack.api.get(`/api/domains/${domain.id}/keys`))).to.deep.equal([]);
    await must(stack.api.delete(`/api/domains/${domain.id}`));
    await close();
  });

  it('the pages of a domain and a collection set variables, secrets and policies, each at its address', async () => {
    const domain = await create('/api/domains', { name: 'Set', host: 'set.example.com' });
    const collection = await create('/api/collections', { domain_id: domain.id, name: 'set' });
    const { page, close } = await ui.open('/ui/endpoints');
    for (const [kind, name, id] of [
      ['domains', 'set.example.com', domain.id],
      ['collections', 'set', collection.id],
    ] as const) {
      await page.getByRole('button', { name: new RegExp(`^What to do with the \\w+ ${name}$`) }).click();
      await page.getByRole('menuitem', { name: 'Settings' }).click();
      await page.waitForURL(`**/ui/${kind}/${id}`);
      await page.getByRole('link', { name: 'Variables and secrets' }).click();
      await page.waitForURL(`**/ui/${kind}/${id}/variables`);
      await page.getByRole('button', { name: 'Add a variable' }).click();
      await page.getByLabel('Name of the new variable').fill('REGION');
      await page.getByLabel('Value of REGION').fill('north');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText('Saved', { exact: true }).first().waitFor();
      await page.getByRole('button', { name: 'Add a secret' }).click();
      await page.getByLabel('Name', { exact: true }).fill('KEY');
      await page.getByLabel('Value', { exact: true }).fill('not to be read');
      await page.getByRole('button', { name: 'Add', exact: true }).click();
      await page.getByRole('button', { name: 'Replace KEY' }).waitFor();
      await expectAccessible(page);
      expect(expectData(await stack.api.get(`/api/${kind}/${id}/variables`))).to.deep.equal({
        REGION: 'north',
      });

      await page.getByRole('link', { name: 'Policies' }).click();
      await page.waitForURL(`**/ui/${kind}/${id}/policies`);
      await page.getByRole('button', { name: 'Edit Deadline' }).click();
      await page.getByLabel('Here').selectOption({ label: 'Set' });
      await page.getByLabel('Milliseconds').fill('1500');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText('Set here').waitFor();
      await page.reload();
      await page.getByText('Set here').waitFor();
      const { policies } = expectData<{ policies: object }>(await stack.api.get(`/api/${kind}/${id}`));
      expect(policies).to.deep.equal({ timeout: 1500 });
      await page.setViewportSize({ width: 360, height: 740 });
      await expectFits(page);
      await page.setViewportSize({ width: 1280, height: 800 });
      await page.getByRole('link', { name: 'Endpoints' }).first().click();
    }
    await stack.api.delete(`/api/domains/${domain.id}`);
    await close();
  });

  it('the endpoints page shows changes of others at once, and has its search in its address', async () => {
    const { page, close } = await ui.open('/ui/endpoints?search=GET api');
    await page.getByText('No endpoint is like this').waitFor();
    await create('/api/domains', { name: 'A', host: 'api.example.com' });
    const body = { name: 'pets', path: '/pets', method: 'GET', domain: 'api.example.com' };
    const { id } = await create('/api/endpoints', body);
    await create('/api/endpoints', { ...body, method: 'POST', name: 'add' });
    await page.getByRole('link', { name: '/pets' }).waitFor();
    expect(await page.getByRole('link', { name: '/pets' }).count()).to.equal(1);
    await page.getByRole('searchbox').fill('/pets');
    await page.getByRole('link', { name: 'POST /pets' }).waitFor();
    expect(new URL(page.url()).searchParams.get('search')).to.equal('/pets');
    await page.reload();
    await page.getByRole('link', { name: 'POST /pets' }).waitFor();
    await stack.api.delete(`/api/endpoints/${id}`);
    await page.getByRole('link', { name: 'GET /pets' }).waitFor({ state: 'detached' });
    await close();
  });

  it('the palette leads to endpoints, pages, domains and commands by the keyboard', async () => {
    const { page, close } = await ui.open('/ui');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Search pages, endpoints and commands' }).waitFor();
    await page.keyboard.type('POST api.example.com/pe');
    await page.getByRole('option', { name: 'POST api.example.com/pets' }).waitFor();
    await expectAccessible(page);
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/ui\/endpoints\/[0-9a-f-]{36}$/);
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Search pages, endpoints and commands' }).waitFor();
    await page.keyboard.type('databases');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/ui\/services$/);
    const type = async (text: string) => {
      await page.keyboard.press('Control+k');
      await page.getByRole('combobox', { name: 'Search pages, endpoints and commands' }).waitFor();
      await page.keyboard.type(text);
    };
    await type('api.example.com');
    await page.getByRole('option', { name: 'api.example.com Domain', exact: true }).click();
    await page.waitForURL(/\/ui\/domains\/[0-9a-f-]{36}$/);
    await type('dark colours');
    await page.keyboard.press('Enter');
    await page.locator('html[data-theme="dark"]').waitFor();
    await type('new endpoint');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'New endpoint' }).waitFor();
    await close();
  });

  it('the endpoints page shows hostile names as text', async () => {
    const domain = await create('/api/domains', { name: HOSTILE, host: 'hostile.example.com' });
    const collection = await create('/api/collections', { domain_id: domain.id, name: HOSTILE });
    const body = { name: HOSTILE, path: '/x', method: 'GET', domain: 'hostile.example.com' };
    await create('/api/endpoints', { ...body, collection_id: collection.id });
    const { page, close } = await ui.open('/ui/endpoints?search=hostile');
    await page.getByRole('link', { name: '/x' }).waitFor();
    const text = await page.locator('main').innerText();
    expect(text.split('<b>bold</b>')).to.have.length(4);
    expect(await page.locator('main img, main b').count()).to.equal(0);
    expect(await page.title()).to.equal('Endpoints · Edge Gateway');
    await expectAccessible(page);
    await page.setViewportSize({ width: 360, height: 740 });
    await expectFits(page);
    await close();
  });

  it('the endpoints page says that the connection is lost, and catches up when it is back', async () => {
    const { page, close } = await ui.open('/ui/endpoints?search=later');
    await page.getByText('No endpoint is like this').waitFor();
    await stack.processes.get('web')?.end('SIGKILL');
    await page.getByText('The connection to the gateway is lost').waitFor();
    await stack.start('web');
    await create('/api/endpoints', { name: 'later', path: '/later', method: 'GET', domain: '*' });
    await page.getByText('The connection to the gateway is lost').waitFor({ state: 'detached' });
    await page.getByRole('link', { name: '/later' }).waitFor();
    await close();
  });

  it('the endpoints page searches and scrolls among 10,000 endpoints', async () => {
    const { page, close } = await ui.open('/ui/endpoints');
    const endpoints = Array.from({ length: 10_000 }, (_, index) => ({
      ...{ name: `many ${index}`, path: `/many/${String(index).padStart(5, '0')}`, method: 'GET' as const },
    }));
    await importAll(endpoints.slice(0, 5_000));
    await importAll(endpoints.slice(5_000));
    await page.goto('/ui/endpoints?search=many');
    await page.getByRole('link', { name: '/many/00000' }).waitFor();
    expect(await page.getByRole('listitem').count()).to.be.below(100);
    // By turns of the wheel, to the end.
    await eventually(async () => {
      await page.mouse.move(700, 500);
      await page.mouse.wheel(0, 60_000);
      await page.getByRole('link', { name: '/many/09999' }).waitFor({ timeout: 200 });
    });
    expect(await page.getByRole('listitem').count()).to.be.below(100);
    await page.getByRole('searchbox').fill('many/04711');
    await page.getByRole('link', { name: '/many/04711' }).waitFor();
    await close();
  });

  /** By a document, which is one request. */
  async function importAll(endpoints: readonly { path: string; name: string }[]): Promise<void> {
    const paths = Object.fromEntries(
      endpoints.map(({ path, name }) => [path, { get: { operationId: name, responses: {} } }]),
    );
    const spec = JSON.stringify({ openapi: '3.1.0', info: { title: 'Many', version: '1' }, paths });
    expectData(
      await stack.api.post('/api/import/openapi', {
        spec,
        domain: 'many.example.com',
        create_collection: false,
      }),
    );
  }
});
