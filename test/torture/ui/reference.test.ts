import { expect } from 'chai';
import { must, type Stack, startStack } from '../../support/processes.js';
import { expectAccessible, HOSTILE, openBrowser, type Ui } from '../../support/ui.js';

const CODE = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(req: Request) -> Response {
    println!("it was called");
    Response::ok(json!({"pet": req.path_param("id")}))
}
handler_loop!(handle);
`;

describe('UI: API reference', () => {
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

  it('the API reference searches, describes and calls an operation of the gateway', async () => {
    const { page, close } = await ui.open('/ui/api');
    await page.getByText('Edge Gateway Management API').waitFor();
    await page.getByRole('link', { name: 'POST /api/domains', exact: true }).waitFor();
    await expectAccessible(page);
    await page.getByRole('searchbox').fill('create a domain');
    await page.getByRole('link', { name: 'GET /api/health' }).waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'POST /api/domains' }).click();
    expect(new URL(page.url()).searchParams.get('op')).to.equal('postDomains');
    await page.getByRole('heading', { name: 'POST /api/domains' }).waitFor();
    // The answer is a tree: data, in it the domain.
    const answers = page.locator('.answer').first();
    await answers.locator('summary', { hasText: 'data' }).click();
    await answers.locator('li', { hasText: 'created_at' }).first().waitFor();
    await expectAccessible(page);

    const body = page.getByLabel('Body', { exact: true });
    expect(JSON.parse(await body.inputValue())).to.have.keys('name', 'host');
    await body.fill('{"name": "Shop", "host": "not a host"}');
    await page.getByRole('button', { name: 'Send POST' }).click();
    await page.getByRole('region', { name: 'Answer' }).getByText('400', { exact: true }).waitFor();
    await page
      .getByRole('region', { name: 'Answer' })
      .getByText(/body\.host/)
      .waitFor();
    await body.fill('{"name": "Shop", "host": "shop.test"}');
    await page.getByRole('button', { name: 'Send POST' }).click();
    await page.getByRole('region', { name: 'Answer' }).getByText('201', { exact: true }).waitFor();
    await expectAccessible(page);
    const domains = (await must(stack.api.get('/api/domains'))) as { host: string }[];
    expect(domains.map(({ host }) => host)).to.include('shop.test');
    // What was typed, and the operation, are there after a reload.
    await page.reload();
    await page.getByRole('heading', { name: 'POST /api/domains' }).waitFor();
    expect(await body.inputValue()).to.include('shop.test');
    await close();
  });

  it('the API reference sends parameters, and can stop a response that does not end', async () => {
    const { page, close } = await ui.open('/ui/api?op=getDomains');
    await page.getByLabel('search', { exact: true }).fill('a & b');
    await page.getByText('/api/domains?search=a+%26+b').waitFor();
    await page.getByRole('button', { name: 'Send GET' }).click();
    await page.getByRole('region', { name: 'Answer' }).getByText('200', { exact: true }).waitFor();
    await page.goto('/ui/api?op=getEvents');
    await page.getByRole('button', { name: 'Send GET' }).click();
    await page.getByText(/event: open/).waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByRole('button', { name: 'Stop' }).waitFor({ state: 'detached' });
    await close();
  });

  it('the API reference describes the endpoints of a domain, and calls one', async () => {
    const made = (await must(stack.api.post('/api/domains', { name: 'Pets', host: 'pets.test' }))) as {
      id: string;
    };
    await stack.deploy({ path: '/pets/{id}', domain: 'pets.test', method: 'POST', name: 'pet', code: CODE });
    const { page, close } = await ui.open('/ui/api');
    await page.getByLabel('API of').selectOption('pets.test');
    await page.waitForURL('**/ui/api/pets.test');
    await page.getByRole('link', { name: 'POST /pets/{id}' }).click();
    await page.getByLabel('id', { exact: true }).fill('tom & co');
    await page.getByText('/pets/tom%20%26%20co').waitFor();
    await page.getByRole('button', { name: 'Send POST' }).click();
    const answer = page.getByRole('region', { name: 'Answer' });
    await answer.getByText('"tom & co"').waitFor({ timeout: 60_000 });
    await answer.getByText('Printed (1 lines)').click();
    await answer.getByText('it was called').waitFor();
    await expectAccessible(page);
    expect(made.id).to.have.length(36);
    await close();
  });

  it('the API reference shows circular references, and hostile text as text', async () => {
    const text = JSON.stringify(HOSTILE);
    const spec = `{"openapi": "3.1.0", "info": {"title": ${text}, "version": "1"},
      "components": {"schemas": {"Node": {"type": "object", "description": ${text},
        "properties": {"next": {"$ref": "#/components/schemas/Node"}, "loop": {"$ref": "#/components/schemas/Loop"}}},
        "Loop": {"$ref": "#/components/schemas/Loop"}}},
      "paths": {"/tree": {"post": {"operationId": "tree", "summary": ${text}, "tags": [${text}],
        "requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}}},
        "responses": {"200": {"description": ${text},
          "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}}}}}}}}`;
    await must(stack.api.post('/api/domains', { name: 'Tree', host: 'tree.test' }));
    await must(stack.api.post('/api/import/openapi', { spec, domain: 'tree.test' }));
    const { page, close } = await ui.open('/ui/api/tree.test?op=tree');
    const answer = page.locator('.answer').first();
    for (let depth = 0; depth < 4; depth++)
      await answer.locator('summary', { hasText: 'next' }).nth(depth).click();
    await answer.locator('summary', { hasText: 'next' }).nth(4).waitFor();
    await page.getByText(HOSTILE).first().waitFor();
    await expectAccessible(page);
    expect(await page.locator('img, main script').count()).to.equal(0);
    expect(await page.title()).not.to.include('hacked');
    await close();
  });

  it('the API reference shows an operation in place of the list on a phone', async () => {
    const { page, close } = await ui.open('/ui/api?search=health', { viewport: { width: 360, height: 740 } });
    await page.getByRole('link', { name: 'GET /api/health' }).click();
    await page.getByRole('heading', { name: 'GET /api/health' }).waitFor();
    expect(await page.getByRole('searchbox').isVisible()).to.equal(false);
    expect(await page.evaluate('document.documentElement.scrollWidth')).to.equal(360);
    await page.getByRole('link', { name: 'All operations' }).click();
    await page.getByRole('searchbox').waitFor();
    await close();
  });
});
