/** The log of an endpoint in the web UI: live and past, its filters, one request, and the way to the code. */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { type Stack, startStack } from '../../support/processes.js';
import { expectAccessible, expectFits, openBrowser, type Ui } from '../../support/ui.js';

const HOSTILE = `<img src=x onerror="document.title='broken'">`;
const CODE = `use rust_edge_gateway_sdk::prelude::*;

fn handle(req: Request) -> Response {
    let said = req.query_param("say").cloned().unwrap_or_default();
    info!("{said}");
    if said == "panic" { panic!("the cup is empty"); }
    if said == "error" { error!("it went wrong"); return Response::new(503); }
    Response::ok(json!({"said": said}))
}

handler_loop!(handle);
`;

describe('the log of an endpoint in the web UI', function () {
  this.timeout(180_000);
  let stack: Stack;
  let ui: Ui;
  let id: string;
  before(async () => {
    stack = await startStack({ processes: ['web', 'worker', 'gateway'] });
    id = await stack.deploy({ path: '/said', code: CODE });
    ui = await openBrowser(stack.apiUrl);
  });
  after(async () => {
    await ui?.close();
    await stack?.close();
  });

  const say = (text: string) => stack.gateway.get(`/said?say=${encodeURIComponent(text)}`);
  const log = (page: Page) => page.getByRole('region', { name: 'Log entries, the newest last' });
  const line = (page: Page, text: string | RegExp) =>
    log(page).getByRole('listitem').filter({ hasText: text });

  it('the log page of an endpoint says that it is empty, then shows entries as they come', async () => {
    const { page, close } = await ui.open(`/ui/endpoints/${id}/logs`);
    await page.getByText('Nothing in the log yet').waitFor();
    await expectAccessible(page);
    await say('good morning');
    await line(page, 'good morning').first().waitFor();
    await line(page, /GET \/said.*200/).waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
    await expectAccessible(page);
    await close();
  });

  it('the log of all endpoints has the entries of an endpoint, and links to its log page', async () => {
    const { page, close } = await ui.open('/ui/logs?search=good');
    const said = line(page, 'good morning').first();
    await said.waitFor();
    const link = said.getByRole('link', { name: 'GET /said' });
    expect(await link.getAttribute('href')).to.equal(`/ui/endpoints/${id}/logs`);
    await page.getByText('Live', { exact: true }).waitFor();
    await expectAccessible(page);
    await page.setViewportSize({ width: 360, height: 740 });
    await expectFits(page);
    await link.click();
    await page.waitForURL(`**/ui/endpoints/${id}/logs`);
    await close();
  });

  it('the log page of an endpoint shows past entries, and hostile text as text', async () => {
    await say(HOSTILE);
    const { page, close } = await ui.open(`/ui/endpoints/${id}/logs`);
    await line(page, HOSTILE).first().waitFor();
    await line(page, 'good morning').first().waitFor();
    expect(await page.title()).not.to.equal('broken');
    expect(await page.locator('main img').count()).to.equal(0);
    await close();
  });

  it('the log page of an endpoint has its filters in its address', async () => {
    await say('error');
    const { page, close } = await ui.open(`/ui/endpoints/${id}/logs`);
    await line(page, 'good morning').first().waitFor();
    await page.getByLabel('Level').selectOption({ label: 'Errors' });
    await line(page, 'it went wrong').waitFor();
    expect(await line(page, 'good morning').count()).to.equal(0);
    expect(new URL(page.url()).searchParams.get('level')).to.equal('error');

    await page.goto(`/ui/endpoints/${id}/logs?search=morning`);
    await line(page, 'good morning').first().waitFor();
    expect(await page.getByRole('searchbox', { name: 'Search' }).inputValue()).to.equal('morning');
    expect(await line(page, 'it went wrong').count()).to.equal(0);
    await page.getByRole('button', { name: 'Clear filters' }).click();
    await line(page, 'it went wrong').first().waitFor();
    expect(new URL(page.url()).search).to.equal('');
    await close();
  });

  it('the log page of an endpoint says at its field what is wrong with a filter', async () => {
    const { page, close } = await ui.open(`/ui/endpoints/${id}/logs?status=many`);
    await page
      .getByText(/must be/i)
      .first()
      .waitFor();
    expect(await page.getByLabel('Status').getAttribute('aria-invalid')).to.equal('true');
    // Said once, where it is to be mended.
    expect(await page.locator('.logs .notice').count()).to.equal(0);
    await close();
  });

  it('the log page of an endpoint shows the entries of one request, and all entries again on Back', async () => {
    const { page, close } = await ui.open(`/ui/endpoints/${id}/logs`);
    const answer = line(page, /GET \/said 503/);
    await answer.getByRole('button', { name: /^[\w-]+…[\w-]+$/ }).click();
    const request = page.getByRole('region', { name: 'Request' });
    await request.getByText(/GET \/said.* was answered with 503/).waitFor();
    await line(page, 'it went wrong').waitFor();
    expect(await line(page, 'good morning').count()).to.equal(0);
    expect(new URL(page.url()).searchParams.has('request_id')).to.equal(true);
    await page.goBack();
    await line(page, 'good morning').first().waitFor();
    await close();
  });

  it('the log page of an endpoint links from a panic to its line of the code', async () => {
    await say('panic');
    const { page, close } = await ui.open(`/ui/endpoints/${id}/logs`);
    await line(page, 'the cup is empty')
      .getByRole('link', { name: /^handler\.rs:6/ })
      .click();
    await page.waitForURL(new RegExp(`/ui/endpoints/${id}/code\\?file=handler.rs&line=6&column=\\d+$`));
    await page.locator('.cm-content').waitFor();
    await close();
  });

  it('the log page of an endpoint opens an entry with its details, and closes it on Escape', async () => {
    const { page, close } = await ui.open(`/ui/endpoints/${id}/logs?kind=request&status=503`);
    await line(page, /503/)
      .getByRole('button', { name: /GET \/said/ })
      .click();
    const entry = page.getByRole('region', { name: 'Entry' });
    await entry.locator('dl').getByText('/said', { exact: true }).waitFor();
    await expectAccessible(page);
    await entry.getByRole('button', { name: 'Close' }).press('Escape');
    await entry.waitFor({ state: 'detached' });
    await close();
  });

  it('the log page of an endpoint can be paused, and shows the entries since then when resumed', async () => {
    const { page, close } = await ui.open(`/ui/endpoints/${id}/logs`);
    await line(page, 'good morning').first().waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    await say('while paused');
    await page.getByText(/\d new/).waitFor();
    expect(await line(page, 'while paused').count()).to.equal(0);
    // Other filters show what was said until now, and do not let it go on.
    await page.getByLabel('Kind').selectOption({ label: 'Output of the handler' });
    await line(page, 'while paused').first().waitFor();
    await page.getByText('Paused', { exact: true }).waitFor();
    await say('still paused');
    await page.getByText(/\d new/).waitFor();
    expect(await line(page, 'still paused').count()).to.equal(0);
    await page.getByRole('button', { name: 'Resume' }).click();
    await line(page, 'still paused').first().waitFor();
    await close();
  });

  it('the log page of an endpoint fits on a phone', async () => {
    const { page, close } = await ui.open(`/ui/endpoints/${id}/logs`, {
      viewport: { width: 360, height: 740 },
    });
    await line(page, 'while paused').first().waitFor();
    await expectFits(page);
    await expectAccessible(page);
    // The place of a panic takes no room from what was said.
    await page.goto(`/ui/endpoints/${id}/logs?search=the%20cup%20is%20empty`);
    const panic = line(page, 'the cup is empty').first();
    await panic.getByRole('link', { name: /^handler\.rs:6/ }).waitFor();
    const text = await panic.locator('.said > span').evaluate((said) => {
      const range = said.ownerDocument.createRange();
      range.selectNodeContents(said);
      return { needed: range.getBoundingClientRect().height, shown: said.clientHeight };
    });
    expect(text.needed).to.be.at.most(text.shown + 1);
    await expectFits(page);
    await close();
  });
});
