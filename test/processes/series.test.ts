/** Figures over time: over HTTP, with real processes. */
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { expectData, expectFailure, NO_ID } from '../support/expect.js';
import { call } from '../support/http.js';
import type { LogItem } from '../support/log-tail.js';
import { type Stack, startStack } from '../support/processes.js';

const HOST = 'series.example';
const CODE = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(req: Request) -> Response {
    let number = |name: &str| req.query_param(name).and_then(|text| text.parse::<u64>().ok());
    std::thread::sleep(std::time::Duration::from_millis(number("ms").unwrap_or(0)));
    if number("exit").is_some() { std::process::exit(3); }
    // So many steps rather than for so long: other processes may have the processors meanwhile.
    for step in 0..number("busy").unwrap_or(0) * 1_000_000 { std::hint::black_box(step); }
    Response::new(number("status").unwrap_or(200) as u16)
}
handler_loop!(handle);
`;

interface Point {
  readonly at: string;
  readonly requests: number;
  readonly errors: number;
  readonly statuses: Record<string, number>;
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
  readonly cpu_seconds: number;
  readonly memory_bytes: number | null;
  readonly restarts: number;
  readonly in_flight: number;
}

interface Series {
  readonly since: string;
  readonly until: string;
  readonly step: string;
  readonly points: readonly Point[];
}

describe('figures over time', function () {
  this.timeout(120_000);
  let stack: Stack;
  let id: string;
  before(async () => {
    stack = await startStack({ env: { LOG_REQUESTS_PER_SECOND: '100000' } });
    expectData(await stack.api.post('/api/domains', { name: 'D', host: HOST }), 201);
    id = await stack.deploy({ path: '/series', domain: HOST, code: CODE });
  });
  after(() => stack?.close());

  const ask = async (query: string) =>
    (await call(`${stack.gatewayUrl}/series?${query}`, { headers: { host: HOST } })).status;
  const series = async (query: string) => expectData<Series>(await stack.api.get(`/api/series?${query}`));
  /** One point of the day: a minute may end in the middle of a test. */
  const today = async (query: string) => {
    const { points } = await series(
      `${query}&step=1d&since=${new Date(Date.now() - 3_600_000).toISOString()}`,
    );
    return points.reduce((sum, point) => (point.requests > 0 ? point : sum));
  };

  it('counts requests by status over time, with percentiles as exact as promised', async () => {
    for (const status of [201, 204, 302, 404, 500, 503])
      expect(await ask(`status=${status}`)).to.equal(status);
    await Promise.all(Array.from({ length: 200 }, (_, at) => ask(`ms=${(at % 40) * 5}`)));
    const seen = await eventually(async () => {
      const point = await today(`endpoint_id=${id}`);
      expect(point.requests).to.equal(206);
      return point;
    });
    expect(seen).to.deep.include({ errors: 2, restarts: 0 });
    expect(seen.statuses).to.deep.equal({ '2xx': 202, '3xx': 1, '4xx': 1, '5xx': 2, other: 0 });
    expect(seen.in_flight).to.be.within(2, 200);
    const path = `/api/logs?endpoint_id=${id}&kind=request&limit=1000`;
    const { items } = expectData<{ items: LogItem[] }>(await stack.api.get(path));
    const durations = items.map(({ duration_ms }) => duration_ms ?? 0).sort((left, right) => left - right);
    expect(durations).to.have.length(206);
    for (const percent of [50, 95, 99] as const) {
      const exact = durations[Math.ceil((percent / 100) * durations.length) - 1] ?? 0;
      expect(seen[`p${percent}`], `p${percent}`).to.be.closeTo(exact, 0.05 * exact);
    }
  });

  it('returns figures of the last hour by minutes by default, the current minute included', async () => {
    await ask('status=200');
    const { points, step } = await eventually(async () => {
      const found = await series(`endpoint_id=${id}`);
      expect(found.points.some(({ requests }) => requests > 0)).to.equal(true);
      return found;
    });
    expect(step).to.equal('1m');
    expect(points).to.have.length(60);
    const last = Date.parse(points.at(-1)?.at ?? '');
    expect(Date.now() - last).to.be.below(60_000 + 10_000);
    expect(points[0]).to.deep.include({ requests: 0, p50: null, p99: null, memory_bytes: null });
  });

  it('returns the CPU time, memory and restarts of handlers over time', async () => {
    await ask('busy=1500');
    await eventually(async () => {
      const { cpu_seconds, memory_bytes } = await today(`endpoint_id=${id}`);
      expect(cpu_seconds).to.be.within(0.1, 30);
      expect(memory_bytes).to.be.within(100_000, 256 * 1024 * 1024);
    });
    await ask('exit=1');
    await eventually(async () => expect((await today(`endpoint_id=${id}`)).restarts).to.equal(1));
    await eventually(async () => expect(await ask('status=200')).to.equal(200));
  });

  it('returns figures of a version, of a domain, and of all endpoints', async () => {
    const other = await stack.deploy({ path: '/other', domain: '*', code: CODE });
    const answer = await stack.api.post(`/api/endpoints/${id}/deploy`, { code: `${CODE}// second` });
    expectData(answer);
    expect(await ask('status=200')).to.equal(200);
    expect((await call(`${stack.gatewayUrl}/other`)).status).to.equal(200);
    await eventually(async () => {
      expect((await today(`endpoint_id=${id}&version=2`)).requests).to.equal(1);
      expect((await today(`endpoint_id=${other}`)).requests).to.equal(1);
    });
    const of = async (query: string) => (await today(query)).requests;
    const own = await of(`endpoint_id=${id}`);
    expect(await of(`domain=${HOST}`)).to.equal(own);
    expect(await of('')).to.equal(own + 1);
    expect(await of(`endpoint_id=${NO_ID}`)).to.equal(0);
  });

  it('keeps figures when a gateway is restarted', async () => {
    const { requests } = await today('');
    await stack.processes.get('gateway')?.end('SIGTERM');
    await stack.start('gateway');
    await eventually(async () => expect(await ask('status=200')).to.equal(200));
    await eventually(async () => expect((await today('')).requests).to.be.above(requests));
  });

  it('refuses queries of figures that it cannot answer, naming the parameter', async () => {
    const refused = async (query: string, message: RegExp) =>
      expectFailure(await stack.api.get(`/api/series?${query}`), 'invalid_input', message);
    await refused('step=1ms', /query\.step: must be whole minutes, hours or days/);
    await refused('step=0m', /query\.step: must be whole minutes/);
    await refused('since=yesterday', /query\.since: must be a time such as/);
    await refused(
      'since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z',
      /query\.since: must be before until/,
    );
    await refused('since=0001-01-01T00:00:00Z', /query\.since: no more than 1500 days can be asked for/);
    await refused('since=2999-01-01T00:00:00Z', /query\.since: must be in the past/);
    await refused('version=1', /query\.version: needs the endpoint_id/);
    await refused(`endpoint_id=${id}&domain=a.example`, /query\.domain: cannot be given together/);
    const since = new Date(Date.now() - 3 * 86_400_000).toISOString();
    await refused(
      `since=${since}&step=1m`,
      /query\.step: .* kept by 10 minutes: it must be a multiple of 10m/,
    );
    const month = new Date(Date.now() - 2_000 * 3_600_000).toISOString();
    await refused(`since=${month}&step=1h`, /query\.step: these are 200[01] points, and may be 1500/);
    expect((await series(`since=${since}`)).step).to.equal('10m');
    expect((await series(`since=${month}`)).step).to.equal('1d');
  });
});
