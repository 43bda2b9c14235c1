/** A real browser on another origin calls an endpoint, with JSON and credentials. */
import { expect } from 'chai';
import { type Pages, servePages } from '../../support/chromium.js';
import { expectData } from '../../support/expect.js';
import { type Stack, startStack } from '../../support/processes.js';

const SHOWS = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(req: Request) -> Response {
    Response::json(200, json!({"body": req.body, "cookie": req.header("cookie")})).with_header("X-Shown", "1")
}
handler_loop!(handle);
`;

describe('a page of another origin in Chromium', function () {
  this.timeout(300_000);
  let stack: Stack;
  let pages: Pages;
  let endpoint: string;
  before(async () => {
    stack = await startStack();
    pages = await servePages();
    endpoint = `/api/endpoints/${await stack.deploy({ path: '/orders', method: 'POST', code: SHOWS })}`;
  });
  after(async () => {
    await pages?.close();
    await stack?.close();
  });
  const callFromPage = () =>
    pages.run(`
      fetch('${stack.gatewayUrl}/orders', {
        method: 'POST', credentials: 'include', body: '{"item":1}',
        headers: { 'Content-Type': 'application/json', 'X-Own': '1' },
      }).then(async (answer) => tell(answer.status + ' ' + answer.headers.get('x-shown') + ' ' + await answer.text()))
        .catch((error) => tell('refused: ' + error.message));
    `);
  const preflights = async () => {
    const text = await (await fetch(`${stack.apiUrl}/metrics`)).text();
    return Number(/edge_gateway_policy_answers_total\{policy="preflight"\} (\d+)/.exec(text)?.[1] ?? 0);
  };
  const cors = (origin: string) => ({
    cors: { origins: [origin], headers: ['content-type', 'x-own'], expose: ['x-shown'], credentials: true },
  });
  const set = async (policies: object | null) => expectData(await stack.api.put(endpoint, { policies }));

  it('a page calls an endpoint whose policy allows its origin, with preflight, JSON and credentials', async () => {
    await set(cors(pages.origin));
    expect(await callFromPage()).to.equal('200 1 {"body":"{\\"item\\":1}","cookie":"session=ada"}');
    expect(await preflights()).to.equal(1);
  });

  it('a page of an allowed origin reads why another policy refuses its request', async () => {
    await set({ ...cors(pages.origin), auth: { api_key: {} } });
    expect(await callFromPage()).to.match(/^401 null \{"error":"Credentials are needed/);
  });

  it('a page is refused by the browser unless a policy allows its origin and method', async () => {
    // A browser sends POST also where an answer to a preflight names GET alone.
    const ofGet = { cors: { ...cors(pages.origin).cors, methods: ['GET'] } };
    for (const policies of [null, cors('https://app.example'), ofGet]) {
      await set(policies);
      expect(await callFromPage()).to.equal('refused: Failed to fetch');
    }
  });
});
