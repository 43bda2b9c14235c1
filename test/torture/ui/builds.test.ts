import { expect } from 'chai';
import { slowToCompile } from '../../support/handler-sources.js';
import { must, type Stack, startStack } from '../../support/processes.js';
import { expectAccessible, openBrowser, type Ui } from '../../support/ui.js';

const BROKEN = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(_: Request) -> Response { Response::hacked("<img src=x onerror=alert(1)>") }
handler_loop!(handle);
`;

/** In the life of this test it does not end. */
const ENDLESS = slowToCompile(1_000_000_000_000, 0);

describe('UI: builds and queues', () => {
  let stack: Stack;
  let ui: Ui;
  let id = '';

  before(async () => {
    stack = await startStack({ processes: ['web', 'worker', 'gateway'] });
    ui = await openBrowser(stack.apiUrl);
  });
  after(async () => {
    await ui?.close();
    await stack?.close();
  });

  it('the builds page shows a new build by itself, with its errors and a link to the code', async () => {
    const { page, close } = await ui.open('/ui/builds');
    await page.getByText('Nothing has been compiled yet').waitFor();
    await expectAccessible(page);
    const fields = { name: 'broken one', path: '/broken', method: 'GET', domain: '*', code: BROKEN };
    id = ((await must(stack.api.post('/api/endpoints', fields))) as { id: string }).id;
    expect((await stack.api.post(`/api/endpoints/${id}/compile`)).status).to.equal(422);
    const row = page.getByRole('row', { name: /broken one/ });
    await row.getByText('failed', { exact: true }).waitFor();
    await expectAccessible(page);
    await row.getByRole('link').first().click();
    await page.getByRole('heading', { name: 'What the compiler says' }).waitFor();
    await page
      .getByText(/hacked/)
      .first()
      .waitFor();
    await page.getByText(/Compiling \d/).waitFor();
    await page.getByRole('link', { name: /^line 3/ }).waitFor();
    await expectAccessible(page);
    expect(await page.locator('main img').count()).to.equal(0);
    const who = await page.getByRole('link', { name: 'Who asked for it?' }).getAttribute('href');
    await page.getByRole('link', { name: 'Mend the code' }).click();
    await page.waitForURL(`**/ui/endpoints/${id}/code`);
    await page.goto(who ?? '');
    await page.getByText(/compiled the endpoint|compile the endpoint/).waitFor();
    await close();
  });

  it('the builds page has its filters in its address', async () => {
    const { page, close } = await ui.open('/ui/builds');
    await page.getByRole('row', { name: /broken one/ }).waitFor();
    await page.getByLabel('State').selectOption('succeeded');
    await page.getByText('No build is like this').waitFor();
    expect(new URL(page.url()).search).to.equal('?state=succeeded');
    await page.goBack();
    await page.getByRole('row', { name: /broken one/ }).waitFor();
    await page.getByRole('searchbox').fill('no such error');
    await page.getByText('No build is like this').waitFor();
    await page.getByRole('searchbox').fill('hacked');
    await page.getByRole('row', { name: /broken one/ }).waitFor();
    await page.reload();
    expect(await page.getByRole('searchbox').inputValue()).to.equal('hacked');
    await close();
  });

  it('a running build is on the overview and the builds page, and can be cancelled', async () => {
    const fields = { name: 'endless one', path: '/endless', method: 'GET', domain: '*', code: ENDLESS };
    const { id: endpoint } = (await must(stack.api.post('/api/endpoints', fields))) as { id: string };
    // Until it is deployed, it is the latest build of no endpoint.
    const deployed = stack.api.post(`/api/endpoints/${endpoint}/deploy`, {});
    const { page, close } = await ui.open('/ui');
    await page.getByRole('region', { name: 'Builds' }).getByText('endless one').waitFor();
    await page.goto('/ui/builds');
    await page
      .getByRole('row', { name: /endless one/ })
      .getByRole('link')
      .first()
      .click();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByText('build_cancelled').waitFor();
    await page.getByText('failed', { exact: true }).waitFor();
    expect(await page.getByRole('button', { name: 'Cancel' }).count()).to.equal(0);
    await page.getByRole('link', { name: 'Mend the code' }).waitFor();
    expect((await deployed).body).to.deep.include({ code: 'build_cancelled' });
    await expectAccessible(page);
    await close();
  });

  it('the page of an object that does not exist says so, and links to the list', async () => {
    const { page, close } = await ui.open('/ui');
    const pages = [
      ...['builds build builds', 'services service services', 'imports import import', 'applies apply apply'],
      ...['endpoints endpoint endpoints', 'domains domain endpoints', 'collections collection endpoints'],
    ];
    for (const [path, kind, list] of pages.map((words) => words.split(' ')))
      for (const id of ['00000000-0000-4000-8000-000000000000', 'no-id']) {
        await page.goto(`/ui/${path}/${id}`);
        const alert = page.getByRole('alert');
        await alert.getByText(`There is no such ${kind}`).waitFor();
        expect(await alert.getByRole('link').getAttribute('href')).to.equal(`/ui/${list}`);
        expect(await page.getByRole('button', { name: 'Try again' }).count()).to.equal(0);
      }
    await expectAccessible(page);
    await close();
  });

  it('the queue dashboard has the colours of its page', async () => {
    const { page, close } = await ui.open('/ui/queues', { colorScheme: 'light' });
    const isDark = async (wanted: boolean, within = page.frameLocator('iframe[title="Queue dashboard"]')) => {
      const body = within.locator(`body${wanted ? '.dark-mode' : ':not(.dark-mode)'}`);
      await body.getByText('compile', { exact: true }).first().waitFor();
    };
    await isDark(false);
    // It follows the choice of this page, not the system, and does so at once.
    await page.getByLabel('Colours').selectOption('dark');
    await isDark(true);
    await page.reload();
    await isDark(true);
    await page.getByLabel('Colours').selectOption('system');
    await isDark(false);
    await page.emulateMedia({ colorScheme: 'dark' });
    await isDark(true);
    await close();
  });

  it('the queue dashboard is embedded in its page, and loads nothing from other origins', async () => {
    const { page, context, problems } = await ui.open('about:blank');
    const origins = new Set<string>();
    context.on('request', (request) => {
      const { protocol, origin } = new URL(request.url());
      if (protocol.startsWith('http')) origins.add(origin);
    });
    await page.goto('/ui/queues');
    const dashboard = page.frameLocator('iframe[title="Queue dashboard"]');
    await dashboard.getByText('compile', { exact: true }).first().click();
    await dashboard.getByText('broken one').first().waitFor();
    await expectAccessible(page);
    const opened = context.waitForEvent('page');
    await page.getByRole('link', { name: 'Open in a window of its own' }).click();
    const own = await opened;
    await own.waitForURL('**/queues');
    await own.getByText('compile', { exact: true }).first().waitFor();
    await own.waitForLoadState('networkidle');
    expect([...origins]).to.deep.equal([stack.apiUrl]);
    await context.close();
    expect(problems.filter((problem) => /Content Security Policy|fonts/.test(problem))).to.deep.equal([]);
  });
});
