/** What an open page notices: changes by others, a connection that is lost or dead, a new build, and many log lines. */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { type Database, openDatabase } from '../../../src/store/database.js';
import { eventually } from '../../support/eventually.js';
import { expectData } from '../../support/expect.js';
import { type LogFlood, startLogFlood } from '../../support/log-flood.js';
import { must, type Stack, startStack } from '../../support/processes.js';
import { startStallingProxy } from '../../support/stalling-proxy.js';
import { startProxy } from '../../support/tcp-proxy.js';
import { expectAccessible, openBrowser, type Ui } from '../../support/ui.js';

const LOST = 'The connection to the gateway is lost';
const OUTDATED = 'The gateway has a new version of this page';

describe('UI: what an open page notices', function () {
  this.timeout(120_000);
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

  const domain = (host: string) => must(stack.api.post('/api/domains', { name: host, host }));
  const endpoint = async (path: string) =>
    expectData<{ id: string }>(
      await stack.api.post('/api/endpoints', { name: path, path, method: 'GET', domain: '*' }),
      201,
    ).id;
  const shown = (page: Page, host: string) => page.getByRole('heading', { name: host }).waitFor();

  it('two tabs show what either of them changes', async () => {
    const [one, other] = [await ui.open('/ui/endpoints'), await ui.open('/ui/endpoints')];
    for (const { page } of [one, other]) await page.getByText('There are no endpoints yet').waitFor();
    await one.page.getByRole('button', { name: 'New domain' }).click();
    await one.page.getByLabel('Host').fill('both.example.com');
    await one.page.getByRole('button', { name: 'Create' }).click();
    for (const { page } of [one, other]) await shown(page, 'both.example.com');
    await other.page.getByRole('button', { name: 'What to do with the domain both.example.com' }).click();
    await other.page.getByRole('menuitem', { name: 'Delete' }).click();
    await other.page.getByRole('button', { name: 'Delete' }).click();
    for (const { page } of [one, other]) await page.getByText('There are no endpoints yet').waitFor();
    await one.close();
    await other.close();
  });

  it('an open page shows what has changed while it was cut off for a moment', async () => {
    const proxy = await startProxy(stack.apiUrl);
    const { page, close } = await ui.open(`${proxy.url}ui/endpoints`);
    await page.getByText('There are no endpoints yet').waitFor();
    // Shorter than what is said to be lost: nobody is told, and all the same nothing is missed.
    await proxy.down();
    await domain('meanwhile.example.com');
    await proxy.up();
    await shown(page, 'meanwhile.example.com');
    await close();
    await proxy.down();
  });

  it('the overview shows processes that start and end', async () => {
    const { page, close } = await ui.open('/ui');
    const row = (kind: string) =>
      page.getByRole('region', { name: 'Installation' }).getByRole('row', { name: new RegExp(`^${kind}`) });
    await row('web').waitFor();
    expect(await row('actor-host').count()).to.equal(0);
    const host = await stack.start('actor-host');
    await row('actor-host').waitFor();
    await host.end('SIGTERM');
    await row('actor-host').waitFor({ state: 'detached' });
    await close();
  });

  it('a page says that a response was cut off, and loads it again on a click', async () => {
    const { page, close } = await ui.open('about:blank');
    let isCut = true;
    await page.route('**/api/overview/endpoints*', async (route) => {
      const response = await route.fetch();
      const text = await response.text();
      await route.fulfill({ response, body: isCut ? text.slice(0, text.length / 2) : text });
    });
    await page.goto('/ui/endpoints');
    await page.getByRole('alert').getByText('The answer of the gateway is cut off').waitFor();
    isCut = false;
    await page.getByRole('button', { name: 'Try again' }).click();
    await shown(page, 'meanwhile.example.com');
    await close();
  });

  it('an open page says that the connection is lost when the server is silent for too long', async () => {
    const proxy = await startStallingProxy(Number(new URL(stack.apiUrl).port));
    const { page, context, close } = await ui.open('about:blank');
    await page.clock.install();
    await page.goto(`http://127.0.0.1:${proxy.port}/ui/endpoints`);
    await shown(page, 'meanwhile.example.com');
    await page.clock.runFor(10_000);
    expect(await page.getByText(LOST).isVisible()).to.equal(false);
    proxy.stall();
    // The time of the page alone passes: longer than the server is ever silent.
    await eventually(async () => {
      await page.clock.runFor(10_000);
      expect(await page.getByText(LOST).isVisible()).to.equal(true);
    });
    await proxy.close();
    await close();
    await context.close();
  });

  it('an open page says that the connection is lost when the browser is offline or a request fails', async () => {
    const { page, context, close } = await ui.open('/ui/endpoints');
    await shown(page, 'meanwhile.example.com');
    await context.setOffline(true);
    await page.getByText(LOST).waitFor();
    await context.setOffline(false);
    await page.getByText(LOST).waitFor({ state: 'detached' });
    await context.route('**/api/**', (route) => route.abort('connectionrefused'));
    await page.getByLabel('Search endpoints').fill('meanwhile');
    await page.getByText(LOST).waitFor();
    await context.unroute('**/api/**');
    await page.getByText(LOST).waitFor({ state: 'detached' });
    await close();
  });

  it('an open page offers to load a new build, and not the same build of a new process', async () => {
    const { page, close } = await ui.open('about:blank');
    let isOld = true;
    await page.route('**/ui/endpoints?*', async (route) => {
      const response = await route.fetch();
      const text = await response.text();
      // A page that was loaded before the gateway got the build that it has.
      const body = isOld ? text.replace(/(name="edge-build" content=")\w+/, '$1before') : text;
      await route.fulfill({ response, body });
    });
    await page.goto('/ui/endpoints?search=meanwhile');
    await page.getByText(OUTDATED).waitFor();
    await expectAccessible(page);
    isOld = false;
    await page.getByRole('button', { name: 'Reload' }).click();
    await page.getByText(OUTDATED).waitFor({ state: 'detached' });
    await page.getByText('No endpoint is like this').waitFor();
    expect(page.url()).to.include('/ui/endpoints?search=meanwhile');
    await stack.processes.get('web')?.end('SIGTERM');
    await page.getByText(LOST).waitFor();
    await stack.start('web');
    await page.getByText(LOST).waitFor({ state: 'detached' });
    expect(await page.getByText(OUTDATED).count()).to.equal(0);
    await close();
  });

  it('a page says that its code could not be loaded, and loads it on a click', async () => {
    const { page, close } = await ui.open('/ui/endpoints');
    const itsCode = /\/services-page-\w+\.js$/;
    await page.route(itsCode, (route) => route.abort());
    await page.getByRole('link', { name: 'Services', exact: true }).click();
    await page.getByText('This part of the page could not be loaded').waitFor();
    expect(await page.getByText(OUTDATED).count()).to.equal(0);
    await expectAccessible(page);
    await page.unroute(itsCode);
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('heading', { name: 'Services', exact: true }).waitFor();
    await close();
  });

  describe('a log', () => {
    let database: Database;
    before(() => {
      database = openDatabase(stack.databaseUrl, () => undefined);
    });
    after(() => database?.close());

    /** How many lines the page has taken in, and how many of those it shows. */
    const counted = async (page: Page) => {
      const text = (await page.locator('.log > header [role=status]').textContent()) ?? '';
      const [, lines = '0'] = /([\d,]+) lines?/.exec(text) ?? [];
      const [, leftOut = '0'] = /([\d,]+) left out/.exec(text) ?? [];
      const [lineCount, leftOutCount] = [lines, leftOut].map((number) => Number(number.replaceAll(',', '')));
      return { lines: lineCount ?? 0, leftOut: leftOutCount ?? 0 };
    };

    it('the log page stays usable at 10,000 lines a second, and says how many it has left out', async () => {
      const id = await endpoint('/flood');
      const flood = await startLogFlood(database, id);
      const { page, close } = await ui.open(`/ui/endpoints/${id}/logs`);
      await page.getByText('Nothing in the log yet').waitFor();
      await page.getByText('Live', { exact: true }).waitFor();
      const TOTAL = 20_000;
      const flooded = pour(flood, TOTAL);
      await page.getByText('of the gateway').first().waitFor();
      // While they come: one looks elsewhere and back, opens a line, stops the list and lets it go on.
      await page.getByRole('button', { name: 'Pause' }).click();
      await page.getByText('Paused').waitFor();
      await page.getByText('of the gateway').first().click();
      await page.getByRole('button', { name: 'Close' }).first().click();
      await flooded;
      await eventually(async () => {
        const [, waiting = '0'] = /([\d,]+) new/.exec(await page.locator('.log > header').innerText()) ?? [];
        const { lines, leftOut } = await counted(page);
        expect(lines + leftOut + Number(waiting.replaceAll(',', ''))).to.be.at.least(TOTAL);
      });
      await page.getByRole('button', { name: 'Resume' }).click();
      await eventually(async () => {
        // A note that says so is a line, too.
        const { lines, leftOut } = await counted(page);
        expect(leftOut).to.be.above(0);
        expect(lines + leftOut).to.be.within(TOTAL, TOTAL + 100);
      });
      expect(await page.locator('.log li').count()).to.be.below(100);
      await close();
    });

    it('the log page continues after a lost connection, with each line since then once', async () => {
      const id = await endpoint('/cut');
      const flood = await startLogFlood(database, id);
      const proxy = await startProxy(stack.apiUrl);
      const { page, close } = await ui.open(`${proxy.url}ui/endpoints/${id}/logs`);
      await page.getByText('Live', { exact: true }).waitFor();
      await flood.write(20);
      await page.getByText('20 lines', { exact: true }).waitFor();
      await proxy.down();
      await page.getByText('Cut off, connecting again').waitFor();
      await flood.write(20);
      await proxy.up();
      await page.getByText(/The connection was lost from .* What came meanwhile follows/).waitFor();
      // With the note.
      await page.getByText('41 lines', { exact: true }).waitFor();
      await close();
      await proxy.down();
    });
  });
});

/** Writes them as fast as 10,000 a second, or as fast as this machine can. */
async function pour(flood: LogFlood, lines: number): Promise<void> {
  const step = 2_000;
  for (let written = 0; written < lines; written += step) {
    const next = new Promise((resolve) => setTimeout(resolve, step / 10));
    await flood.write(step);
    await next;
  }
}
