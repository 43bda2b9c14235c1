/** Trying an endpoint in the web UI: what is sent is what is typed, and what is answered is shown as it is. */
import { expect } from 'chai';
import { execa } from 'execa';
import type { Page } from 'playwright-core';
import { eventually } from '../../support/eventually.js';
import { expectData } from '../../support/expect.js';
import { type Stack, startStack } from '../../support/processes.js';
import {
  expectAccessible,
  expectFits,
  expectUnharmed,
  HOSTILE,
  openBrowser,
  type Ui,
} from '../../support/ui.js';

/** Answers with all that it was asked; with other things when a header asks for them. */
const ECHO = `use rust_edge_gateway_sdk::prelude::*;

fn handle(req: Request) -> Response {
    match req.header("x-want").map_or("", String::as_str) {
        "binary" => Response::binary(200, [0xff, 0xfe, 0x00], "image/<b>"),
        "hostile" => Response::new(200)
            .with_header("content-type", "text/html")
            .with_header("x-shown", "<img src=x onerror=alert(1)>")
            .with_body(${JSON.stringify(HOSTILE)}.to_string() + "\\u{202e}\\u{0}"),
        "panic" => panic!("lost its head"),
        "service" => Response::new(500).with_body("Service not bound"),
        "numbers" => Response::new(200).with_body(r#"{"b": 12345678901234567890, "1": 1e2}"#),
        _ => Response::ok(json!({
            "path": req.path, "params": req.params, "body": req.body, "tags": req.query_all("tag"),
            "twice": req.header("x-twice"), "quoted": req.header("x-quoted"), "empty": req.header("x-empty"),
            "type": req.header("content-type"),
        })),
    }
}

handler_loop!(handle);
`;

/** Its schema is within itself; a parameter is of the path, not of the operation. */
const SPEC = JSON.stringify({
  openapi: '3.1.0',
  info: { title: 'Echo', version: '1' },
  paths: {
    '/echo/{id}/{rest}': {
      parameters: [
        { name: 'id', in: 'path', required: true, schema: { type: 'string', example: 'from the document' } },
        { name: 'rest', in: 'path', required: true, schema: { type: 'string' } },
      ],
      post: {
        operationId: 'echo',
        parameters: [
          { name: 'tag', in: 'query', required: true, schema: { enum: ['one', 'two'] } },
          { name: 'limit', in: 'query', schema: { type: 'integer', default: 20 } },
        ],
        requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Node' } } } },
        responses: { 200: { description: 'ok' } },
      },
    },
  },
  components: {
    schemas: {
      Node: {
        type: 'object',
        properties: {
          id: { type: 'string', readOnly: true },
          name: { type: 'string', default: 'root' },
          ...Object.fromEntries(
            ['left', 'right', 'up', 'down'].map((name) => [name, { $ref: '#/components/schemas/Node' }]),
          ),
          children: { type: 'array', items: { $ref: '#/components/schemas/Node' } },
        },
      },
    },
  },
});

