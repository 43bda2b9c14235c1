/** The metrics of a front in the form of those of the other processes, made of the figures that it reports. */
import { BOUNDS, type EndpointMetrics, type Metrics, TRIAL } from '../../contracts/front.js';
import type { MetricSnapshot } from '../../metrics/process-metrics.js';
import type { EndpointState } from './messages.js';

type Metric = MetricSnapshot[number];
type Value = Metric['values'][number];
type Labels = Readonly<Record<string, string | number>>;

const DURATION = 'edge_gateway_request_duration_seconds';

/** @param states by their ids: what the labels of endpoints are made of */
export function frontMetrics(
  { connections, requestsInFlight, refused, policies, reported, endpoints }: Metrics,
  states: ReadonlyMap<string, EndpointState>,
): MetricSnapshot {
  const known = endpoints.flatMap((figures) => {
    const state = states.get(figures.id);
    // One that has just been deleted has no state any more.
    return state && !figures.id.startsWith(TRIAL) ? [{ figures, labels: labelsOf(state) }] : [];
  });
  return [
    metric(
      'counter',
      'edge_gateway_requests_total',
      'Requests by endpoint and status class',
      known.flatMap(({ figures, labels }) => requests(figures, labels)),
    ),
    metric(
      'histogram',
      DURATION,
      'Time from the end of a request to the start of its response, by endpoint',
      known.flatMap(({ figures, labels }) => durations(figures, labels)),
    ),
    metric(
      'counter',
      'edge_gateway_refused_total',
      'Requests that belong to no endpoint, by status',
      Object.entries(refused).map(([status, value]) => ({ value, labels: { status } })),
    ),
    metric(
      'counter',
      'edge_gateway_policy_answers_total',
      'Requests that a policy answered or refused instead of a handler, by the policy',
      Object.entries(policies).map(([policy, value]) => ({ value, labels: { policy } })),
    ),
    metric(
      'counter',
      'edge_gateway_policy_reports_total',
      'Requests that a policy found something wrong with and let through, by the policy',
      Object.entries(reported).map(([policy, value]) => ({ value, labels: { policy } })),
    ),
    metric('gauge', 'edge_gateway_requests_in_flight', 'Requests that handlers are working on', [
      { value: requestsInFlight, labels: {} },
    ]),
    metric('gauge', 'edge_gateway_connections', 'Connections of clients that are open', [
      { value: connections, labels: {} },
    ]),
  ];
}

function metric(type: string, name: string, help: string, values: readonly Value[]): Metric {
  // A metric as prom-client describes it, which says of the type that it is a number of its own.
  return { name, help, type, values, aggregator: 'sum' } as unknown as Metric;
}

function labelsOf({ id, domain, method, route }: EndpointState): Labels {
  return { endpoint: id, domain, method, route };
}

function requests({ statuses }: EndpointMetrics, labels: Labels): Value[] {
  return statuses.flatMap((value, statusClass) =>
    value > 0 ? [{ value, labels: { ...labels, status: `${statusClass}xx` } }] : [],
  );
}

/** Each bucket counts those before it too. */
function durations({ buckets, seconds }: EndpointMetrics, labels: Labels): Value[] {
  const named = (suffix: string, value: number, more: Labels = {}): Value => {
    const series = { value, labels: { ...more, ...labels }, metricName: `${DURATION}_${suffix}` };
    return series;
  };
  let count = 0;
  const cumulative = buckets.map((bucket, at) => {
    count += bucket;
    return named('bucket', count, { le: BOUNDS[at] ?? '+Inf' });
  });
  return [...cumulative, named('sum', seconds), named('count', count)];
}
