/** What handlers get of a request, and send several times, over HTTP. */
import { expect } from 'chai';
import { deploy, type Stack, startStack } from '../support/processes.js';

const HANDLER = `
use rust_edge_gateway_sdk::prelude::*;

fn handle(req: Request) -> Result<Response, HandlerError> {
    let form = req.is_method("POST").then(|| req.form()).transpose()?;
    let answer = json!({
        "raw": req.raw_query(),
        "query": req.query_all("a"),
        "last": req.query_param("a"),
        "header": req.header_all("X-A"),
        "joined": req.header("x-a"),
        "cookie": req.cookie("b"),
        "form": form.as_ref().map(|form| form.get_all("a")),
    });
    Ok(Response::ok(answer).append_header("Set-Cookie", "a=1").append_header("set-cookie", "b=2; Path=/"))
}

handler_loop_result!(handle);
`;

const SPLITS = `
use rust_edge_gateway_sdk::prelude::*;
use std::collections::HashMap;

fn handle(req: Request) -> Response {
    let value = req.query["value"].clone();
    Response { status: 200, headers: HashMap::from([("X-A".to_string(), value)]), body: None }
}

handler_loop!(handle);
`;

describe('requests and responses of handlers', function () {
  this.timeout(120_000);
  let stack: Stack;
  before(async () => {
    stack = await startStack();
    for (const method of ['GET', 'POST']) {
      await deploy(stack.api, { path: '/all', method, code: HANDLER });
    }
    await deploy(stack.api, { path: '/splits', code: SPLITS });
  });
  after(() => stack.close());

  it('passes all values of a query parameter or header to handlers, and sends all Set-Cookie headers', async () => {
    const headers = { 'x-a': ['1', '2, 3'], cookie: 'a=1; b=2' };
    const { status, body, headers: sent } = await stack.gateway.get('/all?a=1&a=b+c%26&b=2', { headers });
    expect(status).to.equal(200);
    expect(body).to.deep.equal({
      raw: 'a=1&a=b+c%26&b=2',
      query: ['1', 'b c&'],
      last: 'b c&',
      header: ['1', '2, 3'],
      joined: '1, 2, 3',
      cookie: '2',
      form: null,
    });
    expect(sent['set-cookie']).to.deep.equal(['a=1', 'b=2; Path=/']);
  });

  it('passes all values of a form field to handlers, and refuses a body that is no form', async () => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const { body } = await stack.gateway.post('/all', 'a=1&b=&a=%C3%A9', { headers });
    expect(body).to.have.deep.property('form', ['1', 'é']);
    const refused = await stack.gateway.post('/all', { a: 1 });
    expect(refused.status).to.equal(400);
    expect(refused.body).to.deep.equal({
      error: 'Bad request: Expected a body with Content-Type: application/x-www-form-urlencoded',
    });
  });

  it('sends a header value of several lines as several values, and adds no other header', async () => {
    const splits = (value: string) => stack.gateway.get(`/splits?value=${encodeURIComponent(value)}`);
    expect((await splits('1\n2')).headers['x-a']).to.equal('1, 2');
    const { status, headers } = await splits('1\nSet-Cookie: a=1');
    expect([status, headers['x-a'], headers['set-cookie']]).to.deep.equal([
      200,
      '1, Set-Cookie: a=1',
      undefined,
    ]);
    for (const value of ['1\r\n2', '1\n\u0000', '\r']) {
      expect((await splits(value)).status, JSON.stringify(value)).to.equal(500);
    }
  });
});
