/** Variables and policies, as forms of a domain save them: what others change meanwhile stays, and nothing is lost. */
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { makeCertificates } from '../../support/certificates.js';
import { expectData } from '../../support/expect.js';
import { type Stack, startStack } from '../../support/processes.js';
import { tempDir } from '../../support/temp.js';
import { expectAccessible, openBrowser, type Ui } from '../../support/ui.js';

interface Schema {
  readonly properties: Readonly<Record<string, object>>;
}

/** The description of the API, as far as a test changes it. */
interface Description {
  readonly components: {
    readonly schemas: {
      readonly Domain: {
        readonly properties: { readonly policies: { readonly properties: { readonly maintenance: Schema } } };
      };
    };
  };
}

describe('UI: variables and policies', () => {
  let stack: Stack;
  let ui: Ui;
  let id: string;
  before(async () => {
    stack = await startStack({ processes: ['web'] });
    const domain = { name: 'Shared', host: 'shared.test' };
    ({ id } = expectData<{ id: string }>(await stack.api.post('/api/domains', domain), 201));
    ui = await openBrowser(stack.apiUrl);
  });
  after(async () => {
    await ui?.close();
    await stack?.close();
  });

  const save = async (page: Page) => {
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved', { exact: true }).first().waitFor();
    await page.getByRole('button', { name: 'Discard changes' }).waitFor({ state: 'detached' });
  };

  describe('variables', () => {
    const path = () => `/api/domains/${id}/variables`;
    const put = async (variables: object) => expectData(await stack.api.put(path(), variables));
    const stored = async () => expectData(await stack.api.get(path()));
    /** Somebody else changes them, and the page has read that. */
    const changeMeanwhile = async (page: Page, variables: object) => {
      const isRead = page.waitForResponse((response) => response.url().endsWith(path()));
      await put(variables);
      await (await isRead).finished();
    };

    it('saving variables keeps those that others have added or changed meanwhile', async () => {
      await put({ A: '1', C: '1' });
      const { page, close } = await ui.open(`/ui/domains/${id}/variables`);
      await page.getByLabel('Value of A').fill('mine');
      await changeMeanwhile(page, { A: '1', B: 'theirs', C: '2' });
      await save(page);
      expect(await stored()).to.deep.equal({ A: 'mine', B: 'theirs', C: '2' });
      await page.getByLabel('Value of B').waitFor();

      // What is typed is kept over a reload, and with it what was there when it was typed.
      await page.getByRole('button', { name: 'Remove C' }).click();
      await page.getByLabel('Value of A').fill('mine again');
      await put({ A: 'mine', B: 'theirs, changed', C: '2', D: 'new' });
      await page.reload();
      await page.getByRole('button', { name: 'Discard changes' }).waitFor();
      expect(await page.getByLabel('Value of A').inputValue()).to.equal('mine again');
      await save(page);
      expect(await stored()).to.deep.equal({ A: 'mine again', B: 'theirs, changed', D: 'new' });

      // What is as it was is no change.
      await page.getByLabel('Value of A').fill('x');
      await changeMeanwhile(page, { A: 'mine again' });
      await page.getByLabel('Value of A').fill('mine again');
      await page.getByRole('button', { name: 'Discard changes' }).waitFor({ state: 'detached' });
      await page.getByLabel('Value of B').waitFor({ state: 'detached' });
      await close();
    });

    it('variables are not saved with two values of one name', async () => {
      await put({ A: '1' });
      const { page, close } = await ui.open(`/ui/domains/${id}/variables`);
      await page.getByRole('button', { name: 'Add a variable' }).click();
      await page.getByLabel('Name of the new variable').fill('A');
      await page.getByLabel('Value of A').last().fill('2');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText('There is another variable of this name').first().waitFor();
      expect(await page.locator('[aria-invalid=true]').count()).to.equal(2);
      expect(await stored()).to.deep.equal({ A: '1' });
      await page.getByLabel('Name of A').last().fill('B');
      await save(page);
      expect(await stored()).to.deep.equal({ A: '1', B: '2' });
      await close();
    });
  });

  it('the page of a domain adds a certificate, with what is wrong at its field, and deletes it', async () => {
    const folder = await tempDir('certificate');
    const { cert, key } = await makeCertificates(folder.path, ['shared.test']);
    await folder.remove();
    const { page, close } = await ui.open(`/ui/domains/${id}/general`);
    const dialog = page.getByRole('dialog', { name: 'Certificate of shared.test' });
    await page.getByRole('button', { name: 'Add a certificate' }).click();
    await dialog.getByLabel('Certificate').fill('no PEM');
    expect(await dialog.getByRole('button', { name: 'Save' }).isDisabled()).to.equal(true);
    await dialog.getByLabel('Private key').fill(key.pem);
    await expectAccessible(page);
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByLabel('Certificate').and(page.locator('[aria-invalid=true]')).fill(cert.pem);
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByText(/Test authority/).waitFor();
    await page.getByRole('button', { name: 'Delete the certificate' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByText('No certificate: this host is not served over TLS.').waitFor();
    await close();
  });

  describe('policies', () => {
    const put = async (policies: object | null) =>
      expectData(await stack.api.put(`/api/domains/${id}`, { policies }));
    const stored = async () =>
      expectData<{ policies: unknown }>(await stack.api.get(`/api/domains/${id}`)).policies;
    const edit = async (title: string) => {
      const opened = await ui.open(`/ui/domains/${id}/policies`);
      await opened.page.getByRole('button', { name: `Edit ${title}` }).click();
      return opened;
    };

    it('saving a policy keeps what others have changed of it, except for the field that was typed', async () => {
      await put({ cors: { origins: ['https://a.test'] } });
      const { page, close } = await edit('Pages of other origins');
      await page.getByLabel('Methods').fill('GET');
      await put({ cors: { origins: ['https://a.test', 'https://b.test'] }, timeout: 5_000 });
      await page.getByText('Origins: https://a.test, https://b.test', { exact: true }).waitFor();
      await save(page);
      expect(await stored()).to.deep.equal({
        cors: { origins: ['https://a.test', 'https://b.test'], methods: ['GET'] },
        timeout: 5_000,
      });
      // Somebody else takes it away: what is typed is still to be set.
      await page.getByRole('textbox', { name: 'Origins' }).fill('https://c.test');
      await put(null);
      await page.getByText(/^Origins: https:/).waitFor({ state: 'detached' });
      await save(page);
      expect(await stored()).to.deep.equal({ cors: { origins: ['https://c.test'] } });
      await close();
    });

    it('a policy is shown as JSON, with what was typed, when others give it more than a form shows', async () => {
      const password = { value: 'a-secret-value' };
      expectData(await stack.api.put(`/api/domains/${id}/secrets/ADA`, password));
      await put({ auth: { api_key: {} } });
      const { page, close } = await edit('Who may call');
      await page.getByLabel('Header of the key').fill('X-Tenant-Key');
      await put({ auth: { api_key: {}, basic: { users: { ada: 'ADA' } } } });
      await page.getByLabel('Policy').waitFor();
      await page.getByText('It has more than the form can show.').waitFor();
      await expectAccessible(page);
      await save(page);
      const both = { api_key: { header: 'X-Tenant-Key' }, basic: { users: { ada: 'ADA' } } };
      expect(await stored()).to.deep.equal({ auth: both });
      // JSON is whole: that it replaces what others do is said.
      await page.getByLabel('Policy').fill('{"api_key": {}}');
      await put({ auth: { ...both, api_key: { header: 'X-Other' } } });
      await page.getByText('This policy has been changed since you began').waitFor();
      await close();
    });

    it('the form of a policy shows what was typed for a rule when others make several rules', async () => {
      const rule = { requests: 5, window_seconds: 60, by: 'address' };
      await put({ rate_limit: rule });
      const { page, close } = await edit('Rate limit');
      await page.getByRole('textbox', { name: 'Requests' }).fill('9');
      const rules = [rule, { ...rule, by: 'key' }];
      await put({ rate_limit: rules });
      await page.getByLabel('Policy').waitFor();
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText(/^Somebody else has made several rules of it; .*Requests: 9/).waitFor();
      expect(await stored()).to.deep.equal({ rate_limit: rules });
      await close();
    });

    it('a policy is what was typed last, as JSON or into the fields', async () => {
      await put(null);
      const { page, close } = await edit('Rate limit');
      await page.getByLabel('Here').selectOption('Set');
      await page.getByLabel('Edit as JSON').check();
      await page.getByLabel('Policy').fill('{"requests": 7, "window_seconds": 60');
      // It can be shown in fields when it is JSON.
      expect(await page.getByLabel('Edit as JSON').isDisabled()).to.equal(true);
      await page.getByLabel('Policy').fill('{"requests": 7, "window_seconds": 60, "by": "address"}');
      await page.getByLabel('Edit as JSON').uncheck();
      expect(await page.getByRole('textbox', { name: 'Requests' }).inputValue()).to.equal('7');
      await page.getByRole('textbox', { name: 'Requests' }).fill('9');
      await page.getByRole('button', { name: 'Close Rate limit' }).click();
      await page.getByRole('button', { name: 'Edit Rate limit' }).click();
      expect(await page.getByRole('textbox', { name: 'Requests' }).inputValue()).to.equal('9');
      await page.reload();
      await page.getByRole('button', { name: 'Edit Rate limit' }).click();
      expect(await page.getByRole('textbox', { name: 'Requests' }).inputValue()).to.equal('9');
      await save(page);
      expect(await stored()).to.deep.equal({
        rate_limit: { requests: 9, window_seconds: 60, by: 'address' },
      });
      await close();
    });

    for (const [title, field, name] of [
      ['Longest body', 'Bytes', 'body_limit'],
      ['Deadline', 'Milliseconds', 'timeout'],
    ] as const)
      it(`the policy ${title} says at its field that its value is missing`, async () => {
        await put(null);
        const { page, close } = await edit(title);
        await page.getByLabel('Here').selectOption('Set');
        await page.getByRole('button', { name: 'Save' }).click();
        const problem = page.getByText('Must be given, or the policy is not set');
        await problem.waitFor();
        await page.getByLabel(field).and(page.locator('[aria-invalid=true]')).fill('5000');
        await save(page);
        expect(await stored()).to.deep.equal({ [name]: 5_000 });
        await page.getByLabel(field).fill('');
        await page.getByRole('button', { name: 'Save' }).click();
        await problem.waitFor();
        expect(await stored()).to.deep.equal({ [name]: 5_000 });
        await close();
      });

    it('members of a policy that the web UI knows nothing of have fields by their schema', async () => {
      await put(null);
      const { page, close } = await ui.open('about:blank');
      await page.route('**/api/openapi.json', async (route) => {
        const response = await route.fetch();
        const api = (await response.json()) as Description;
        Object.assign(api.components.schemas.Domain.properties.policies.properties.maintenance.properties, {
          tea_cups: { type: 'integer', description: 'At most `12`' },
          milk: { type: 'boolean' },
          leaves: { type: 'array', items: { type: 'string', enum: ['green', 'black'] } },
          with: { type: 'object', properties: { sugar: { type: 'string', enum: ['none', 'some'] } } },
          guests: { type: 'array', items: { type: 'object' } },
        });
        await route.fulfill({ response, json: api });
      });
      await page.goto(`/ui/domains/${id}/policies`);
      await page.getByRole('button', { name: 'Edit Maintenance' }).click();
      await page.getByLabel('Here').selectOption('Set');
      await page.getByText('At most 12', { exact: true }).waitFor();
      await page.getByLabel('Tea cups').fill('2');
      await page.getByLabel('Milk').check();
      await page.getByLabel('Leaves').fill('green\nblack');
      await page.getByLabel('Sugar').selectOption('some');
      expect(await page.getByLabel('Guests').count()).to.equal(0);
      await page.getByLabel('Edit as JSON').check();
      const typed = { tea_cups: 2, milk: true, leaves: ['green', 'black'], with: { sugar: 'some' } };
      expect(JSON.parse(await page.getByLabel('Policy').inputValue())).to.deep.equal(typed);
      // What no field shows is not hidden.
      await page.getByLabel('Policy').fill(JSON.stringify({ ...typed, guests: [{}] }));
      await page.getByText('It has more than the form can show.').waitFor();
      await expectAccessible(page);
      await close();
    });

    it('the policy of headers says which line has no name or value, or the name of another line', async () => {
      await put(null);
      const { page, close } = await edit('Headers');
      await page.getByLabel('Here').selectOption('Set');
      const lines = page.getByRole('textbox', { name: 'Set in the response' });
      const refuse = async (text: string, problem: string) => {
        await lines.fill(text);
        await page.getByRole('button', { name: 'Save' }).click();
        await page.getByText(problem, { exact: true }).waitFor();
        await lines.and(page.locator('[aria-invalid=true]')).waitFor();
        expect(await stored()).to.equal(null);
        // As JSON, that line would be another one.
        expect(await page.getByLabel('Edit as JSON').isDisabled()).to.equal(true);
      };
      await refuse('X-Kind: a\n\nX-Tenant', 'Line 3: is not a name and a value, such as X-Tenant: value');
      await refuse(': a', 'Line 1: is not a name and a value, such as X-Name: value');
      await refuse('X-Kind: a\nx-kind: b', 'Line 2: has the name of another line');
      await lines.fill('X-Kind: a:b\nX-Tenant:');
      await save(page);
      const set = { 'X-Kind': 'a:b', 'X-Tenant': '' };
      expect(await stored()).to.deep.equal({ headers: { response: { set } } });
      await close();
    });
  });
});
