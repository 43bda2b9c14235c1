/** Traces go out by OTLP: to a real receiver, from real processes. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { expectData } from '../support/expect.js';
import { call } from '../support/http.js';
import type { LogItem } from '../support/log-tail.js';
import { type Stack, startStack } from '../support/processes.js';
import { activeService, bind, SECRET_KEY } from '../support/test-services.js';

const CODE = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(req: Request) -> Result<Response, HandlerError> {
    let db = DbPool::new("db");
    match req.query_param("what").map(String::as_str) {
        Some("fails") => { db.query("SELECT * FROM missing_table", ())?; }
        Some("calls") => {
            db.query("SELECT 1", ())?;
            db.transaction(|tx| tx.query("SELECT 2", ()).map(drop))?;
        }
        _ => {}
    }
    Ok(Response::ok(json!({ "traceparent": req.header("traceparent"), "tracestate": req.header("tracestate") })))
}
handler_loop_result!(handle);
`;

/** As OTLP has it in JSON. */
interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status: { readonly code?: number; readonly message?: string };
  readonly attributes: readonly { key: string; value: Record<string, unknown> }[];
}

interface Export {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: Span['attributes'] };
    readonly scopeSpans: readonly { readonly spans: readonly Span[] }[];
  }[];
}

const SERVER = 2;
const CLIENT = 3;
const ERROR = 2;
const CALLER = 'b7ad6b7169203331';
let last = 0;
const newTrace = () => `0af7651916cd43dd8448eb21${String(++last).padStart(8, '0')}`;

