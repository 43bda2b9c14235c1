/** What operators do with an endpoint in the web UI: its log, its figures, its settings. */
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { expectData } from '../support/expect.js';
import { type Stack, startStack } from '../support/processes.js';
import {
  expectAccessible,
  expectFits,
  expectUnharmed,
  HOSTILE,
  openBrowser,
  type Ui,
} from '../support/ui.js';

const CODE = `use rust_edge_gateway_sdk::prelude::*;

fn handle(req: Request) -> Response {
    let who = req.query_param("who").map_or("nobody", String::as_str);
    info!(who; "greets {}", ${JSON.stringify(HOSTILE).replaceAll('{', '{{').replaceAll('}', '}}')});
    if who == "nobody" {
        panic!("nobody is there");
    }
    Response::ok("hello")
}

handler_loop!(handle);
`;
const SECTIONS = [
  ['general', 'General'],
  ['limits', 'Limits'],
  ['variables', 'Variables'],
  ['policies', 'Policies'],
  ['services', 'Services'],
  ['schedules', 'Schedules'],
  ['jobs', 'Queued requests'],
] as const;

describe('UI: the log, the figures and the settings of an endpoint', function () {
  this.timeout(180_000);
  let stack: Stack;
  let ui: Ui;
  let address = '';
  let id = '';

  before(async () => {
    stack = await startStack({ processes: ['web', 'worker', 'gateway'] });
    ui = await openBrowser(stack.apiUrl);
    id = await stack.deploy({ path: '/greet', code: CODE });
    address = `/ui/endpoints/${id}`;
    for (const who of ['ada', 'grace', '']) await stack.gateway.get(`/greet${who && `?who=${who}`}`);
  });
  after(async () => {
    await ui?.close();
    await stack?.close();
  });

  it('the log shows what was said and answered, one request by itself, and the place of a panic', async () => {
    const { page, close } = await ui.open(`${address}/logs`);
    await page.getByText('nobody is there').waitFor();
    await expectAccessible(page);
    await expectUnharmed(page);
    // One that comes now, without a reload.
    await stack.gateway.get('/greet?who=lin');
    await page.getByText('who=lin').waitFor();
    await page.getByLabel('Level').selectOption('error');
    await page.getByText('who=lin').waitFor({ state: 'detached' });
    expect(new URL(page.url()).searchParams.get('level')).to.equal('error');
    await page
      .getByTitle(/^Only request/)
      .first()
      .click();
    await page.getByRole('heading', { name: /^Request / }).waitFor();
    await page.getByText('was answered with 500').waitFor();
    await expectAccessible(page);
    await page.getByRole('link', { name: 'handler.rs:7:9', exact: true }).click();
    await page.getByText('Saved, the same as version 1').waitFor();
    expect(new URL(page.url()).pathname).to.equal(`${address}/code`);
    await page.goBack();
    await page.getByText('was answered with 500').waitFor();
    await page.setViewportSize({ width: 360, height: 740 });
    await expectFits(page);
    await close();
  });

  it('the figures are drawn, and stand in a table', async () => {
    const { page, close } = await ui.open(`${address}/figures`);
    const requests = page.getByRole('figure', { name: 'Requests', exact: true });
    // A gateway writes them now and then.
    await eventually(async () => {
      await page.reload();
      await requests.locator('canvas').waitFor({ timeout: 3_000 });
      expect(await page.locator('dl.totals').innerText()).to.match(/Requests\s+[4-9]\b/);
    });
    await requests.getByText('Requests as a table').click();
    await requests.getByRole('row').nth(1).waitFor();
    await expectAccessible(page);
    await page.getByRole('link', { name: '7 d' }).click();
    await page.waitForURL(/range=7d/);
    await page.setViewportSize({ width: 360, height: 740 });
    await expectFits(page);
    await close();
  });

  it('each part of the settings has its address, and fits on a phone', async () => {
    const { page, close } = await ui.open(`${address}/settings`);
    for (const [name, title] of SECTIONS) {
      await page.setViewportSize({ width: 1280, height: 800 });
      await page.goto(`${address}/settings?section=${name}`);
      await page.getByRole('heading', { name: title, exact: true }).waitFor();
      await expectAccessible(page);
      await page.setViewportSize({ width: 360, height: 740 });
      await expectFits(page);
    }
    await close();
  });

  it('a limit that the API refuses is said at its field; one that it takes is in force', async () => {
    const { page, close } = await ui.open(`${address}/settings`);
    await page.getByRole('link', { name: 'Limits' }).click();
    const deadline = page.getByLabel('Deadline of a request');
    await deadline.fill('soon');
    await page.getByRole('button', { name: 'Save' }).click();
    await eventually(async () => expect(await deadline.getAttribute('aria-invalid')).to.equal('true'));
    expect(await page.locator('.field .problem').allInnerTexts()).to.have.length(1);
    await page.reload();
    // What was typed is still there.
    expect(await deadline.inputValue()).to.equal('soon');
    await deadline.fill('1500');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved', { exact: true }).first().waitFor();
    const { limits } = expectData<{ limits: object }>(await stack.api.get(`/api/endpoints/${id}`));
    expect(limits).to.include({ timeout_ms: 1500 });
    await close();
  });
});
