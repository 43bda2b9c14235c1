/** The way in: an empty gateway, its first endpoint, its first admin; signing in, and sessions that end. */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { eventually } from '../support/eventually.js';
import { type Stack, startStack } from '../support/processes.js';
import { expectAccessible, expectFits, openBrowser, type Ui } from '../support/ui.js';

const EMAIL = 'ada@example.com';
const PASSWORD = 'correct horse battery';

describe('the way into the web UI', function () {
  this.timeout(180_000);
  let stack: Stack;
  let ui: Ui;
  before(async () => {
    stack = await startStack();
    ui = await openBrowser(stack.apiUrl);
  });
  after(async () => {
    await ui?.close();
    await stack?.close();
  });

  it('/ redirects to the overview of the web UI', async () => {
    const { page, close } = await ui.open('/');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    expect(new URL(page.url()).pathname).to.equal('/ui');
    await close();
  });

  it('the overview leads from an empty gateway to a live URL with one click', async () => {
    const { page, close } = await ui.open('/ui');
    await page.getByRole('heading', { name: 'Your first endpoint' }).waitFor();
    await expectAccessible(page);
    await page.getByRole('button', { name: 'Deploy' }).click();
    await page.getByText('Deploying').waitFor();
    // A reload meanwhile loses nothing, nor does one afterwards.
    await page.reload();
    await page.getByText('It is live at').waitFor();
    await page.reload();
    await page.getByText('It is live at').waitFor();
    expect(await page.locator('pre').textContent()).to.equal('{"message":"Hello, Ada!"}');
    expect(await page.getByRole('link', { name: '/hello/Ada' }).getAttribute('href')).to.equal(
      `${stack.gatewayUrl}/hello/Ada`,
    );
    expect((await stack.gateway.get('/hello/Ada')).body).to.deep.equal({ message: 'Hello, Ada!' });
    // By its URL it is found, too.
    await page.keyboard.press('Control+k');
    await page.keyboard.type(`${stack.gatewayUrl}/hello/Ada`);
    await page.getByRole('option', { name: 'GET /hello/{name} Answers it' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: 'Edit its code' }).click();
    await page.waitForURL(/\/ui\/endpoints\/[0-9a-f-]{36}$/);
    await close();
  });

  it('the overview shows the requests of now, of the last hour and of the last day', async () => {
    const { page, close } = await ui.open('/ui');
    // In another tab, too, one finds where it answers.
    await page.getByRole('link', { name: `${stack.gatewayUrl}/hello/Ada` }).waitFor();
    for (let sent = 0; sent < 20; sent++) await stack.gateway.get('/hello/Ada');
    await page.getByText('Requests a second').waitFor();
    await eventually(async () =>
      expect(await page.locator('main').innerText()).to.match(/2\d in the last hour/),
    );
    await page.getByRole('button', { name: 'Last day' }).click();
    await page.getByText('2', { exact: false }).getByText('in the last day').first().waitFor();
    expect(page.url()).to.include('range=day');
    await page.setViewportSize({ width: 360, height: 740 });
    await expectFits(page);
    await expectAccessible(page);
    await close();
  });

  it('the overview makes the first admin, and from then on everybody has to sign in', async () => {
    const other = await ui.open('/ui/endpoints');
    await other.page.getByText('Open: nobody has to sign in').waitFor();
    const { page, context, close } = await ui.open('/ui');
    const tab = await context.newPage();
    await tab.goto('/ui/endpoints');
    await tab.getByText('Open: nobody has to sign in').waitFor();
    await page.getByRole('button', { name: 'Make the first admin' }).click();
    await page.getByLabel('Email').fill(EMAIL);
    await page.getByLabel('Password').fill('short');
    await page.getByRole('button', { name: 'Create and sign in' }).click();
    await page.locator('.field').filter({ hasText: 'Password' }).locator('.problem').waitFor();
    await page.getByLabel('Password').fill(PASSWORD);
    // The other tab may notice that it is nobody before this one is somebody.
    await page.route('/api/session', async (route) => {
      if (route.request().method() === 'POST')
        await tab.getByRole('dialog').getByText('From now on, people have to sign in').waitFor();
      await route.continue();
    });
    await page.getByRole('button', { name: 'Create and sign in' }).click();
    await page.getByRole('link', { name: EMAIL }).waitFor();
    expect((await stack.api.get('/api/domains')).status).to.equal(401);
    // Another tab of this browser knows it, too; another browser asks.
    await tab.getByRole('link', { name: EMAIL }).waitFor();
    await other.page.getByRole('dialog').getByText('From now on, people have to sign in').waitFor();
    await other.close();
    // What this page shows was not asked for again by nobody; the other tabs find it out by what they show.
    const refused = await context.request.get('/api/audit?outcome=refused&limit=100');
    const actions = ((await refused.json()) as { data: { action: string }[] }).data.map(
      ({ action }) => action,
    );
    const ofOthers = ['/api/events', '/api/domains', '/api/collections', '/api/endpoints'];
    expect(actions.filter((action) => !ofOthers.includes(action))).to.deep.equal([]);
    await close();
  });

  it('signing in leads to the page that was requested', async () => {
    const { page, close } = await ui.open('/ui/endpoints?search=hello');
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await page.getByLabel('Email').and(page.locator(':focus')).waitFor();
    await expectAccessible(page);
    await page.getByLabel('Email').fill(EMAIL);
    await page.getByLabel('Password').fill('a wrong password');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').getByText('The email or the password is wrong').waitFor();
    await page.getByLabel('Password').fill(PASSWORD);
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: '/hello/{name}' }).waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await close();
  });

  it('a dialog keeps what was typed when a session ends, and saves it after signing in again', async () => {
    const { page, context, close } = await ui.open('/ui/endpoints');
    await page.getByLabel('Email').fill(EMAIL);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('button', { name: 'New domain' }).click();
    await page.getByLabel('Host').fill('kept.example.com');
    await context.clearCookies();
    await createUnderForm(page);
    await page.getByText('Your session has ended').waitFor();
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('Your session has ended').waitFor({ state: 'detached' });
    expect(await page.getByLabel('Host').inputValue()).to.equal('kept.example.com');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('heading', { name: 'kept.example.com' }).waitFor();
    await close();
  });

  it('a session that began anew stays when the answer to a request from before comes late', async () => {
    const { page, context, close } = await ui.open('/ui/endpoints');
    await page.getByLabel('Email').fill(EMAIL);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('button', { name: 'New domain' }).waitFor();
    await context.clearCookies();
    let answerLate: () => Promise<void> = async () => undefined;
    const requested = new Promise<void>((resolve) => {
      void page.route('**/api/session', async (route) => {
        if (route.request().method() !== 'GET') return route.continue();
        const response = await route.fetch();
        answerLate = () => route.fulfill({ response });
        resolve();
      });
    });
    // As another tab does.
    const signedIn = "new BroadcastChannel('edge-session').postMessage('signed in')";
    await page.evaluate(signedIn);
    await requested;
    await page.getByRole('button', { name: 'New domain' }).click();
    await page.getByLabel('Host').fill('late.example.com');
    await createUnderForm(page);
    await page.getByText('Your session has ended').waitFor();
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('Your session has ended').waitFor({ state: 'detached' });
    const answered = page.waitForResponse((response) => response.url().endsWith('/api/session'));
    await answerLate();
    await answered;
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('heading', { name: 'late.example.com' }).waitFor();
    await close();
  });
});