describe('traces', function () {
  this.timeout(120_000);
  let receiver: Server;
  let stack: Stack;
  let id: string;
  let isAway = false;
  const spans: Span[] = [];
  const requests: { url: string | undefined; key: unknown; service: unknown }[] = [];
  before(async () => {
    receiver = createServer((request, response) => {
      void json(request).then((body) => {
        const { resourceSpans } = body as Export;
        const [first] = resourceSpans;
        const service = first?.resource.attributes.find(({ key }) => key === 'service.name')?.value[
          'stringValue'
        ];
        requests.push({ url: request.url, key: request.headers['x-key'], service });
        if (isAway) {
          response.writeHead(400).end();
          return;
        }
        spans.push(...resourceSpans.flatMap(({ scopeSpans }) => scopeSpans).flatMap((scope) => scope.spans));
        response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}');
      });
    });
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
    const { port } = receiver.address() as AddressInfo;
    stack = await startStack({
      env: {
        ...{ SECRET_KEY, LOG_REQUESTS_PER_SECOND: '0', OTEL_SERVICE_NAME: 'edge' },
        OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}/`,
        OTEL_EXPORTER_OTLP_HEADERS: 'x-key=a%20secret',
      },
    });
    id = await stack.deploy({ path: '/traced', code: CODE });
    const service = await activeService(stack.api, 'sqlite', { path: 'traced.db' });
    await bind(stack.api, id, service, 'db');
  });
  after(async () => {
    await stack?.close();
    receiver?.close();
  });

  const get = async (what: string, traceparent?: string) => {
    const headers = { tracestate: 'vendor=1', ...(traceparent !== undefined && { traceparent }) };
    const {
      status,
      text,
      headers: answered,
    } = await call(`${stack.gatewayUrl}/traced?what=${what}`, { headers });
    const seen = (status === 200 ? JSON.parse(text) : {}) as { traceparent?: string; tracestate?: string };
    return { status, seen, requestId: String(answered['x-request-id']) };
  };
  const of = (trace: string) => spans.filter(({ traceId }) => traceId === trace);
  const attributesOf = (span: Span | undefined) =>
    Object.fromEntries((span?.attributes ?? []).map(({ key, value }) => [key, Object.values(value)[0]]));

  it('exports a request as a span of the trace of the client, and calls of services as child spans', async () => {
    const trace = newTrace();
    const { seen, requestId } = await get('calls', `00-${trace}-${CALLER}-01`);
    await eventually(() => expect(of(trace)).to.have.length(5));
    const [server, ...others] = of(trace).filter(({ kind }) => kind === SERVER);
    expect(others).to.deep.equal([]);
    expect(server).to.include({ name: 'GET /traced', parentSpanId: CALLER });
    expect(seen).to.deep.equal({ traceparent: `00-${trace}-${server?.spanId}-01`, tracestate: 'vendor=1' });
    expect(attributesOf(server)).to.include({
      'http.request.method': 'GET',
      'http.route': '/traced',
      'http.response.status_code': 200,
      'edge.endpoint_id': id,
      'edge.request_id': requestId,
      'edge.version': 1,
    });
    const calls = of(trace).filter(({ kind }) => kind === CLIENT);
    expect(calls.map(({ name }) => name)).to.have.members(['query db', 'begin db', 'query db', 'commit db']);
    expect(new Set([server, ...calls].map((span) => span?.spanId)).size).to.equal(5);
    for (const span of calls) {
      expect(span.parentSpanId).to.equal(server?.spanId);
      expect(attributesOf(span)).to.include({ 'edge.pool': 'db', 'edge.request_id': requestId });
      expect(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano)).to.equal(true);
    }
    expect(JSON.stringify(of(trace))).not.to.include('SELECT');
    expect(requests[0]).to.deep.equal({ url: '/v1/traces', key: 'a secret', service: 'edge' });
  });

  it('marks the spans of a failed request and a failed service call, with their ids in the log', async () => {
    const trace = newTrace();
    const { status, requestId } = await get('fails', `00-${trace}-${CALLER}-01`);
    expect(status).to.equal(500);
    await eventually(() => expect(of(trace)).to.have.length(2));
    expect(of(trace).map(({ status: ended }) => ended.code)).to.deep.equal([ERROR, ERROR]);
    const [server, failed] = [SERVER, CLIENT].map((kind) => of(trace).find((span) => span.kind === kind));
    await eventually(async () => {
      const { items } = expectData<{ items: LogItem[] }>(
        await stack.api.get(`/api/logs?request_id=${requestId}`),
      );
      const fields = (which: (item: LogItem) => boolean) => items.find(which)?.fields;
      expect(fields(({ kind }) => kind === 'request')).to.deep.equal({
        span_id: server?.spanId,
        parent_id: CALLER,
      });
      const called = fields(({ fields: all }) => all?.['target'] === 'service');
      expect(called).to.include({ trace_id: trace, span_id: failed?.spanId, parent_id: server?.spanId });
      expect(called).not.to.have.any.keys('ended_us', 'lost_spans');
    });
  });

  it('exports traces only when the client or the sampler decides so', async () => {
    const [unsampled, sampled] = [newTrace(), newTrace()];
    expect((await get('calls', `00-${unsampled}-${CALLER}-00`)).seen.traceparent).to.match(/-00$/);
    const own = (await get('calls')).seen;
    expect(own.tracestate ?? null).to.equal(null);
    const [, made = '', server] = /^00-(\w{32})-(\w{16})-01$/.exec(own.traceparent ?? '') ?? [];
    await get('calls', `00-${sampled}-${CALLER}-01`);
    await eventually(() => expect(of(sampled)).to.have.length(5));
    await eventually(() => expect(of(made)).to.have.length(5));
    const root = of(made).find(({ spanId }) => spanId === server);
    expect(root?.parentSpanId ?? '').to.equal('');
    expect(of(unsampled)).to.deep.equal([]);
  });

  it('counts spans that the receiver of traces refuses, and serves requests meanwhile', async () => {
    isAway = true;
    const counted = async (outcome: string) => {
      const { text } = await call(`${stack.apiUrl}/metrics`);
      return Number(
        new RegExp(`edge_gateway_spans_total\\{outcome="${outcome}"\\} (\\d+)`).exec(text)?.[1] ?? 0,
      );
    };
    expect((await get('calls', `00-${newTrace()}-${CALLER}-01`)).status).to.equal(200);
    await eventually(async () => expect(await counted('lost')).to.equal(5));
    isAway = false;
    const trace = newTrace();
    await get('nothing', `00-${trace}-${CALLER}-01`);
    await eventually(() => expect(of(trace)).to.have.length(1));
    expect(await counted('exported')).to.be.at.least(1);
  });
});
