import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { ADMIN, PASSWORD, signIn } from '../../support/access.js';
import { must, type Stack, startStack } from '../../support/processes.js';
import { expectAccessible, expectUnharmed, HOSTILE, openBrowser, type Ui } from '../../support/ui.js';

describe('UI: access', () => {
  let stack: Stack;
  let ui: Ui;
  let admin: Readonly<Record<string, string>>;

  before(async () => {
    stack = await startStack({ processes: ['web'] });
    ui = await openBrowser(stack.apiUrl);
  });
  after(async () => {
    await ui?.close();
    await stack?.close();
  });

  /** A window of somebody who is signed in. */
  async function openAs(email: string, path: string, password = PASSWORD) {
    const opened = await ui.open('/ui');
    const response = await opened.context.request.post('/api/session', {
      data: { email, password },
      headers: { origin: stack.apiUrl },
    });
    expect(response.status()).to.equal(201);
    await opened.page.goto(path);
    return opened;
  }
  const dialog = (page: Page) => page.getByRole('dialog');

  it('the first user becomes an admin, and is signed in', async () => {
    const { page, close } = await ui.open('/ui/access');
    await page.getByText('There are no users yet').waitFor();
    await expectAccessible(page);
    await page.getByRole('button', { name: 'New user' }).click();
    // They can do everything: nothing less is offered.
    await page.getByText('The first user is an admin, and closes the gateway').waitFor();
    expect(
      await dialog(page)
        .getByLabel(/Role|Hosts/)
        .count(),
    ).to.equal(0);
    await page.getByLabel('Name', { exact: true }).fill('Root');
    await page.getByLabel('Email').fill(ADMIN);
    await page.getByLabel('Password', { exact: true }).fill('short');
    await page.getByRole('button', { name: 'Create the user' }).click();
    const field = page.locator('.field', { has: page.getByLabel('Password', { exact: true }) });
    await field.getByText('must have at least 12 characters').waitFor();
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
    await page.getByRole('button', { name: 'Create the user' }).click();
    await page.getByText('You are the first admin').waitFor();
    await page.getByRole('row', { name: /Root \(you\)/ }).waitFor();
    await page.getByRole('link', { name: 'Root' }).waitFor();
    await close();
    admin = await signIn(stack.api, ADMIN);
  });

  it('the users page creates, limits, signs out, edits and deletes a user, and sets a new password', async () => {
    const { page, close } = await openAs(ADMIN, '/ui/access/users?new=user');
    await page.getByLabel('Name', { exact: true }).fill(HOSTILE.slice(0, 100));
    await page.getByLabel('Email').fill('ada@example.test');
    await page.getByRole('button', { name: 'Make one up' }).click();
    const made = await page.getByLabel('Password', { exact: true }).inputValue();
    expect(made).to.match(/^\w{20}$/);
    await page.getByLabel('Role').selectOption('viewer');
    await page.getByLabel('Hosts', { exact: true }).fill('shop.test no!host');
    await page.getByRole('button', { name: 'Create the user' }).click();
    await dialog(page)
      .locator('.problem')
      .getByText(/^“no!host”: /)
      .waitFor();
    await page.getByLabel('Hosts', { exact: true }).fill('shop.test');
    await expectAccessible(page);
    await page.getByRole('button', { name: 'Create the user' }).click();
    const row = page.getByRole('row', { name: /ada@example\.test/ });
    await row.getByText('viewer').waitFor();
    await row.getByText('shop.test').waitFor();
    await expectAccessible(page);
    await expectUnharmed(page);

    await signIn(stack.api, 'ada@example.test', made);
    await page.getByRole('button', { name: 'Sessions of ada@example.test' }).click();
    await dialog(page)
      .getByRole('row', { name: /127\.0\.0\.1/ })
      .waitFor();
    await dialog(page).getByRole('button', { name: 'End all sessions' }).click();
    await dialog(page).getByText('Signed in nowhere.').waitFor();
    await page.keyboard.press('Escape');

    await page.getByRole('button', { name: 'New password for ada@example.test' }).click();
    await page.getByLabel('Password', { exact: true }).fill('another long password');
    await page.getByRole('button', { name: 'Set the password' }).click();
    await page.getByText('The password is set').waitFor();
    await signIn(stack.api, 'ada@example.test', 'another long password');

    await page.getByRole('button', { name: 'Edit ada@example.test' }).click();
    await page.getByLabel('Role').selectOption('editor');
    await page.getByRole('button', { name: 'Save' }).click();
    await row.getByText('editor').waitFor();
    await page.getByRole('button', { name: 'Delete ada@example.test' }).click();
    await page.getByRole('button', { name: 'Delete the user' }).click();
    await row.waitFor({ state: 'detached' });

    // The last admin stays, and the page says why.
    await page.getByRole('button', { name: `Delete ${ADMIN}` }).click();
    await page.getByRole('button', { name: 'Delete the user' }).click();
    await dialog(page)
      .getByRole('alert')
      .getByText(/last_admin/)
      .waitFor();
    await close();
  });

  it('the dialog of a user keeps what was typed when somebody else deletes the user', async () => {
    const by = { headers: admin };
    const gone = { email: 'gone@example.test', name: 'Gone', role: 'viewer', password: PASSWORD };
    const open = async (param: string) => {
      const { id } = (await must(stack.api.post('/api/users', gone, by))) as { id: string };
      return { id, ...(await openAs(ADMIN, `/ui/access/users?${param}=${id}`)) };
    };
    for (const [param, label, action] of [
      ['edit', 'Name', 'Save'],
      ['password', 'Password', 'Set the password'],
    ] as const) {
      const { id, page, close } = await open(param);
      await dialog(page).getByLabel(label, { exact: true }).fill('Typed for nothing');
      await must(stack.api.delete(`/api/users/${id}`, by));
      await dialog(page).getByText('This user has been deleted').waitFor();
      expect(await dialog(page).getByLabel(label, { exact: true }).inputValue()).to.equal(
        'Typed for nothing',
      );
      expect(await dialog(page).getByRole('button', { name: action }).isDisabled()).to.equal(true);
      await page.keyboard.press('Escape');
      await dialog(page).getByRole('button', { name: 'Discard it' }).click();
      await dialog(page).waitFor({ state: 'detached' });
      expect(new URL(page.url()).search).to.equal('');
      await close();
    }
  });

  it('a user who is limited to some hosts is not offered what the API refuses', async () => {
    const by = { headers: admin };
    const make = async (path: string, body: object) =>
      ((await must(stack.api.post(path, body, by))) as { id: string }).id;
    await make('/api/domains', { name: 'Limited', host: 'limited.test' });
    const limited = { email: 'limited@example.test', name: 'Limited', role: 'editor', password: PASSWORD };
    const user = await make('/api/users', { ...limited, domains: ['limited.test'] });
    const http = { service_type: 'http', config: { base_url: 'https://example.com' } };
    const shared = await make('/api/services', { ...http, name: 'shared' });
    const own = await make('/api/services', { ...http, name: 'own', domains: ['limited.test'] });

    const { page, close } = await openAs(limited.email, '/ui/services');
    await page.getByRole('button', { name: 'Test own' }).waitFor();
    expect(await page.getByRole('button', { name: 'Test shared' }).count()).to.equal(0);
    await page.goto(`/ui/services/${own}`);
    await page.getByRole('button', { name: 'Delete' }).waitFor();
    await page.getByRole('link', { name: 'Settings' }).waitFor();
    await page.goto(`/ui/services/${shared}?tab=settings`);
    await page.getByRole('heading', { name: 'shared', level: 1 }).waitFor();
    await page.getByRole('heading', { name: 'Endpoints that use it' }).waitFor();
    for (const name of ['Test', 'Activate', 'Deactivate', 'Delete'])
      expect(await page.getByRole('button', { name, exact: true }).count(), name).to.equal(0);
    expect(await page.getByRole('link', { name: 'Settings' }).count()).to.equal(0);

    // What is offered is done: the new service is for the hosts of who makes it.
    await page.goto('/ui/services?new=http');
    await dialog(page).getByLabel('Name', { exact: true }).fill('mine');
    const types = await dialog(page).getByLabel('Type').locator('option').allTextContents();
    expect(types).to.include('PostgreSQL').and.not.to.include('SQLite');
    await dialog(page).getByLabel('Base URL').fill('https://example.com');
    await dialog(page).getByRole('button', { name: 'Create the service' }).click();
    await page.getByRole('heading', { name: 'mine', level: 1 }).waitFor();
    await page.goto('/ui/alerts?new=alert');
    await dialog(page).getByLabel('About').waitFor();
    const abouts = await dialog(page).getByLabel('About').locator('option').allTextContents();
    expect(abouts).to.deep.equal(['A host', 'An endpoint']);
    await close();
    const made = (await must(stack.api.get('/api/services?search=mine', by))) as { id: string }[];
    for (const id of [shared, own, ...made.map((service) => service.id)])
      await must(stack.api.delete(`/api/services/${id}`, by));
    await must(stack.api.delete(`/api/users/${user}`, by));
  });

  it('a token is shown once, works, and is revoked', async () => {
    const { page, close } = await openAs(ADMIN, '/ui/access/tokens');
    await page.getByText('There are no tokens').waitFor();
    await page.getByRole('button', { name: 'New token' }).first().click();
    await page.getByLabel('Name', { exact: true }).fill('CI');
    expect(await page.getByRole('button', { name: 'Make the token' }).isDisabled()).to.equal(true);
    await page.getByText('Choose what it may first.').waitFor();
    await page.getByLabel('domains:read').check();
    await page.getByText('Choose what it may first.').waitFor({ state: 'detached' });
    await page.getByLabel('Expires').selectOption('at');
    await page.getByLabel('Time').fill('2020-01-01T00:00');
    await page.getByRole('button', { name: 'Make the token' }).click();
    await dialog(page).locator('.problem').waitFor();
    await page.getByLabel('Expires').selectOption('30');
    await expectAccessible(page);
    await page.getByRole('button', { name: 'Make the token' }).click();
    const token = await page.getByLabel('Token', { exact: true }).inputValue();
    await expectAccessible(page);
    await page.getByRole('button', { name: 'Copy', exact: true }).click();
    await page.getByRole('button', { name: 'Copied', exact: true }).waitFor();
    // Neither Escape nor a click beside it loses it.
    for (let times = 0; times < 3; times++) {
      await page.keyboard.press('Escape');
      await page.getByLabel('Token', { exact: true }).waitFor();
      await dialog(page).waitFor();
    }
    expect(await page.getByLabel('Token', { exact: true }).inputValue()).to.equal(token);
    await page.getByRole('button', { name: 'I have copied it' }).click();
    expect(await page.content()).not.to.include(token);
    const headers = { authorization: `Bearer ${token}` };
    expect((await stack.api.get('/api/domains', { headers })).status).to.equal(200);
    expect((await stack.api.get('/api/services', { headers })).status).to.equal(403);

    await expectAccessible(page);
    await page.getByRole('button', { name: 'Revoke CI' }).click();
    await page.getByRole('button', { name: 'Revoke the token' }).click();
    await page.getByText('There are no tokens').waitFor();
    expect((await stack.api.get('/api/domains', { headers })).status).to.equal(401);
    await close();
  });

  it('the audit page shows who changed a domain, with before and after, and has filters in its address', async () => {
    const by = { headers: admin };
    const { id } = (await must(stack.api.post('/api/domains', { name: 'Shop', host: 'shop.test' }, by))) as {
      id: string;
    };
    await must(stack.api.put(`/api/domains/${id}`, { name: HOSTILE.slice(0, 100) }, by));
    expect((await stack.api.delete(`/api/domains/${id}`)).status).to.equal(401);
    const { page, close } = await openAs(ADMIN, `/ui/domains/${id}`);
    // One click to who it was, another to what.
    await page.getByRole('link', { name: 'Who changed this?' }).click();
    const entries = page.getByRole('list', { name: 'Audit entries' }).getByRole('listitem');
    await entries.nth(1).waitFor();
    // What was refused is not in the way.
    expect(await page.getByText(/was refused to/).count()).to.equal(0);
    const changed = entries.filter({ hasText: `${ADMIN} changed the domain` });
    await changed.first().locator('summary').click();
    await changed.getByRole('cell', { name: 'Shop' }).waitFor();
    await changed.getByRole('cell', { name: HOSTILE.slice(0, 100) }).waitFor();
    await expectAccessible(page);
    await expectUnharmed(page);
    await changed.getByRole('link', { name: /^[0-9a-f-]{36}$/ }).click();
    await entries.nth(1).waitFor({ state: 'detached' });
    expect(new URL(page.url()).searchParams.get('request_id')).to.match(/^[0-9a-f-]{36}$/);
    await page.goBack();
    await entries.nth(1).waitFor();
    await page.getByRole('button', { name: 'Clear the filters' }).click();
    await page.getByLabel('Outcome').selectOption('refused');
    await page
      .getByText(/was refused to/)
      .first()
      .waitFor();
    await page.getByLabel('Who').selectOption({ label: ADMIN });
    await page.getByText('No entry is like this').waitFor();
    await page.goBack();
    await page
      .getByText(/was refused to/)
      .first()
      .waitFor();
    await close();
  });

  it('the audit page shows objects by their names, with links that have their ids', async () => {
    const by = { headers: admin };
    const make = async (path: string, body: object) =>
      ((await must(stack.api.post(path, body, by))) as { id: string }).id;
    const domain = await make('/api/domains', { name: 'Named', host: 'named.test' });
    const shelf = await make('/api/collections', { name: 'Shelf', domain_id: domain });
    const path = '/books';
    const book = await make('/api/endpoints', { name: 'Books', path, method: 'GET', domain: 'named.test' });
    // Neither changes a member that has a name.
    await must(stack.api.put(`/api/endpoints/${book}`, { collection_id: shelf }, by));
    await must(stack.api.put(`/api/endpoints/${book}`, { enabled: false }, by));
    const { page, close } = await openAs(ADMIN, `/ui/access/audit?object_id=${book}`);
    const entries = page.getByRole('list', { name: 'Audit entries' }).getByRole('listitem');
    await entries.nth(2).waitFor();
    for (const entry of await entries.all()) {
      await entry.locator('summary').getByText('“GET named.test/books”').waitFor();
      expect(await entry.locator('summary').innerText()).not.to.include(book);
    }
    const moved = entries.nth(1);
    await moved.locator('summary').click();
    await moved.getByRole('cell', { name: 'Shelf' }).waitFor();
    const link = moved.getByRole('link', { name: 'Shelf' });
    expect(await link.getAttribute('href')).to.equal(`/ui/collections/${shelf}`);
    expect(await link.getAttribute('title')).to.equal(shelf);
    await moved.getByRole('link', { name: 'GET named.test/books' }).waitFor();
    await expectAccessible(page);
    await close();
  });

  it('the account page changes the own name and password, and ends another session', async () => {
    const body = { email: 'eve@example.test', name: 'Eve', password: PASSWORD, role: 'viewer' };
    await must(stack.api.post('/api/users', body, { headers: admin }));
    const { page, close } = await openAs('eve@example.test', '/ui/access/account');
    // What a viewer may not do is not offered.
    await page.getByRole('navigation', { name: 'Access' }).getByRole('link', { name: 'Tokens' }).waitFor();
    for (const name of ['Users', 'Audit'])
      expect(
        await page.getByRole('navigation', { name: 'Access' }).getByRole('link', { name }).count(),
      ).to.equal(0);
    await page.getByLabel('Name', { exact: true }).fill('Eve Example');
    await page.getByRole('button', { name: 'Save the name' }).click();
    await page.getByRole('link', { name: 'Eve Example' }).waitFor();

    const [current, next, again] = ['Current password', 'New password', 'New password again'];
    const fill = async (values: readonly string[]) => {
      for (const [at, label] of [current, next, again].entries())
        await page.getByLabel(label, { exact: true }).fill(values[at] ?? '');
      await page.getByRole('button', { name: 'Change the password' }).click();
    };
    await fill(['wrong wrong wrong', 'a new long password', 'a new long password']);
    await page.getByText('is not the password').waitFor();
    await fill([PASSWORD, 'a new long password', 'another new password']);
    await page.getByText('is not the same').waitFor();
    await expectAccessible(page);
    await fill([PASSWORD, 'a new long password', 'a new long password']);
    await page.getByText('Your password is changed').waitFor();

    await signIn(stack.api, 'eve@example.test', 'a new long password');
    await page.getByRole('link', { name: 'Sessions' }).click();
    await page.getByText('this one').waitFor();
    await page.getByRole('button', { name: /^End the session/ }).click();
    await page.getByText('The session has ended.').waitFor();
    await expectAccessible(page);
    await page.goto('/ui/access/users');
    await page.getByText('This is not here, or you may not see it').waitFor();
    await close();
  });
});
