/** What is the same on all pages of the web UI: dialogs, menus, where a page is scrolled to, and what is typed. */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { eventually } from '../support/eventually.js';
import { must, type Stack, startStack } from '../support/processes.js';
import { expectAccessible, expectFits, openBrowser, type Ui } from '../support/ui.js';

/**
 * All that are not of one endpoint, a service, a build, an import or an apply: those are looked at where they are made.
 */
const PAGES = [
  ...['/ui', '/ui/endpoints', '/ui/services', '/ui/objects', '/ui/import', '/ui/apply', '/ui/export'],
  ...[
    '/ui/export?domain=many.test',
    '/ui/builds',
    '/ui/queues',
    '/ui/logs',
    '/ui/alerts',
    '/ui/alerts?new=alert',
  ],
  ...[
    '/ui/access/users',
    '/ui/access/tokens',
    '/ui/access/sessions',
    '/ui/access/audit',
    '/ui/access/account',
  ],
  ...['/ui/domains/DOMAIN/general', '/ui/domains/DOMAIN/variables', '/ui/domains/DOMAIN/policies'],
  ...['/ui/domains/DOMAIN/keys', '/ui/api', '/ui/api/many.test', '/ui/nothing-here'],
];

describe('UI: everywhere', function () {
  this.timeout(60_000);
  let stack: Stack;
  let ui: Ui;
  let domain = '';

  before(async () => {
    stack = await startStack({ processes: ['web'] });
    ui = await openBrowser(stack.apiUrl);
    domain = await make('/api/domains', { name: 'Many', host: 'many.test' });
    for (let at = 10; at < 60; at++)
      await make('/api/endpoints', {
        ...{ name: `number ${at}`, path: `/path${at}`, method: 'GET', domain: 'many.test' },
      });
  });
  after(async () => {
    await ui?.close();
    await stack?.close();
  });

  const make = async (path: string, body: object) =>
    ((await must(stack.api.post(path, body))) as { id: string }).id;
  const scrolled = (page: Page) => page.evaluate<number>('scrollY');
  /** The name of what has the focus. */
  const focused = (page: Page) =>
    page.evaluate<string>(
      'document.activeElement.ariaLabel ?? (document.activeElement.id || document.activeElement.textContent)',
    );
  const dialog = (page: Page) => page.getByRole('dialog');
  const palette = (page: Page) =>
    page.getByRole('combobox', { name: 'Search pages, endpoints and commands' });

  describe('a page', () => {
    it('a page opens at its top by a link, and where it was scrolled to by Back, Forward and a reload', async () => {
      const { page, close } = await ui.open('/ui/endpoints', { viewport: { width: 1000, height: 500 } });
      await page.getByRole('link', { name: '/path10' }).waitFor();
      await page.mouse.move(600, 300);
      await page.mouse.wheel(0, 900);
      await eventually(async () => expect(await scrolled(page)).to.equal(900));
      await page.getByRole('link', { name: '/path35' }).click();
      await page.getByRole('heading', { level: 1 }).getByText('/path35').waitFor();
      expect(await scrolled(page)).to.equal(0);
      await page.getByRole('link', { name: 'Settings' }).click();
      await page.getByRole('button', { name: 'Save' }).first().waitFor();
      await page.goBack();
      await page.goBack();
      await page.getByRole('link', { name: '/path35' }).waitFor();
      await eventually(async () => expect(await scrolled(page)).to.equal(900));
      await page.reload();
      await page.getByRole('link', { name: '/path35' }).waitFor();
      await eventually(async () => expect(await scrolled(page)).to.equal(900));
      await page.goForward();
      await page.getByRole('heading', { level: 1 }).getByText('/path35').waitFor();
      expect(await scrolled(page)).to.equal(0);
      await close();
    });

    it('the page of an object has nothing of what was typed for another one', async () => {
      const other = await make('/api/domains', { name: 'Other', host: 'a.test' });
      const { page, close } = await ui.open(`/ui/domains/${domain}`);
      await page.getByLabel('Name', { exact: true }).waitFor();
      // Both have been read, so neither page waits for anything.
      await page.getByRole('link', { name: 'Endpoints' }).first().click();
      await page.getByRole('button', { name: 'What to do with the domain a.test' }).click();
      await page.getByRole('menuitem', { name: 'Settings' }).click();
      await page.getByRole('heading', { name: 'Settings of a.test' }).waitFor();
      await page.getByLabel('Name', { exact: true }).fill('Typed for the other');
      await page.evaluate(`history.replaceState(null, '', '/ui/domains/${domain}')`);
      await page.getByRole('heading', { name: 'Settings of many.test' }).waitFor();
      expect(await page.getByLabel('Name', { exact: true }).inputValue()).to.equal('Many');
      await close();
      await stack.api.delete(`/api/domains/${other}`);
    });
  });

  for (const path of PAGES)
    it(`${path} passes the checks of axe, and fits at 200 % zoom and on a phone`, async () => {
      const { page, close } = await ui.open(path.replace('DOMAIN', domain), {
        viewport: { width: 1280, height: 800 },
      });
      await page.locator('main h1').waitFor();
      await page.locator('main .skeleton').first().waitFor({ state: 'detached' });
      await expectAccessible(page);
      // Half the width of a desktop has what a zoom of 200 % shows.
      for (const width of [640, 360]) {
        await page.setViewportSize({ width, height: 740 });
        await expectFits(page);
      }
      await close();
    });

  it('the menu opens on a phone, and a tap beside it or Escape closes it', async () => {
    const phone = { viewport: { width: 360, height: 740 }, hasTouch: true };
    const { page, close } = await ui.open('/ui', phone);
    const menu = page.getByRole('complementary', { name: 'Menu' });
    for (const end of [() => page.touchscreen.tap(340, 400), () => page.keyboard.press('Escape')]) {
      await page.getByRole('button', { name: 'Menu' }).tap();
      await menu.waitFor();
      await end();
      await menu.waitFor({ state: 'hidden' });
    }
    await page.getByRole('button', { name: 'Menu' }).tap();
    await expectAccessible(page);
    await menu.getByRole('link', { name: 'Endpoints' }).tap();
    await page.getByRole('heading', { name: 'Endpoints' }).waitFor();
    await menu.waitFor({ state: 'hidden' });
    await close();
  });

  describe('a dialog', () => {
    it('a dialog closes on Escape and returns the focus, to the page when the button is gone', async () => {
      const { page, close } = await ui.open('/ui/endpoints?search=path10');
      await page.getByRole('link', { name: '/path10' }).waitFor();
      await page.getByRole('button', { name: 'New endpoint' }).press('Enter');
      await dialog(page).waitFor();
      await page.keyboard.press('Escape');
      await dialog(page).waitFor({ state: 'detached' });
      await eventually(async () => expect(await focused(page)).to.equal('New endpoint'));

      const gone = await make('/api/domains', { name: 'Gone', host: 'gone.test' });
      await page.goto('/ui/endpoints');
      await page.getByRole('button', { name: 'What to do with the domain gone.test' }).press('Enter');
      await page.getByRole('menuitem', { name: 'Delete' }).press('Enter');
      await dialog(page).getByRole('button', { name: 'Delete' }).press('Enter');
      await page.getByRole('heading', { name: 'gone.test', exact: true }).waitFor({ state: 'detached' });
      await eventually(async () => expect(await focused(page)).to.equal('main'));
      expect((await stack.api.get(`/api/domains/${gone}`)).status).to.equal(404);
      await close();
    });

    it('a dialog with typed text does not close on a click beside it, and keeps it when others make changes', async () => {
      const { page, close } = await ui.open('/ui/endpoints?search=path10');
      await page.getByRole('button', { name: 'New endpoint' }).click();
      await page.mouse.click(5, 5);
      await dialog(page).waitFor({ state: 'detached' });
      await page.getByRole('button', { name: 'New endpoint' }).click();
      await page.getByLabel('Path').fill('/typed');
      await page.mouse.click(5, 5);
      await make('/api/domains', { name: 'New', host: 'new.test' });
      await dialog(page).getByRole('option', { name: 'new.test' }).waitFor({ state: 'attached' });
      expect(await page.getByLabel('Path').inputValue()).to.equal('/typed');
      await close();
    });
  });

  describe('what is typed', () => {
    it('the settings of a service keep what was typed when somebody else saves them, and update the rest', async () => {
      const config = { host: '127.0.0.1', port: 1, password: 'of the other' };
      const id = await make('/api/services', { name: 'cache', service_type: 'redis', config });
      const { page, close } = await ui.open(`/ui/services/${id}?tab=settings`);
      await page.getByLabel('Port').fill('6379');
      const secret = page.locator('input[type=password]').first();
      await secret.fill('typed, and kept nowhere');
      await must(stack.api.put(`/api/services/${id}`, { name: 'renamed meanwhile' }));
      await page.getByRole('heading', { name: 'renamed meanwhile' }).waitFor();
      expect(await page.getByLabel('Name', { exact: true }).inputValue()).to.equal('renamed meanwhile');
      expect(await page.getByLabel('Port').inputValue()).to.equal('6379');
      expect(await secret.inputValue()).to.equal('typed, and kept nowhere');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText('The service is saved.').waitFor();
      const saved = (await must(stack.api.get(`/api/services/${id}`))) as { name: string; config: object };
      expect(saved.name).to.equal('renamed meanwhile');
      expect(saved.config).to.include({ port: 6379 });
      await close();
    });
  });

  describe('Enter', () => {
    it('a menu that has just opened keeps the focus on the item that was chosen by a key', async () => {
      const { page, close } = await ui.open('/ui/endpoints?search=path10');
      await page.getByRole('link', { name: '/path10' }).waitFor();
      // It comes with what the endpoints did lately, which is read by itself.
      await page.locator('[role=menu]').first().waitFor({ state: 'attached' });
      // All in one turn of the page, as on a machine that is busy: its event that a menu is open comes after the keys.
      const at = await page.evaluate<string>(`(async () => {
        const menu = document.querySelector('[role=menu]');
        const [, second] = menu.querySelectorAll('[role=menuitem]');
        const toggled = new Promise((resolve) => menu.addEventListener('toggle', () => setTimeout(resolve)));
        menu.showPopover();
        second.focus();
        await toggled;
        return document.activeElement === second ? 'the second' : document.activeElement.textContent;
      })()`);
      expect(at).to.equal('the second');
      await close();
    });

    it('Enter in the palette waits for the results of the typed text, and opens none of an earlier text', async () => {
      const { page, close } = await ui.open('/ui');
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
      await page.keyboard.press('Control+k');
      await palette(page).fill('path11');
      await page.getByRole('option', { name: 'GET many.test/path11' }).waitFor();
      await page.keyboard.press('Backspace');
      // Without a pause.
      await page.keyboard.type('2');
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { level: 1 }).getByText('/path12').waitFor();
      await close();
    });

    it('Enter in the palette opens the chosen result, also when a new one appears above it', async () => {
      const { page, close } = await ui.open('/ui');
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
      await page.keyboard.press('Control+k');
      await palette(page).fill('many.test/path2');
      await page.getByRole('option', { name: /path20\b/ }).waitFor();
      await page.keyboard.press('ArrowDown');
      const chosen = page.getByRole('option', { selected: true });
      await chosen.getByText('path21').waitFor();
      await make('/api/endpoints', { name: 'first', path: '/path2', method: 'GET', domain: 'many.test' });
      await page.getByRole('option', { name: /path2\b/ }).waitFor();
      await chosen.getByText('path21').waitFor();
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { level: 1 }).getByText('/path21').waitFor();
      await close();
    });
  });
});
