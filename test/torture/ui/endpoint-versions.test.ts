/** Versions of an endpoint in the web UI: what serves, what differs, rollback, and canaries. */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { ONE_FILE } from '../../../src/model/source-files.js';
import { openDatabase } from '../../../src/store/database.js';
import { keepLock } from '../../../src/store/source-files.js';
import { addVersions } from '../../../src/store/versions.js';
import { eventually } from '../../support/eventually.js';
import { expectData } from '../../support/expect.js';
import { lockOf } from '../../support/locks.js';
import { type Stack, startStack } from '../../support/processes.js';
import { expectAccessible, expectFits, openBrowser, type Ui } from '../../support/ui.js';

const HOSTILE = `<img src=x onerror="document.title='broken'"><b>bold</b> \u202egnp.exe`;

/** Answers with its number, or panics where it is told to. */
const numbered = (number: number, fault = '') => `use rust_edge_gateway_sdk::prelude::*;

fn handle(_req: Request) -> Response {
    ${fault}
    Response::text(200, "${number}")
}

handler_loop!(handle);
`;
const PANIC = 'if std::env::var("HOME").is_ok() || true { panic!("lost its head") }';

interface Served {
  readonly deployment: { readonly targets: readonly { version: number; percent: number }[] };
}

describe('the versions of an endpoint in the web UI', function () {
  this.timeout(180_000);
  let stack: Stack;
  let ui: Ui;
  let id = '';
  before(async () => {
    stack = await startStack({ processes: ['web', 'worker', 'gateway'] });
    ui = await openBrowser(stack.apiUrl);
    const body = { name: HOSTILE, path: '/versions', method: 'GET', domain: '*' };
    ({ id } = expectData<{ id: string }>(await stack.api.post('/api/endpoints', body), 201));
  });
  after(async () => {
    await ui?.close();
    await stack?.close();
  });

  const deploy = async (fields: object) =>
    expectData(await stack.api.post(`/api/endpoints/${id}/deploy`, fields));
  const targets = async () => {
    const { deployment } = expectData<Served>(await stack.api.get(`/api/endpoints/${id}`));
    return Object.fromEntries(deployment.targets.map(({ version, percent }) => [version, percent]));
  };
  const serve = async (version: number) => {
    const body = { targets: [{ version, percent: 100 }] };
    return expectData(await stack.api.put(`/api/endpoints/${id}/deployment`, body));
  };
  const answer = async () => (await stack.gateway.get('/versions')).body;
  const list = (page: Page) => page.getByRole('region', { name: 'Versions' });

  it('the versions page says that an endpoint has no version yet', async () => {
    const { page, close } = await ui.open(`/ui/endpoints/${id}/versions`);
    await page.getByRole('heading', { name: 'No version yet' }).waitFor();
    await close();
  });

  it('the versions page lists versions with messages, rolls back in a click, and undoes it in another', async () => {
    await deploy({ code: numbered(1), message: 'The first' });
    await deploy({ code: numbered(2), message: HOSTILE });
    const { page, close } = await ui.open(`/ui/endpoints/${id}/versions`);
    const rows = list(page).getByRole('listitem');
    await rows.nth(1).getByText('The first').waitFor();
    await rows.first().getByText('<b>bold</b>').waitFor();
    await rows.first().getByText('serves', { exact: true }).waitFor();
    await rows.first().getByText('somebody at 127.0.0.1').waitFor();
    expect(await page.locator('main img, main b').count()).to.equal(0);
    await expectAccessible(page);

    await page.getByRole('button', { name: 'Roll back to version 1' }).click();
    await page.getByText('Version 1 serves again.').waitFor();
    expect(await answer()).to.equal('1');
    await rows.nth(1).getByText('serves', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText('Version 2 serves.').waitFor();
    expect(await answer()).to.equal('2');
    expect(await targets()).to.deep.equal({ 2: 100 });
    await close();
  });

  it('the versions page shows the message of a version that was compiled before it was deployed', async () => {
    const body = { name: 'told', path: '/told', method: 'GET', domain: '*', code: numbered(7) };
    const told = expectData<{ id: string }>(await stack.api.post('/api/endpoints', body), 201);
    expectData(await stack.api.post(`/api/endpoints/${told.id}/compile`));
    const { page, close } = await ui.open(`/ui/endpoints/${told.id}/versions`);
    await list(page).getByText('Version 1').waitFor();
    await page.getByRole('button', { name: 'Deploy …' }).click();
    await page.getByLabel('What is new').fill('Greets by name');
    await page.getByRole('dialog').getByRole('button', { name: 'Deploy' }).click();
    await list(page).getByText('Greets by name').waitFor();
    await close();
  });

  it('the versions page compares two versions, or one with the draft, at an address', async () => {
    const draft = numbered(3, '// written, not deployed');
    expectData(await stack.api.put(`/api/endpoints/${id}`, { code: draft, dependencies: { regex: '1' } }));
    const { page, close } = await ui.open(`/ui/endpoints/${id}/versions`);
    await page.getByRole('button', { name: 'Compare version 1' }).click();
    await page.waitForURL(/from=1&to=2$/);
    await page.getByRole('textbox', { name: 'Version 1' }).getByText('"1"').waitFor();
    await page.getByRole('textbox', { name: 'Version 2' }).getByText('"2"').waitFor();
    await expectAccessible(page);
    await page.getByLabel('with').selectOption('The draft');
    const shown = page.getByRole('textbox', { name: 'The draft' });
    await shown.getByText('// written, not deployed').waitFor();
    await shown.getByText('"regex": "1"').waitFor();
    await page.goBack();
    await page.getByRole('textbox', { name: 'Version 2' }).waitFor();
    await page.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('textbox', { name: 'Version 2' }).waitFor({ state: 'detached' });
    await close();

    const phone = await ui.open(`/ui/endpoints/${id}/versions?from=1&to=2`, {
      viewport: { width: 360, height: 740 },
    });
    await phone.page.locator('.cm-deletedChunk').getByText('"1"').waitFor();
    await phone.page.getByText('− Only in: Version 1').waitFor();
    await expectFits(phone.page);
    await phone.close();
    expectData(await stack.api.put(`/api/endpoints/${id}`, { code: numbered(2), dependencies: null }));
  });

  it('the versions page shows which edition and which crates differ', async () => {
    const body = { name: 'Crates', path: '/crates', method: 'GET', domain: '*', code: numbered(1) };
    const made = expectData<{ id: string }>(await stack.api.post('/api/endpoints', body), 201);
    const store = openDatabase(stack.databaseUrl, () => undefined);
    try {
      for (const [edition, crates] of [
        [null, { gone: '1.0.0', uuid: '1.17.0' }],
        ['2024', { come: '2.0.0', uuid: '1.18.0' }],
      ] as const) {
        const resolvedLock = await keepLock(store, lockOf(crates));
        const source = { code: numbered(1), dependencies: { uuid: '1' }, ...ONE_FILE, edition };
        const built = { sourceKey: `${edition}`, artifact: `${edition}`, actor: null, resolvedLock };
        await addVersions(store, [made.id], { ...source, ...built });
      }
    } finally {
      await store.close();
    }
    const { page, close } = await ui.open(`/ui/endpoints/${made.id}/versions?from=1&to=2`);
    await page.getByText('The edition of Rust is 2021 in Version 1, and 2024 in Version 2.').waitFor();
    const crates = page.getByRole('region', { name: 'Crates that differ' }).getByRole('listitem');
    await crates.first().waitFor();
    expect(await crates.allInnerTexts()).to.deep.equal([
      ...['come none → 2.0.0', 'gone 1.0.0 → none', 'uuid 1.17.0 → 1.18.0'],
    ]);
    await expectAccessible(page);
    await close();
  });

  it('the versions page starts a canary by a slider, changes its share, and promotes it', async () => {
    await serve(1);
    const { page, close } = await ui.open(`/ui/endpoints/${id}/versions`);
    // The older one is on the left, also when the other one serves.
    await page.getByRole('button', { name: 'Compare version 2' }).click();
    await page.waitForURL(/from=1&to=2$/);
    await page.getByRole('button', { name: 'Close' }).click();
    await page.getByText('Try another version on some of the requests').click();
    await page.getByLabel('Version', { exact: true }).selectOption('Version 2');
    const slider = page.getByRole('slider', { name: 'Share of version 2' });
    await slider.fill('24');
    await slider.press('ArrowRight');
    await page.getByRole('button', { name: 'Send 25 % to version 2' }).click();
    await page.getByText('Version 1 serves 75 %, version 2 25 %.').waitFor();
    expect(await targets()).to.deep.equal({ 1: 75, 2: 25 });
    await page.locator('h1').getByText('versions 1 and 2 serve').waitFor();
    await expectAccessible(page);

    await slider.fill('60');
    await page.getByRole('button', { name: 'Send 60 % to version 2' }).click();
    await eventually(async () => expect(await targets()).to.deep.equal({ 1: 40, 2: 60 }));
    await page.getByRole('button', { name: 'Promote version 2' }).click();
    await page.getByText('Version 2 serves.', { exact: true }).waitFor();
    expect(await targets()).to.deep.equal({ 2: 100 });
    await close();
  });

  it('the versions page starts a canary of an older version, and ends it', async () => {
    await serve(2);
    const { page, close } = await ui.open(`/ui/endpoints/${id}/versions`);
    await page.getByText('Try another version on some of the requests').click();
    await page.getByLabel('Version', { exact: true }).selectOption('Version 1');
    await page.getByRole('button', { name: 'Send 10 % to version 1' }).click();
    const slider = page.getByRole('slider', { name: 'Share of version 1' });
    await page.getByRole('button', { name: 'Promote version 1' }).waitFor();
    expect(await slider.inputValue()).to.equal('10');
    // Also when it has more than the other one.
    await slider.fill('70');
    await page.getByRole('button', { name: 'Send 70 % to version 1' }).click();
    await eventually(async () => expect(await targets()).to.deep.equal({ 1: 70, 2: 30 }));
    await page.getByText('Version 2 serves 30 %, version 1 70 %.').waitFor();
    await page.getByRole('button', { name: 'Promote version 1' }).waitFor();
    await page.getByRole('button', { name: 'Back to version 2 only' }).click();
    await eventually(async () => expect(await targets()).to.deep.equal({ 2: 100 }));
    await close();
  });

  it('Undo on the versions page does not undo what others have deployed since', async () => {
    await serve(2);
    const { page, close } = await ui.open(`/ui/endpoints/${id}/versions`);
    await page.getByRole('button', { name: 'Roll back to version 1' }).click();
    await page.getByText('Version 1 serves again.').waitFor();
    const theirs = [
      { version: 1, percent: 60 },
      { version: 2, percent: 40 },
    ];
    expectData(await stack.api.put(`/api/endpoints/${id}/deployment`, { targets: theirs }));
    await page.getByRole('button', { name: 'Undo' }).click();
    const said = page.getByText('Not undone: what serves was changed since.');
    await said.waitFor();
    expect(await targets()).to.deep.equal({ 1: 60, 2: 40 });
    await page.getByRole('button', { name: 'Stop …' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Stop' }).click();
    await page.getByText('It is stopped.').waitFor();
    await serve(1);
    await page.getByRole('button', { name: 'Undo' }).click();
    await said.nth(1).waitFor();
    expect(await targets()).to.deep.equal({ 1: 100 });
    await serve(2);
    await close();
  });

  it('a failing endpoint leads over its error in the logs to a rollback in three clicks', async () => {
    await deploy({ code: numbered(4, PANIC) });
    expect((await stack.gateway.get('/versions')).status).to.equal(500);
    await eventually(async () => {
      const { last_failure } = expectData<{ last_failure: unknown }>(
        await stack.api.get(`/api/endpoints/${id}`),
      );
      expect(last_failure).to.include({ message: 'lost its head' });
    });

    const { page, close } = await ui.open('/ui/endpoints');
    await page.getByRole('link', { name: /\/versions/ }).click();
    // In the words of the list.
    await page.locator('h1').getByText('Version 3 serves').waitFor();
    await page
      .locator('h1')
      .getByText(/^(Failing|Some errors)$/)
      .waitFor();
    await page.getByRole('link', { name: 'See it in the logs' }).click();
    await page.waitForURL(/\/logs\?request_id=/);
    await page.getByText('lost its head').first().waitFor();
    await page.getByRole('button', { name: 'Roll back to what served before' }).click();
    await page.getByText('Version 2 serves again.').waitFor();
    expect(await answer()).to.equal('2');
    await page.getByText('which no longer serves').waitFor();
    await page
      .getByRole('button', { name: 'Roll back to what served before' })
      .waitFor({ state: 'detached' });

    await page.getByRole('link', { name: /^at handler\.rs:4:/ }).click();
    await page.locator('.cm-activeLine').filter({ hasText: 'lost its head' }).waitFor();
    await close();
  });

  it('the versions page stops an endpoint, and starts it again', async () => {
    const { page, close } = await ui.open(`/ui/endpoints/${id}/versions`);
    const stop = async () => {
      await page.getByRole('button', { name: 'Stop …' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Stop' }).click();
      // The page follows what happens: it has no deployment before the gateway has ended the handler.
      await page.locator('h1').getByText('Stopped').waitFor();
      await page.getByText('No version serves now.').waitFor();
      expect((await stack.gateway.get('/versions')).status).to.equal(503);
    };
    await stop();
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText('Version 2 serves.').waitFor();
    expect(await answer()).to.equal('2');
    await stop();
    await page.getByRole('button', { name: 'Have version 2 serve' }).click();
    await page.locator('h1').getByText('Version 2 serves').waitFor();
    // The first one is of the stop, the second one is there once the change has been answered.
    const undo = page.getByRole('button', { name: 'Undo' }).nth(1);
    await undo.waitFor();
    expect(await answer()).to.equal('2');
    await undo.click();
    await page.getByText('It is stopped, as before.').waitFor();
    expect((await stack.gateway.get('/versions')).status).to.equal(503);
    await close();
  });

  it('an endpoint is shown as asleep in the list and on its page, and the palette rolls it back', async () => {
    await serve(2);
    await stack.processes.get('gateway')?.end('SIGTERM');
    await stack.start('gateway');
    await eventually(async () => {
      const now = expectData<object>(await stack.api.get(`/api/endpoints/${id}`));
      expect(now).to.include({ running: true, running_version: null });
    });
    const { page, close } = await ui.open('/ui/endpoints');
    await page.getByText('Asleep', { exact: true }).first().waitFor();
    await page.getByRole('link', { name: /\/versions/ }).click();
    await page.locator('h1').getByText('Asleep', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Versions', exact: true }).click();
    await page.getByRole('button', { name: 'Roll back to version 1' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.keyboard.type('roll back');
    await page.getByRole('option', { name: /^Roll back this endpoint/ }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByText(/^Version \d serves again\.$/).waitFor();
    expect(await targets()).not.to.have.property('2');
    // The audit has it in the same words.
    await page.getByRole('link', { name: 'Who changed this?' }).click();
    const entry = page.getByRole('list', { name: 'Audit entries' }).getByRole('listitem').first();
    await entry.getByText(/rolled back the endpoint .*: version 2 → \d$/).waitFor();
    await entry.locator('summary').click();
    await entry.getByRole('cell', { name: 'version 2', exact: true }).waitFor();
    await close();
  });
});
