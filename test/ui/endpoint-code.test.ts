/** The code of an endpoint in the web UI: from a compile error to a live endpoint, and nothing written is lost. */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { eventually } from '../support/eventually.js';
import { expectData } from '../support/expect.js';
import { lockOf } from '../support/locks.js';
import { must, type Stack, startStack } from '../support/processes.js';
import { expectAccessible, expectFits, openBrowser, type Ui } from '../support/ui.js';

const HOSTILE = `<img src=x onerror="document.title='broken'"><b>bold</b> \u202egnp.exe`;

/** The mistake stands behind characters that are two units of UTF-16, and one for rustc. */
const MISTAKEN = `use rust_edge_gateway_sdk::prelude::*;

fn handle(_req: Request) -> Response {
    let _ = "😀😀é"; let name = "Ada"
    Response::ok(jsn!({"name": name}))
}

handler_loop!(handle);
`;
const MENDED = MISTAKEN.replace('"Ada"\n', '"Ada";\n').replace('jsn!', 'json!');

describe('the code of an endpoint in the web UI', function () {
  this.timeout(300_000);
  let stack: Stack;
  let ui: Ui;
  before(async () => {
    stack = await startStack({ processes: ['web', 'worker', 'gateway'] });
    ui = await openBrowser(stack.apiUrl);
  });
  after(async () => {
    await ui?.close();
    await stack?.close();
  });

  let lastPath = 0;
  const create = async (fields: object = {}) => {
    const body = { name: 'an endpoint', path: `/code${++lastPath}`, method: 'GET', domain: '*', ...fields };
    const { id } = expectData<{ id: string }>(await stack.api.post('/api/endpoints', body), 201);
    return id;
  };
  const stored = async (id: string) =>
    expectData<{ code: string; dependencies: unknown }>(await stack.api.get(`/api/endpoints/${id}`));
  const editor = (page: Page) => page.getByRole('textbox', { name: 'Code of the handler' });
  const write = async (page: Page, text: string) => {
    await editor(page).click();
    await page.keyboard.press('Control+Home');
    await page.keyboard.insertText(text);
  };
  const problems = (page: Page) => page.getByRole('region', { name: 'What the compiler says' });

  it('the code page leads from two errors of the compiler to a live endpoint in five clicks', async () => {
    const id = await create({ path: '/live', code: MISTAKEN });
    const { page, close } = await ui.open(`/ui/endpoints/${id}`);
    await editor(page).press('Control+s');
    await page.getByRole('heading', { name: 'It does not compile: 2 errors' }).waitFor();
    expect(await page.locator('.cm-lintRange-error').allTextContents()).to.deep.equal(['jsn']);
    await expectAccessible(page);

    let clicks = 0;
    const click = async (name: string | RegExp, within = page.locator('main')) => {
      await within.getByRole('button', { name }).first().click();
      clicks++;
    };
    await click(/^line 5 cannot find macro/);
    expect(await page.evaluate('String(getSelection())')).to.equal('jsn');
    // Written above: the suggestions are for the places where the mistakes are now.
    await write(page, '// Greets.\n');
    await problems(page).getByRole('button', { name: 'line 6 cannot find macro' }).waitFor();
    await click(/^Apply: a macro with a similar name/);
    await click(/^Apply: add `;` here/);
    expect(
      await problems(page)
        .getByRole('button', { name: /^Apply/ })
        .count(),
    ).to.equal(0);
    await click('Deploy …');
    await click('Deploy', page.getByRole('dialog'));
    await page.getByText('Version 1 serves.').waitFor();
    expect(clicks).to.equal(5);
    await page.getByRole('heading', { name: 'It compiles' }).waitFor();
    expect((await stored(id)).code).to.equal(`// Greets.\n${MENDED}`);
    expect((await stack.gateway.get('/live')).body).to.deep.equal({ name: 'Ada' });
    await page.getByText('Saved, the same as version 1').waitFor();
    await close();
  });

  it('the versions page says why the draft does not compile, and links to the place', async () => {
    const id = await create({ code: MISTAKEN });
    await stack.api.post(`/api/endpoints/${id}/compile`);
    const { page, close } = await ui.open(`/ui/endpoints/${id}/versions`);
    await page.getByText('The draft does not compile: expected `;`').waitFor();
    await page.getByRole('link', { name: 'See the place' }).click();
    await page.getByText('The draft does not compile').waitFor({ state: 'detached' });
    await problems(page).getByRole('button', { name: 'line 5 cannot find macro' }).waitFor();
    await page.goBack();
    await page.getByRole('heading', { name: 'No version yet' }).waitFor();
    await close();
  });

  it('a user without builds:read sees why the draft does not compile, and no build is requested', async () => {
    const id = await create({ code: MISTAKEN });
    await stack.api.post(`/api/endpoints/${id}/compile`);
    const { page, close } = await ui.open('about:blank');
    const asked: string[] = [];
    page.on('request', (request) => asked.push(new URL(request.url()).pathname));
    // Every role has this permission: only what the page knows of it differs.
    await page.route('**/api/session', async (route) => {
      const response = await route.fetch();
      const { data, ...envelope } = (await response.json()) as { data: { permissions: string[] } };
      const permissions = data.permissions.filter((permission) => permission !== 'builds:read');
      await route.fulfill({ response, json: { ...envelope, data: { ...data, permissions } } });
    });
    await page.goto(`/ui/endpoints/${id}/versions`);
    await page.getByText('The draft does not compile: expected `;`').waitFor();
    await page.getByText('As in a terminal').click();
    await page.getByText('--> handler.rs:4').waitFor();
    await expectAccessible(page);
    await page.getByRole('link', { name: /^at handler\.rs:4:/ }).click();
    await page.locator('.cm-activeLine').filter({ hasText: 'Ada' }).waitFor();
    await page.getByText('The draft does not compile: expected `;`').waitFor();
    await editor(page).press('Control+s');
    await page.getByRole('heading', { name: 'It does not compile: 2 errors' }).waitFor();
    await must(stack.api.put(`/api/endpoints/${id}/code`, { code: MENDED }));
    await page.locator('.cm-line', { hasText: 'json!' }).waitFor();
    await editor(page).press('Control+s');
    await page.getByRole('heading', { name: 'It compiles' }).waitFor();
    expect(await page.getByRole('alert').count()).to.equal(0);
    expect(asked.filter((path) => path.startsWith('/api/builds'))).to.deep.equal([]);
    await close();
  });

  it('the code page shows errors and warnings of the compiler at their places, and keeps warnings', async () => {
    const code = MENDED.replace('let _ =', 'let unused =');
    const id = await create({ code: code.replace('{"name": name}', '{"name": takes("")}') });
    const { page, close } = await ui.open(`/ui/endpoints/${id}`);
    await write(page, 'fn takes(number: u32) -> u32 { number }\n');
    await editor(page).press('Control+s');
    await page.getByRole('heading', { name: 'It does not compile' }).waitFor();
    await problems(page).getByRole('button', { name: 'expected `u32`, found `&str`' }).waitFor();
    await expectAccessible(page);
    await stack.api.put(`/api/endpoints/${id}/code`, { code });
    await page.locator('.cm-line', { hasText: 'takes' }).first().waitFor({ state: 'detached' });
    // Nothing of the message before is shown above the editor while it is compiled again.
    await editor(page).press('Control+s');
    await page.getByText('Compiling …').waitFor();
    expect(await page.locator('main .error-text').count()).to.equal(0);
    await page.getByRole('heading', { name: 'It compiles: 1 warning' }).waitFor();

    await page.getByRole('link', { name: 'Endpoints' }).first().click();
    await page.getByRole('link', { name: /code/ }).first().waitFor();
    await page.goBack();
    await page.getByRole('heading', { name: 'It compiles: 1 warning' }).waitFor();
    await close();
  });

  it('the code page keeps unsaved code through a reload, which asks first, until it is discarded', async () => {
    const id = await create({ code: MENDED });
    const { page, close } = await ui.open(`/ui/endpoints/${id}`);
    await write(page, '// Not saved.\n');
    await page.getByText('Changed, not saved yet').waitFor();
    const asked: string[] = [];
    page.on('dialog', (dialog) => {
      asked.push(dialog.type());
      void dialog.accept();
    });
    await page.reload();
    await page.getByText('// Not saved.').waitFor();
    expect(asked).to.deep.equal(['beforeunload']);
    expect((await stored(id)).code).to.equal(MENDED);

    // Another tab of the page does not lose it either.
    await page.getByRole('link', { name: 'Versions' }).click();
    await page.getByRole('heading', { name: 'No version yet' }).waitFor();
    await page.getByRole('link', { name: 'Code', exact: true }).click();
    await page.getByText('// Not saved.').waitFor();
    await page.getByRole('button', { name: 'Discard changes' }).click();
    await page.getByText('// Not saved.').waitFor({ state: 'detached' });
    await page.reload();
    await page.getByText('fn handle').waitFor();
    expect(asked).to.deep.equal(['beforeunload']);
    await close();
  });

  it('the code page says once that the browser has no room for unsaved code, and saves it nevertheless', async () => {
    const id = await create({ code: MENDED });
    const { page, close } = await ui.open(`/ui/endpoints/${id}`);
    await editor(page).waitFor();
    // All of it, to the last characters.
    await page.evaluate(`
      let length = 8_000_000;
      for (let part = 0; length > 0; part++)
        try {
          sessionStorage.setItem('full' + part, 'x'.repeat(length));
        } catch {
          length = Math.floor(length / 2);
        }`);
    const said = page.getByText(/^The browser has no room for what you write/);
    await write(page, '// First.\n');
    await said.waitFor();
    await write(page, '// Second.\n');
    expect(await said.count()).to.equal(1);
    await page.keyboard.press('Control+s');
    await page.getByText('Saved, the same as version 1').waitFor();
    expect((await stored(id)).code).to.equal(`// Second.\n// First.\n${MENDED}`);
    await close();
  });

  it('the code page says that the gateway cannot be reached, until it can', async () => {
    const id = await create({ code: MENDED });
    const { page, context, close } = await ui.open(`/ui/endpoints/${id}`);
    await write(page, '// Waits.\n');
    await context.route('**/api/**', (route) => route.abort('connectionrefused'));
    await page.keyboard.press('Control+s');
    const notice = page.getByRole('alert').filter({ hasText: 'The gateway cannot be reached.' });
    await notice.waitFor();
    await context.unroute('**/api/**');
    await notice.waitFor({ state: 'detached' });
    await page.getByText('Changed, not saved yet').waitFor();
    await close();
  });

  it('the code page warns when somebody else has changed the draft, and loads theirs or overwrites it', async () => {
    const id = await create({ code: '// one\n' });
    const { page, close } = await ui.open(`/ui/endpoints/${id}`);
    await page.getByText('// one').waitFor();
    // Nothing is written here: one sees what the other has made.
    await stack.api.put(`/api/endpoints/${id}/code`, { code: '// two\n' });
    await page.getByText('// two').waitFor();

    await write(page, '// mine\n');
    await stack.api.put(`/api/endpoints/${id}/code`, { code: '// three\n' });
    const warning = page.getByRole('alert').filter({ hasText: 'Somebody else has changed this draft' });
    await warning.waitFor();
    await expectAccessible(page);
    await warning.getByRole('button', { name: 'See the difference' }).click();
    const dialog = page.getByRole('dialog', { name: 'Theirs and yours' });
    await dialog.getByRole('textbox', { name: 'Theirs' }).getByText('// three').waitFor();
    await dialog.getByRole('textbox', { name: 'Yours' }).getByText('// mine').waitFor();
    await page.keyboard.press('Escape');
    await warning.getByRole('button', { name: 'Take theirs' }).click();
    await warning.waitFor({ state: 'detached' });
    await eventually(async () =>
      expect(await editor(page).innerText())
        .to.include('// three')
        .and.not.include('// mine'),
    );

    await write(page, '// mine again\n');
    await stack.api.put(`/api/endpoints/${id}/code`, { code: '// four\n' });
    await warning.getByText('somebody at 127.0.0.1').waitFor();
    // Saving is no way around it: what one is asked is shown.
    await editor(page).press('Control+s');
    await warning.and(page.locator(':focus')).waitFor();
    await warning.getByRole('button', { name: 'Overwrite with mine' }).click();
    await page.getByText('Yours is the draft now.').waitFor();
    expect((await stored(id)).code).to.equal('// mine again\n// three\n');
    await close();
  });

  it('the code page offers a copy of unsaved code when somebody else has deleted the endpoint', async () => {
    const id = await create({ code: '// one\n' });
    const { page, close } = await ui.open(`/ui/endpoints/${id}`);
    await page.getByText('// one').waitFor();
    await write(page, '// mine\n');
    await stack.api.delete(`/api/endpoints/${id}`);
    await page.getByText('There is no such endpoint').waitFor();
    const left = page.getByRole('region', { name: 'Code that was not saved' });
    expect(await left.locator('pre').innerText()).to.equal('// mine\n// one\n');
    await expectAccessible(page);
    await left.getByRole('button', { name: 'Copy' }).click();
    await left.getByRole('button', { name: 'Discard' }).click();
    await left.waitFor({ state: 'detached' });
    await close();
  });

  it('the code page shows a build that was started elsewhere, and what the build waits for', async () => {
    const id = await create({ code: MENDED });
    await stack.processes.get('worker')?.end();
    await stack.api.post(`/api/endpoints/${id}/compile`, {}, { headers: { prefer: 'respond-async' } });
    const preparing = [{ what: 'the Rust SDK', crates: 3, of: 27, problem: null }];
    const { page, close } = await ui.open('/ui/services');
    await page.route('**/api/health', async (route) => {
      const response = await route.fetch();
      const { data, ...envelope } = (await response.json()) as { data: object };
      await route.fulfill({ response, json: { ...envelope, data: { ...data, preparing } } });
    });
    await page.goto(`/ui/endpoints/${id}`);
    await page.getByRole('status').getByText('Compiling …').waitFor();
    await page.getByText('Preparing the Rust SDK: 3 of 27 crates').waitFor();
    const crates = { crates: 7, of: 31, crate: 'reqwest', crate_seconds: 22, seconds: 40 };
    await page.route('**/api/builds/*', async (route) => {
      const response = await route.fetch();
      const { data, ...envelope } = (await response.json()) as { data: { state: string } };
      // While nobody builds it.
      const isWaiting = data.state === 'queued';
      await route.fulfill({
        response,
        json: { ...envelope, data: { ...data, ...(isWaiting && { crates }) } },
      });
    });
    await page.reload();
    await page.getByText('crates 7 of 31: reqwest (22 s)').waitFor();
    await stack.start('worker');
    await page.getByText('Saved, the same as version 1').waitFor();
    await close();
  });

  it('the code page does not overwrite the draft of somebody else when it missed the event', async () => {
    const id = await create({ code: '// one\n' });
    const { page, close } = await ui.open('/ui/services');
    await page.route('**/api/events', (route) => route.abort());
    await page.goto(`/ui/endpoints/${id}`);
    await page.getByText('// one').waitFor();
    await stack.api.put(`/api/endpoints/${id}/code`, { code: '// theirs\n' });
    await write(page, '// mine\n');
    await page.keyboard.press('Control+s');
    await page.getByText('Somebody else has changed this draft').waitFor();
    await page.getByRole('button', { name: 'Deploy …' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Deploy' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect((await stored(id)).code).to.equal('// theirs\n');
    await close();
  });

  it('the code page edits crates with versions and features, and shows an error of the API at its field', async () => {
    const dependencies = { regex: { version: '1', 'default-features': false } };
    const id = await create({ code: MENDED, dependencies });
    const { page, close } = await ui.open(`/ui/endpoints/${id}`);
    await page.getByRole('button', { name: 'Add a crate' }).click();
    await page.getByLabel('Crate', { exact: true }).nth(1).fill('uuid');
    await page.getByLabel('Version').nth(1).fill('no version');
    await page.getByLabel('Features').nth(1).fill('v4, serde');
    await page.getByLabel('Features').first().fill('std');
    const compile = page.getByRole('button', { name: /^Compile/ });
    await compile.click();
    await page
      .locator('.problem')
      .getByText(/version/i)
      .waitFor();
    await expectAccessible(page);
    await page.getByLabel('Version').nth(1).fill('1');
    // What is compiled of it is no part of this.
    await page.route('**/compile', (route) => route.abort());
    await compile.click();
    await eventually(async () =>
      expect((await stored(id)).dependencies).to.deep.equal({
        regex: { version: '1', 'default-features': false, features: ['std'] },
        uuid: { version: '1', features: ['v4', 'serde'] },
      }),
    );
    await page.getByRole('button', { name: 'Add a crate' }).click();
    await page.getByLabel('Version').nth(2).fill('1');
    await page.getByText('Without a name it is not saved').waitFor();
    await page.getByRole('button', { name: 'Remove this crate' }).click();
    await page.getByRole('button', { name: 'Remove uuid' }).click();
    await page.getByLabel('Features').fill('');
    await compile.click();
    await eventually(async () => expect((await stored(id)).dependencies).to.deep.equal(dependencies));
    await close();
  });

  it('the code page sets the edition, removes a lock, and updates crates', async () => {
    const lock = lockOf({ rand: '0.9.1', uuid: '1.17.0' });
    const id = await create({ code: MENDED, dependencies: { uuid: '1' }, lock });
    const { page, close } = await ui.open(`/ui/endpoints/${id}`);
    await page.getByText('A Cargo.lock says the versions of 2 crates.').waitFor();
    await expectAccessible(page);
    expect(await page.getByRole('button', { name: 'Update crates' }).count()).to.equal(0);
    await page.getByLabel('Edition of Rust').selectOption('2024');
    await page.getByRole('button', { name: 'Remove the lock' }).click();
    const asked: (string | null)[] = [];
    // What is compiled of it is no part of this.
    await page.route('**/compile', (route) => {
      asked.push(route.request().postData());
      return route.abort();
    });
    await page.getByRole('button', { name: 'Update crates' }).click();
    await eventually(() => expect(asked).to.deep.equal(['{"update":true}']));
    expect(await stored(id)).to.include({ edition: '2024', lock: null });
    await page.getByRole('button', { name: /^Compile/ }).click();
    await eventually(() => expect(asked[1]).to.equal('{}'));
    await close();
  });

  it('the code page shows hostile text as text, also that of the compiler, and fits on a phone', async () => {
    const code = `compile_error!(r##"${HOSTILE}"##);\n// ${HOSTILE}\n`;
    const id = await create({ name: HOSTILE, code });
    await stack.api.post(`/api/endpoints/${id}/compile`);
    const { page, close } = await ui.open(`/ui/endpoints/${id}`, { viewport: { width: 360, height: 740 } });
    await problems(page).getByText('<b>bold</b>').first().waitFor();
    await page.locator('.crumbs').getByText('<b>bold</b>').waitFor();
    await page.locator('.cm-lintRange-error').first().hover();
    await page.locator('.cm-tooltip-lint').getByText('<b>bold</b>').waitFor();
    expect(await page.locator('main img:not(.cm-widgetBuffer), main b').count()).to.equal(0);
    expect(await page.title()).to.match(/^GET \/code/);
    await expectFits(page);
    await close();
  });

  it('the editor opens at the place in its address, completes words, searches, and is left by keyboard', async () => {
    const id = await create({ code: MENDED });
    const { page, close } = await ui.open(`/ui/endpoints/${id}?line=4&column=28`);
    await page.locator('.cm-activeLine').filter({ hasText: 'let _ =' }).waitFor();
    expect(await page.evaluate(`document.activeElement.getAttribute('aria-label')`)).to.equal(
      'Code of the handler',
    );
    // Characters, not units: the place is behind "name".
    await page.keyboard.insertText('|');
    expect(await editor(page).innerText()).to.include('let name| = "Ada"');
    await page.keyboard.press('Control+Home');
    await page.keyboard.type('handler_');
    await page.getByRole('option', { name: 'handler_loop' }).waitFor();
    await page.keyboard.press('Enter');
    await page.keyboard.press('Control+f');
    await page.getByRole('textbox', { name: 'Find' }).pressSequentially('Ada');
    await page.locator('.cm-searchMatch').filter({ hasText: 'Ada' }).waitFor();
    await expectAccessible(page);
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    await page.keyboard.press('Tab');
    expect(await page.evaluate(`document.activeElement.closest('.cm-editor') === null`)).to.equal(true);
    await close();
  });
});

describe('the code of an endpoint when a session ends', function () {
  this.timeout(120_000);
  const EMAIL = 'ada@example.com';
  const PASSWORD = 'correct horse battery';
  let stack: Stack;
  let ui: Ui;
  before(async () => {
    stack = await startStack({ processes: ['web', 'worker'] });
    ui = await openBrowser(stack.apiUrl);
  });
  after(async () => {
    await ui?.close();
    await stack?.close();
  });

  it('the code page saves code after signing in again when the session has ended', async () => {
    const body = { name: 'kept', path: '/kept', method: 'GET', domain: '*', code: MENDED };
    const { id } = expectData<{ id: string }>(await stack.api.post('/api/endpoints', body), 201);
    const admin = { email: EMAIL, name: 'Ada', password: PASSWORD, role: 'admin' };
    expectData(await stack.api.post('/api/users', admin), 201);
    const { page, context, close } = await ui.open(`/ui/endpoints/${id}`);
    const signIn = async () => {
      await page.getByLabel('Password').fill(PASSWORD);
      await page.getByRole('button', { name: 'Sign in' }).click();
    };
    await page.getByLabel('Email').fill(EMAIL);
    await signIn();
    const editor = page.getByRole('textbox', { name: 'Code of the handler' });
    await editor.click();
    await page.keyboard.press('Control+Home');
    await page.keyboard.insertText('// Kept.\n');
    // Not before the key: the page may read something meanwhile, and would ask for the password before it is pressed.
    await page.route(`**/api/endpoints/${id}`, async (route) => {
      await context.clearCookies();
      await route.continue();
    });
    await page.keyboard.press('Control+s');
    await page.getByText('Your session has ended').waitFor();
    await page.unrouteAll({ behavior: 'wait' });
    await signIn();
    await page.getByText('Saved, the same as version 1').waitFor();
    await page.getByText('// Kept.').waitFor();
    expect(await page.getByRole('alert').filter({ hasText: 'session' }).count()).to.equal(0);
    await close();
  });
});
