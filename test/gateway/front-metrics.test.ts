/** Metrics made of the figures of fronts. */
import { expect } from 'chai';
import { AggregatorRegistry } from 'prom-client';
import type { Metrics } from '../../src/contracts/front.js';
import { frontMetrics } from '../../src/gateway/front/front-metrics.js';
import type { EndpointState } from '../../src/gateway/front/messages.js';

const STATE: EndpointState = {
  id: 'one',
  domain: '*',
  method: 'GET',
  route: '/items/{id}',
  routed: true,
  limits: { timeoutMs: 1, idleTimeoutMs: 1, concurrentRequests: 1 },
  serving: { kind: 'none' },
};
const FIGURES: Metrics = {
  connections: 3,
  requestsInFlight: 2,
  policies: { ip: 2 },
  reported: { validate: 4 },
  refused: { 404: 5 },
  endpoints: [
    {
      id: 'one',
      statuses: [0, 0, 6, 0, 0, 1, 0, 0, 0, 0],
      buckets: [4, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
      seconds: 31.25,
    },
    // It has been deleted meanwhile.
    { id: 'gone', statuses: [0, 0, 1, 0, 0, 0, 0, 0, 0, 0], buckets: Array(16).fill(1), seconds: 1 },
  ],
};
const LABELS = 'endpoint="one",domain="*",method="GET",route="/items/{id}"';

describe('metrics of fronts', () => {
  const states = new Map([[STATE.id, STATE]]);
  const text = (figures: readonly Metrics[]) =>
    AggregatorRegistry.aggregate(figures.map((one) => frontMetrics(one, states))).metrics();

  it('makes metrics of fronts with the labels of endpoints and cumulative buckets', async () => {
    const lines = (await text([FIGURES])).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    const buckets = ['0.0005', '0.001', '0.0025', '0.005', '0.01', '0.025', '0.05', '0.1', '0.25', '0.5'];
    const counts = [4, 4, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 7];
    expect(lines).to.deep.equal([
      `edge_gateway_requests_total{${LABELS},status="2xx"} 6`,
      `edge_gateway_requests_total{${LABELS},status="5xx"} 1`,
      ...[...buckets, '1', '2.5', '5', '10', '30', '+Inf'].map(
        (bound, at) => `edge_gateway_request_duration_seconds_bucket{le="${bound}",${LABELS}} ${counts[at]}`,
      ),
      `edge_gateway_request_duration_seconds_sum{${LABELS}} 31.25`,
      `edge_gateway_request_duration_seconds_count{${LABELS}} 7`,
      'edge_gateway_refused_total{status="404"} 5',
      'edge_gateway_policy_answers_total{policy="ip"} 2',
      'edge_gateway_policy_reports_total{policy="validate"} 4',
      'edge_gateway_requests_in_flight 2',
      'edge_gateway_connections 3',
    ]);
  });

  it('adds the metrics of several fronts', async () => {
    const sums = await text([FIGURES, FIGURES]);
    expect(sums).to.include(`edge_gateway_requests_total{${LABELS},status="2xx"} 12`);
    expect(sums).to.include(`edge_gateway_request_duration_seconds_bucket{le="+Inf",${LABELS}} 14`);
    expect(sums).to.match(/^edge_gateway_connections 6$/m);
  });
});
