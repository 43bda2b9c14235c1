/** The figures of an endpoint in the web UI. */
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { expectData } from '../../support/expect.js';
import { ANYTHING } from '../../support/handler-sources.js';
import { type Stack, startStack } from '../../support/processes.js';
import { expectAccessible, expectFits, openBrowser, type Ui } from '../../support/ui.js';

describe('the figures of an endpoint in the web UI', function () {
  this.timeout(180_000);
  let stack: Stack;
  let ui: Ui;
  let id: string;
  before(async () => {
    stack = await startStack({ processes: ['web', 'worker', 'gateway'] });
    ui = await openBrowser(stack.apiUrl);
  });
  after(async () => {
    await ui?.close();
    await stack?.close();
  });

  it('the figures page of an endpoint says that nothing has happened yet', async () => {
    const body = { name: 'quiet', path: '/quiet', method: 'GET', domain: '*' };
    const { id: quiet } = expectData<{ id: string }>(await stack.api.post('/api/endpoints', body), 201);
    const { page, close } = await ui.open(`/ui/endpoints/${quiet}/figures`);
    await page.getByText('Nothing happened in this time').waitFor();
    await expectAccessible(page);
    await close();
  });

  it('the figures page of an endpoint shows charts with their sums, and a chart as a table', async () => {
    id = await stack.deploy({ path: '/figures', code: ANYTHING });
    for (let sent = 0; sent < 8; sent++) await stack.gateway.get('/figures?do=status&code=200');
    for (let sent = 0; sent < 2; sent++) await stack.gateway.get('/figures?do=status&code=500');
    await eventually(async () => {
      const { points } = expectData<{ points: { requests: number }[] }>(
        await stack.api.get(`/api/series?endpoint_id=${id}`),
      );
      expect(points.reduce((sum, { requests }) => sum + requests, 0)).to.equal(10);
    });
    const { page, close } = await ui.open(`/ui/endpoints/${id}/figures`);
    await page.getByText('2 (20 %)').waitFor();
    const charts = ['Requests', 'Errors in a minute', 'Time to answer', 'Memory', 'Processor'];
    for (const title of charts) await page.getByRole('heading', { name: title, exact: true }).waitFor();
    expect(await page.locator('main canvas').count()).to.be.at.least(charts.length);
    // What a chart draws can be read.
    await page.getByText('Errors in a minute as a table').click();
    const table = page.getByRole('region', { name: 'Figures of Errors in a minute' });
    await table.getByRole('columnheader', { name: '5xx' }).waitFor();
    expect(await table.getByRole('cell', { name: '2', exact: true }).count()).to.be.at.least(1);
    await expectAccessible(page);
    await close();
  });

  it('the figures page of an endpoint has its range and version in its address', async () => {
    const { page, close } = await ui.open(`/ui/endpoints/${id}/figures`);
    await page.getByText('2 (20 %)').waitFor();
    await page.getByRole('link', { name: '7 d' }).click();
    await page.getByRole('heading', { name: /^Errors in/ }).waitFor();
    await page.getByLabel('Version').selectOption({ label: 'Version 1' });
    await page.getByText('2 (20 %)').waitFor();
    expect(new URL(page.url()).search).to.equal('?range=7d&version=1');
    await page.reload();
    await page.getByText('2 (20 %)').waitFor();
    expect(await page.getByLabel('Version').inputValue()).to.equal('1');
    await page.goBack();
    await page.setViewportSize({ width: 360, height: 740 });
    await expectFits(page);
    await close();
  });
});