describe('UI: trying an endpoint', function () {
  this.timeout(180_000);
  let stack: Stack;
  let ui: Ui;
  let id = '';

  before(async () => {
    stack = await startStack({ processes: ['web', 'worker', 'gateway'] });
    ui = await openBrowser(stack.apiUrl);
    expectData(await stack.api.post('/api/import/openapi', { spec: SPEC, domain: '*' }));
    [{ id }] = expectData<[{ id: string }]>(await stack.api.get('/api/endpoints'));
    expectData(await stack.api.put(`/api/endpoints/${id}`, { code: ECHO }));
    expectData(await stack.api.post(`/api/endpoints/${id}/compile`));
    expectData(await stack.api.post(`/api/endpoints/${id}/start`));
  });
  after(async () => {
    await ui?.close();
    await stack?.close();
  });

  /** Nothing can be sent before: a parameter of the path is asked for, and headers are numbered otherwise. */
  const documentRead = (page: Page) =>
    eventually(async () =>
      expect(await page.getByLabel('id', { exact: true }).inputValue()).to.equal('from the document'),
    );
  const open = async () => {
    const opened = await ui.open(`/ui/endpoints/${id}/try`);
    await documentRead(opened.page);
    return opened;
  };
  const answer = (page: Page) => page.getByRole('region', { name: 'Answer' });
  const send = async (page: Page) => {
    const answered = page.waitForResponse((response) => response.url().endsWith('/invoke'));
    await page.getByRole('button', { name: 'Send' }).click();
    expect((await answered).status()).to.equal(200);
    await page.getByText('Sending …').waitFor({ state: 'detached' });
  };
  const told = async (page: Page) =>
    JSON.parse(await answer(page).locator('.answer-body').innerText()) as Record<string, unknown>;
  const pair = async (page: Page, of: string, at: number, name: string, value: string) => {
    await page.getByLabel(`Name of ${of} ${at}`, { exact: true }).fill(name);
    await page.getByLabel(`Value of ${of} ${at}`, { exact: true }).fill(value);
  };

  it('the try page starts with values of the document, sends what is typed, and copies the same as curl', async () => {
    const { page, context, close } = await open();
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    expect(await page.getByLabel('Value of parameter 1', { exact: true }).inputValue()).to.equal('one');
    expect(JSON.parse(await page.getByLabel('Body').inputValue())).to.deep.equal({
      name: 'root',
      children: [],
    });
    // What has no value yet is seen as that.
    await page.locator('.try-line').getByText('/echo/from%20the%20document/{rest}?tag=one').waitFor();
    // What may be left out is offered by its name.
    await page.getByRole('button', { name: 'Add the parameter limit' }).click();
    await page.locator('.try-line').getByText('?tag=one&limit=20').waitFor();
    expect(await page.getByRole('button', { name: 'Add the parameter limit' }).count()).to.equal(0);
    await page.getByLabel('id', { exact: true }).fill(`a/b ?#%2e'"é😀`);
    await page.getByLabel('rest', { exact: true }).fill('..a');
    await pair(page, 'parameter', 2, 'tag', `two & [3] {4} it's`);
    // A name that is typed anew does not take the row away under the hand.
    await page.getByLabel('Name of parameter 1', { exact: true }).fill('');
    await page.getByLabel('Value of parameter 1', { exact: true }).fill('');
    await page.getByLabel('Name of parameter 1', { exact: true }).pressSequentially('tag');
    await page.getByLabel('Value of parameter 1', { exact: true }).fill('first');
    expect(await page.getByLabel('Value of parameter 2', { exact: true }).inputValue()).to.include('two');
    await pair(page, 'header', 1, 'Content-Type', '');
    await page.getByLabel('Name of header 1', { exact: true }).fill('X-Twice');
    await page.getByLabel('Value of header 1', { exact: true }).fill('one');
    await pair(page, 'header', 2, 'x-twice', 'two');
    await pair(page, 'header', 3, 'X-Quoted', `it's $HOME \`id\` "x" \\ !`);
    await pair(page, 'header', 4, 'X-Empty', '');
    await page.getByLabel('Body').fill(`@/etc/passwd it's $(id)\nsecond line`);
    await send(page);
    const first = await told(page);
    expect(first).to.deep.include({
      params: { id: `a/b ?#%2e'"é😀`, rest: '..a' },
      ...{ tags: ['first', `two & [3] {4} it's`], twice: 'one, two' },
      ...{ quoted: `it's $HOME \`id\` "x" \\ !`, empty: '' },
      ...{ body: `@/etc/passwd it's $(id)\nsecond line`, type: null },
    });
    await page.getByRole('button', { name: 'Copy as curl' }).click();
    await page.getByText(/^Copied/).waitFor();
    const command = await page.evaluate<string>('navigator.clipboard.readText()');
    const { stdout } = await execa('sh', ['-c', command.replace(/^curl /, 'curl -sS ')]);
    expect(JSON.parse(stdout)).to.deep.equal(first);
    await expectAccessible(page);
    await page.setViewportSize({ width: 360, height: 740 });
    await expectFits(page);
    await close();
  });

  it('the try page queues a request, and links to its result', async () => {
    const { page, close } = await ui.open(`/ui/endpoints/${id}/settings?section=jobs`);
    await page.getByText('Nothing was queued').waitFor();
    await page.getByRole('link', { name: 'Try', exact: true }).click();
    await documentRead(page);
    await page.getByRole('button', { name: 'Queue it' }).click();
    // What is missing is asked for.
    expect(await page.locator('input:invalid').count()).to.equal(1);
    await page.getByLabel('rest', { exact: true }).fill('queued');
    await page.getByRole('button', { name: 'Queue it' }).click();
    await page.getByRole('button', { name: 'See what becomes of it' }).click();
    await page.waitForURL(/\/settings\?section=jobs$/);
    const row = page.getByRole('row', { name: /POST \/echo\/from%20the%20document\/queued/ });
    await row.getByText('succeeded').waitFor();
    await expectAccessible(page);
    await close();
  });

  it('the try page keeps typed and sent requests through a reload, except for what looks secret', async () => {
    const { page, context, close } = await open();
    await page.getByLabel('rest', { exact: true }).fill('kept');
    await pair(page, 'header', 2, 'Authorization', 'Bearer not to be kept');
    await page.getByLabel('Body').fill('no JSON, and kept in this tab');
    await eventually(async () =>
      expect(await page.evaluate<string>('JSON.stringify(sessionStorage)')).to.include('kept in this tab'),
    );
    await page.reload();
    await eventually(async () =>
      expect(await page.getByLabel('rest', { exact: true }).inputValue()).to.equal('kept'),
    );
    // Not typed, therefore not kept.
    await documentRead(page);
    expect(await page.getByLabel('Body').inputValue()).to.equal('no JSON, and kept in this tab');
    expect(await page.getByLabel('Name of header 2', { exact: true }).inputValue()).to.equal('Authorization');
    await page.getByLabel('Body').fill('{"password": "not to be kept", "name": "kept"}');
    await page.getByLabel('Value of header 2', { exact: true }).fill('Bearer not to be kept');
    await send(page);
    const stored = JSON.stringify(await context.storageState());
    expect(stored).to.include('Authorization').and.not.to.include('not to be kept');
    await page.getByLabel('rest', { exact: true }).fill('another');
    await page.getByRole('button', { name: /POST \/echo\/.*\/kept/ }).click();
    expect(await page.getByLabel('rest', { exact: true }).inputValue()).to.equal('kept');
    await page.getByRole('button', { name: 'Forget them' }).click();
    expect(JSON.stringify(await context.storageState())).not.to.include('Authorization');
    // What somebody else has put there does not break the page.
    await page.evaluate(`localStorage.setItem('edge-calls::${id}', '{no json')`);
    await page.reload();
    await page.getByRole('heading', { name: 'Sent before' }).waitFor();
    await close();
  });

  it('the try page shows hostile text as text, bytes as a file, and numbers as they were sent', async () => {
    const { page, close } = await open();
    await page.getByLabel('rest', { exact: true }).fill('x');
    await pair(page, 'header', 2, 'X-Want', 'hostile');
    await send(page);
    await answer(page).locator('.answer-body').getByText('<script>').waitFor();
    await answer(page).getByText('U+202E').waitFor();
    await answer(page).getByText('NUL').waitFor();
    await answer(page).getByText('Headers (').click();
    await answer(page).getByText('<img src=x onerror=alert(1)>', { exact: true }).waitFor();
    await expectUnharmed(page);
    await pair(page, 'header', 2, 'X-Want', 'binary');
    await send(page);
    await answer(page).getByText('3 B that are no text, image/<b>').waitFor();
    const saved = page.waitForEvent('download');
    await answer(page).getByRole('button', { name: 'Save as a file' }).click();
    expect((await saved).suggestedFilename()).to.equal('answer');
    await pair(page, 'header', 2, 'X-Want', 'numbers');
    await send(page);
    await answer(page).getByText('{"b": 12345678901234567890, "1": 1e2}').waitFor();
    await expectAccessible(page);
    await close();
  });

  it('the try page sends to a chosen version, and links to a panic and to the bindings of services', async () => {
    const body = { code: ECHO.replace('"hostile" =>', '"second" =>') };
    expectData(await stack.api.post(`/api/endpoints/${id}/deploy`, { ...body, percent: 25 }));
    const { page, close } = await open();
    const versions = page.getByLabel('Version', { exact: true });
    await versions
      .getByRole('option', { name: 'Version 1, which serves 75 % now' })
      .waitFor({ state: 'attached' });
    expect(await versions.getByRole('option').allTextContents()).to.deep.equal([
      'Version 2, which serves 25 % now',
      'Version 1, which serves 75 % now',
    ]);
    await page.getByLabel('rest', { exact: true }).fill('both');
    await send(page);
    await versions.selectOption({ index: 0 });
    await send(page);
    const before = page.getByRole('region', { name: 'Sent before' });
    await before.getByRole('button', { name: /both.*version 2,/ }).waitFor();
    await before.getByRole('button', { name: /both.*version 1,/ }).click();
    expect(await versions.inputValue()).to.equal('1');

    await pair(page, 'header', 2, 'X-Want', 'service');
    await send(page);
    const bind = answer(page).getByRole('link', { name: 'Bind a service' });
    expect(await bind.getAttribute('href')).to.equal(`/ui/endpoints/${id}/settings?section=services`);
    await pair(page, 'header', 2, 'X-Want', 'panic');
    await send(page);
    await answer(page)
      .getByRole('link', { name: /^handler\.rs:\d+:\d+$/ })
      .first()
      .click();
    await page.locator('.cm-activeLine').filter({ hasText: 'lost its head' }).waitFor();
    await close();
  });
});
