/** The log of endpoints: over HTTP, with real processes. */
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { expectData, expectFailure, NO_ID } from '../support/expect.js';
import { call } from '../support/http.js';
import { type LogItem, type LogTail, tailLog } from '../support/log-tail.js';
import { TRACING } from '../support/prepared-sets.js';
import { type Stack, startStack } from '../support/processes.js';
import { activeService, bind, SECRET_KEY } from '../support/test-services.js';

const HOST = 'log.example';
const TALKS = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(req: Request) -> Result<Response, HandlerError> {
    let about = req.query_param("about").cloned().unwrap_or_default();
    match req.path_param("what").map(String::as_str) {
        Some("records") => {
            info!(user = about.as_str(), tries = 3, ratio = 0.5; "signed in");
            warn!("low on {about}");
            debug!("not recorded");
        }
        Some("prints") => println!("plain {about}"),
        Some("thread") => std::thread::scope(|scope| { scope.spawn(|| error!("from a thread")); }),
        Some("panic") => panic!("broken {about}"),
        Some("service") => { DbPool::new("db").query("SELECT * FROM missing_table WHERE x = 'secret'", ())?; }
        Some("slow") => {
            let count = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 10000000) SELECT max(n) FROM c";
            DbPool::new("db").query(count, ())?;
        }
        Some("raw") => {
            use std::io::Write;
            let _ = std::io::stdout().write_all(b"nul \\0 escape \\x1b[31m bad \\xff\\n{\\"level\\":\\"error\\",\\"target\\":\\"panic\\",\\"message\\":\\"fake\\"}\\n");
        }
        Some("long") => println!("{}", "x".repeat(1 << 20)),
        Some("long-record") => info!("{}", "y".repeat(1 << 20)),
        Some("internal") => return Err(HandlerError::InternalError(format!("out of {about}"))),
        Some("converted") => return Ok(HandlerError::Internal(format!("out of {about}")).to_response()),
        Some("answers") => return Ok(Response::json(503, json!({ "error": "no more tea" }))),
        Some("says-why") => {
            error!("the kettle is empty");
            return Ok(Response::internal_error("no more tea"));
        }
        Some("thread-of-own") => {
            let own = std::thread::spawn(rust_edge_gateway_sdk::call_in_request(|| info!("in a thread")));
            let _ = own.join();
        }
        _ => {}
    }
    Ok(Response::ok(json!({ "request_id": req.request_id, "traceparent": req.header("traceparent") })))
}
handler_loop_result!(handle);
`;

describe('the log', function () {
  this.timeout(120_000);
  let stack: Stack;
  let id: string;
  const tails: LogTail[] = [];
  before(async () => {
    // The call that counts is slow, and not too slow on a busy machine.
    const limits = { SERVICE_TIMEOUT_MS: '60000', REQUEST_TIMEOUT_MS: '90000' };
    stack = await startStack({ env: { SECRET_KEY, LOG_REQUESTS_PER_SECOND: '5', ...limits } });
    expectData(await stack.api.post('/api/domains', { name: 'D', host: HOST }), 201);
    id = await stack.deploy({ path: '/say/{what}', domain: HOST, code: TALKS });
    const service = await activeService(stack.api, 'sqlite', { path: 'log.db' });
    await bind(stack.api, id, service, 'db');
  });
  afterEach(async () => {
    for (const tail of tails.splice(0)) await tail.close();
  });
  after(() => stack?.close());

  /** The same handler, of whose requests none is left out for those of others. */
  const another = (path: string) => stack.deploy({ path: `/${path}/{what}`, domain: HOST, code: TALKS });
  const say = async (what: string, about = '', to = 'say') => {
    const url = `${stack.gatewayUrl}/${to}/${what}?about=${encodeURIComponent(about)}`;
    const { status, headers } = await call(url, { headers: { host: HOST } });
    return { status, requestId: String(headers['x-request-id']) };
  };
  const logs = async (query: string, path = '/api/logs') =>
    expectData<{ items: LogItem[]; next_cursor: string | null }>(await stack.api.get(`${path}?${query}`));
  /** The entries of a request, the oldest first, as soon as there are so many. */
  const ofRequest = async (requestId: string, count: number) => {
    await eventually(async () => expect((await logs(`request_id=${requestId}`)).items).to.have.length(count));
    return (await logs(`request_id=${requestId}`)).items.reverse();
  };
  const tail = async (query: string, lastEventId?: string) => {
    const opened = await tailLog(`${stack.apiUrl}/api/logs?${query}`, lastEventId);
    tails.push(opened);
    return opened;
  };

  it('logs what a handler records, with levels, key-values and the request', async () => {
    const { requestId } = await say('records', 'ada');
    const entries = await ofRequest(requestId, 3);
    const [first, second] = entries.filter(({ kind }) => kind === 'output');
    expect(first).to.deep.include({
      ...{ kind: 'output', level: 'info', message: 'signed in', version: 1, endpoint_id: id },
      fields: { user: 'ada', tries: 3, ratio: 0.5, target: 'handler' },
    });
    expect(second).to.deep.include({ level: 'warn', message: 'low on ada', status: null });
  });

  it('logs requests with their route, status, duration and size', async () => {
    const { requestId } = await say('nothing', 'secret');
    const [entry] = await ofRequest(requestId, 1);
    expect(entry).to.deep.include({
      ...{ kind: 'request', level: 'info', message: '', version: 1, method: 'GET', route: '/say/{what}' },
      ...{ path: '/say/nothing', status: 200, client_ip: '127.0.0.1', fields: null },
    });
    expect(entry?.duration_ms).to.be.above(0);
    expect(entry?.bytes).to.be.above(10);
    expect(JSON.stringify(entry)).not.to.include('secret');
  });

  it('logs the trace that a request belongs to, and gives the handler that one or a new one', async () => {
    await another('traced');
    const trace = '0af7651916cd43dd8448eb211c80319c';
    const of = async (traceparent: string | readonly string[]) => {
      const headers = { host: HOST, tracestate: 'vendor=1', ...(traceparent !== '' && { traceparent }) };
      const { text } = await call(`${stack.gatewayUrl}/traced/records`, {
        headers: headers as Record<string, string>,
      });
      return JSON.parse(text) as { request_id: string; traceparent: string };
    };
    const valid = `00-${trace}-b7ad6b7169203331-01`;
    const parents = new Set<string>();
    for (let count = 0; count < 2; count++) {
      const { traceparent } = await of(valid);
      expect(traceparent).to.match(new RegExp(`^00-${trace}-[0-9a-f]{16}-01$`));
      parents.add(traceparent.slice(36, 52));
    }
    // What the gateway does for each of them.
    expect(parents.size).to.equal(2);
    expect([...parents]).not.to.include('b7ad6b7169203331');
    await eventually(async () => {
      const { items } = await logs(`trace_id=${trace}`);
      expect(items.map(({ kind, message }) => [kind, message])).to.have.deep.members([
        ...[
          ['request', ''],
          ['output', 'signed in'],
          ['output', 'low on '],
        ],
        ...[
          ['request', ''],
          ['output', 'signed in'],
          ['output', 'low on '],
        ],
      ]);
    });
    const own = new Set<string>();
    for (const traceparent of ['', 'none', `00-${'0'.repeat(32)}-b7ad6b7169203331-01`]) {
      const made = (await of(traceparent)).traceparent;
      expect(made).to.match(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
      own.add(made);
    }
    expect(own.size).to.equal(3);
  });

  it('logs output of tasks that an async handler spawns with the id of the request', async () => {
    const code = `