/** Whatever is read in the background may have found out already that the session has ended: the form is above. */
async function createUnderForm(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Create' }).dispatchEvent('click');
}

describe('the first admin of an API with API_KEY', function () {
  this.timeout(60_000);
  let stack: Stack;
  let ui: Ui;
  before(async () => {
    stack = await startStack({ processes: ['web'], env: { API_KEY: 'the-right-key' } });
    ui = await openBrowser(stack.apiUrl);
  });
  after(async () => {
    await ui?.close();
    await stack?.close();
  });

  it('the first admin is made with API_KEY, which the browser does not keep', async () => {
    const { page, context, close } = await ui.open('/ui');
    await page.getByText('Make an admin with API_KEY').click();
    await page.getByLabel('API key').fill('a-wrong-key');
    await page.getByLabel('Email of the admin').fill(EMAIL);
    await page.getByLabel('Password of the admin').fill(PASSWORD);
    await page.getByRole('button', { name: 'Create and sign in' }).click();
    await page.getByRole('alert').getByText('unauthorized').waitFor();
    await expectAccessible(page);
    await page.getByLabel('API key').fill('the-right-key');
    await page.getByRole('button', { name: 'Create and sign in' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    const { cookies, origins } = await context.storageState();
    expect(JSON.stringify(origins)).not.to.include('the-right-key');
    expect(cookies).to.have.length(1);
    expect(cookies[0]).to.include({ httpOnly: true, sameSite: 'Strict' });
    await close();
  });
});