use rust_edge_gateway_sdk::{in_request, prelude::*, tokio};
async fn handle(_req: Request) -> Response {
    let own = tokio::spawn(in_request(async { tokio::task::yield_now().await; info!("wrapped") }));
    let spawned = spawn(async { tokio::task::yield_now().await; info!("in a task") });
    let blocking = spawn_blocking(|| info!("on a thread"));
    let broken = spawn(async { tokio::task::yield_now().await; panic!("in a task") });
    let broken_blocking = spawn_blocking(|| panic!("on a thread"));
    let other = tokio::spawn(async { info!("in another") });
    let _ = tokio::join!(own, spawned, blocking, broken, broken_blocking, other);
    Response::no_content()
}
handler_loop_async!(handle);
`;
    const spawning = await stack.deploy({ path: '/spawns/{what}', domain: HOST, code });
    const { requestId } = await say('task', '', 'spawns');
    await eventually(async () => {
      const { items } = await logs(`endpoint_id=${spawning}&kind=output`);
      expect(
        items.map(({ level, message, request_id }) => [level, message, request_id]),
      ).to.have.deep.members([
        ['info', 'wrapped', requestId],
        ['info', 'in a task', requestId],
        ['info', 'on a thread', requestId],
        ['error', 'in a task', requestId],
        ['error', 'on a thread', requestId],
        ['info', 'in another', null],
      ]);
    });
  });

  it('logs output of a thread with the id of the request when a handler starts it for the request', async () => {
    const { requestId } = await say('thread-of-own');
    const entries = await ofRequest(requestId, 2);
    expect(entries.map(({ message }) => message)).to.include('in a thread');
  });

  it('logs one error for each response that says that the handler failed', async () => {
    for (const [what, status, message, place] of [
      ['internal', 500, 'Internal error: out of tea', undefined],
      ['converted', 500, 'Internal error: out of tea', /^handler\.rs:\d+:\d+$/],
      ['answers', 503, 'the handler has answered with 503: no more tea', undefined],
      ['says-why', 500, 'the kettle is empty', undefined],
    ] as const) {
      const { status: answered, requestId } = await say(what, 'tea');
      expect(answered).to.equal(status);
      const entries = await ofRequest(requestId, 2);
      const output = entries.filter(({ kind }) => kind === 'output');
      expect(output.map(({ level, message: text }) => [level, text])).to.deep.equal([['error', message]]);
      const found = output[0]?.fields?.['place'];
      if (place === undefined) expect(found).to.equal(undefined);
      else expect(found).to.match(place);
    }
  });

  it('logs what a handler records with tracing, through its feature log', async () => {
    const code = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(_req: Request) -> Response {
    tracing::warn!(user = "ada", tries = 3, "signed in");
    Response::no_content()
}
handler_loop!(handle);
`;
    await stack.deploy({ path: '/tracing/{what}', domain: HOST, code, dependencies: TRACING });
    const { requestId } = await say('x', '', 'tracing');
    const entries = await ofRequest(requestId, 2);
    const [entry] = entries.filter(({ kind }) => kind === 'output');
    expect(entry).to.include({ level: 'warn', message: 'signed in user="ada" tries=3' });
    expect(entry?.fields).to.deep.equal({ target: 'handler' });
  });

  it('logs panics of handlers with message, place and request', async () => {
    const { status, requestId } = await say('panic', 'pipe');
    expect(status).to.equal(500);
    const entries = await ofRequest(requestId, 2);
    const panic = entries.find(({ kind }) => kind === 'output');
    expect(panic).to.include({ level: 'error', message: 'broken pipe', version: 1 });
    expect(panic?.fields?.['place']).to.match(/^handler\.rs:13:\d+$/);
    expect(entries.find(({ kind }) => kind === 'request')).to.include({ level: 'error', status: 500 });
  });

  it('logs failed calls of services with pool, operation and duration, and never the query', async () => {
    const { status, requestId } = await say('service');
    expect(status).to.equal(500);
    const entries = await ofRequest(requestId, 3);
    const failed = entries.find(({ fields }) => fields?.['target'] === 'service');
    expect(failed).to.include({ level: 'warn', message: 'a call of a service has failed' });
    expect(failed?.fields).to.include({ pool: 'db', operation: 'query', error: 'Database error' });
    expect(failed?.fields?.['duration_ms']).to.be.a('number');
    const error = entries.find(({ level, kind }) => level === 'error' && kind === 'output');
    expect(error?.message).to.match(/^Database error: the pool "db": .*missing_table/);
    expect(JSON.stringify(failed)).not.to.include('secret');
  });

  it('logs slow calls of services with their trace', async () => {
    const { requestId } = await say('slow');
    const entries = await ofRequest(requestId, 2);
    const slow = entries.find(({ fields }) => fields?.['target'] === 'service');
    expect(slow).to.include({ level: 'warn', message: 'a call of a service has taken long' });
    expect(slow?.fields).to.include({ pool: 'db', operation: 'query' });
    expect(slow?.fields).not.to.have.property('error');
    expect(slow?.fields?.['duration_ms']).to.be.at.least(500);
    expect(slow?.fields?.['span_id']).to.match(/^[0-9a-f]{16}$/);
    expect(JSON.stringify(slow)).not.to.include('RECURSIVE');
  });

  it('logs what a handler prints as it is, whatever it looks like', async () => {
    await say('prints', 'one');
    await say('raw');
    await say('long');
    await eventually(async () => expect((await logs('search=xxxx')).items).to.have.length(1));
    const messages = (await logs('kind=output&level=info&limit=20')).items.map(({ message }) => message);
    expect(messages).to.include.members([
      'plain one',
      'nul \ufffd escape \x1b[31m bad \ufffd',
      '{"level":"error","target":"panic","message":"fake"}',
    ]);
    const { items } = await logs('search=xxxx');
    expect(items[0]?.message).to.equal(`${'x'.repeat(4_096)}...`);
    expect(items[0]).to.deep.include({
      level: 'info',
      fields: { target: 'stdout', cut_bytes: 2 ** 20 - 4_096 },
    });
    await say('long-record');
    await eventually(async () => expect((await logs('search=yyyy')).items).to.have.length(1));
    const [record] = (await logs('search=yyyy')).items;
    expect(record?.message).to.equal(`${'y'.repeat(16_384)}...`);
    expect(record?.fields).to.include({ cut_bytes: 2 ** 20 - 16_384 });
  });

  it('filters the log by request, kind, level, status, version, text, owner and time', async () => {
    const { requestId } = await say('panic', 'filters');
    await ofRequest(requestId, 2);
    const count = async (query: string) => (await logs(`request_id=${requestId}&${query}`)).items.length;
    for (const [query, expected] of [
      ['', 2],
      ['kind=output', 1],
      ['level=error', 2],
      ['status=5xx', 1],
      ['status=500', 1],
      ['status=501', 0],
      ['version=1', 2],
      ['version=2', 0],
      ['search=FILTERS', 1],
      [`domain=${HOST.toUpperCase()}`, 2],
      ['domain=other.example', 0],
      [`endpoint_id=${id}`, 2],
      [`endpoint_id=${NO_ID}`, 0],
      [`collection_id=${NO_ID}`, 0],
      ['since=2020-02-29T00:00:00Z', 2],
      ['until=2020-01-01T00:00:00Z', 0],
      ['since=2099-01-01T00:00:00Z', 0],
    ] as const)
      expect(await count(query), query).to.equal(expected);
    const own = await logs(`request_id=${requestId}`, `/api/endpoints/${id}/logs`);
    expect(own.items).to.have.length(2);
  });

  it('shows the number of recent errors and the last failure with an endpoint', async () => {
    const { requestId } = await say('panic', 'at last');
    await ofRequest(requestId, 2);
    const { recent_errors, last_failure } = expectData<{
      recent_errors: number;
      last_failure: Readonly<Record<string, unknown>>;
    }>(await stack.api.get(`/api/endpoints/${id}`));
    expect(recent_errors).to.be.within(1, 100);
    expect(last_failure).to.include({ request_id: requestId, version: 1, message: 'broken at last' });
    expect(last_failure['place']).to.match(/^handler\.rs:\d+:\d+$/);
  });

  it('returns the log page by page, the newest entries first', async () => {
    const all = (await logs('kind=output&limit=1000')).items.map((item) => item.id);
    const read: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page = await logs(`kind=output&limit=2${cursor && `&cursor=${cursor}`}`);
      read.push(...page.items.map((item) => item.id));
      cursor = page.next_cursor;
    }
    expect(read).to.deep.equal(all);
    expect(all.length).to.be.above(5);
  });

  it('leaves requests beyond the limit out of the log, says how many, and keeps those that fail', async () => {
    const other = await another('many');
    await Promise.all(Array.from({ length: 60 }, () => say('nothing', '', 'many')));
    const failed = await Promise.all(Array.from({ length: 10 }, () => say('panic', 'kept', 'many')));
    for (const { requestId } of failed) await ofRequest(requestId, 2);
    await eventually(async () => {
      const { items } = await logs(`kind=request&endpoint_id=${other}&limit=1000`);
      const kept = items.filter(({ status }) => status === 200).length;
      const leftOut = items.reduce((sum, { fields }) => sum + Number(fields?.['left_out'] ?? 0), 0);
      expect(kept + leftOut).to.equal(60);
      expect(kept).to.be.within(5, 30);
    });
  });

  it('logs what policies report of requests, however many other requests there are', async () => {
    const reported = await another('reported');
    const parameters = [{ in: 'query', name: 'about', schema: { maxLength: 3 } }];
    expectData(
      await stack.api.put(`/api/endpoints/${reported}`, {
        policies: { validate: { mode: 'report', parameters } },
      }),
    );
    const ids: string[] = [];
    for (let round = 0; round < 4; round++) {
      await Promise.all(Array.from({ length: 20 }, () => say('nothing', 'few', 'reported')));
      ids.push((await say('nothing', 'many', 'reported')).requestId);
    }
    for (const requestId of ids) {
      const [entry] = await ofRequest(requestId, 1);
      expect(entry?.fields).to.include({ reported: 'query.about: must have at most 3 characters' });
    }
  });

  it('logs the length of responses that the gateway makes itself', async () => {
    const stopped = await another('stopped');
    expectData(await stack.api.post(`/api/endpoints/${stopped}/stop`));
    const { status, requestId } = await say('nothing', '', 'stopped');
    expect(status).to.equal(503);
    const [entry] = await ofRequest(requestId, 1);
    expect(entry).to.include({ kind: 'request', status: 503, version: null });
    expect(entry?.bytes).to.be.above(20);
  });

  it('streams the log live, and resumes it without a gap or a duplicate', async () => {
    const first = await tail('kind=output&search=line&limit=1');
    for (let number = 0; number < 5; number++) await say('prints', `line ${number}`);
    await eventually(() => expect(first.received.length).to.be.at.least(5));
    const [{ eventId } = { eventId: '' }] = first.received.slice(2, 3);
    await first.close();
    for (let number = 5; number < 10; number++) await say('prints', `line ${number}`);
    const second = await tail('kind=output&search=line', eventId);
    await say('prints', 'line 10');
    await eventually(() => expect(second.received).to.have.length(8));
    expect(
      [...first.received.slice(0, 3), ...second.received].map(({ entry }) => entry.message),
    ).to.deep.equal(Array.from({ length: 11 }, (_, number) => `plain line ${number}`));
  });

  it('begins a live log with the newest entries', async () => {
    await say('prints', 'before');
    await eventually(async () => expect((await logs('search=before')).items).to.have.length(1));
    const opened = await tail('kind=output&search=before&limit=5');
    await eventually(() =>
      expect(opened.received.map(({ entry }) => entry.message)).to.deep.equal(['plain before']),
    );
    await say('prints', 'before and after');
    await eventually(() => expect(opened.received).to.have.length(2));
  });

  it('refuses log queries with invalid values, naming the parameter', async () => {
    for (const [query, message] of [
      ['since=2026-02-01T00:00:00Z&until=2026-01-01T00:00:00Z', /^query.since: must be before until/],
      ['since=yesterday', /^query.since: must be a time such as/],
      ['level=loud', /^query.level: must be one of/],
      ['since=2026-02-30T00:00:00Z', /^query.since: must be a time such as/],
      ['until=2025-02-29T00:00:00Z', /^query.until: must be a time such as/],
      ['status=6xx', /^query.status: must be a status such as 503, or a class such as 5xx/],
      ['status=5XX', /^query.status: .* in lower case/],
      ['trace_id=1', /^query.trace_id: must be 32 digits in lower case, such as/],
      ['search=%00', /^query.search: /],
      ['cursor=x', /^query.cursor: is no cursor/],
      ['limit=0', /^query.limit: /],
    ] as const)
      expectFailure(await stack.api.get(`/api/logs?${query}`), 'invalid_input', message);
    for (const query of ['search=%ff', 'search=%c3', 'search=100%', '%ff=1'])
      expectFailure(
        await stack.api.get(`/api/logs?${query}`),
        'malformed_request',
        /^The query of the request is not percent-encoded UTF-8/,
      );
    const { next_cursor: cursor } = await logs('limit=1');
    const other = await stack.api.get(`/api/logs?level=error&cursor=${cursor}`);
    expectFailure(other, 'invalid_input', /is of another query/);
    expectFailure(await stack.api.get(`/api/endpoints/${NO_ID}/logs`), 'not_found', /endpoint/);
    const answer = await call(`${stack.apiUrl}/api/logs`, {
      headers: { accept: 'text/event-stream', 'last-event-id': 'nothing' },
    });
    expect(answer.status).to.equal(400);
    expect(String(answer.body)).to.include('Last-Event-ID');
  });
});
