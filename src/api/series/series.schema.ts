/** Schemas of figures over time, and which of them a request asks for. */
import { type Static, Type } from '@sinclair/typebox';
import { AppError } from '../../errors.js';
import { percentile } from '../../model/durations.js';
import { KEPT, type SeriesFilter, type SeriesPoint } from '../../store/figures.js';
import { TimeSpan, timeSpan } from '../request/time-span.js';
import { Id, nullable, optional, Timestamp } from '../route/schemas.js';

const Step = Type.String({
  format: 'step',
  description: 'Minutes, hours or days, such as `1m`; unless given, the shortest that is kept for the time',
});

export const SeriesQuery = Type.Object(
  optional({
    endpoint_id: Id,
    domain: Type.String({ format: 'hostname-or-any', description: 'The host of the endpoints' }),
    version: Type.Integer({ minimum: 1, maximum: 2_147_483_647, description: 'Of the endpoint' }),
    ...TimeSpan,
    step: Step,
  }),
);

const Count = Type.Integer({ minimum: 0 });
const Milliseconds = (percent: number) =>
  nullable(Type.Number({ description: `${percent} % of the requests took no longer, milliseconds` }));

const Point = Type.Object(
  {
    at: Type.String({ format: 'date-time', description: 'When it begins; ISO 8601, UTC' }),
    requests: Count,
    errors: Type.Integer({ minimum: 0, description: 'Requests with a status of 500 or more' }),
    statuses: Type.Object({
      ...{ '2xx': Count, '3xx': Count, '4xx': Count, '5xx': Count },
      other: Count,
    }),
    p50: Milliseconds(50),
    p95: Milliseconds(95),
    p99: Milliseconds(99),
    cpu_seconds: Type.Number({ description: 'Time of processors that handlers have used' }),
    memory_bytes: nullable(Type.Integer({ description: 'The most that each handler has had, added up' })),
    restarts: Type.Integer({ description: 'Handlers replaced after a crash or a deadline' }),
    in_flight: Type.Integer({ description: 'The most requests of one endpoint at a time, on one gateway' }),
  },
  { title: 'SeriesPoint' },
);

export const Series = Type.Object(
  { since: Timestamp, until: Timestamp, step: Step, points: Type.Array(Point) },
  { title: 'Series' },
);

const MINUTE = 60;
const UNITS: Readonly<Record<string, number>> = { m: MINUTE, h: 60 * MINUTE, d: 24 * 60 * MINUTE };
const MAX_POINTS = 1_500;
/** Steps that are taken where none is given. */
const STEPS = ['1m', '10m', '1h', '1d'] as const;

/** A request for figures. */
export interface SeriesRequest extends SeriesFilter {
  readonly stepName: string;
}

/** @throws AppError invalid_input when there are no such figures */
export function seriesRequest(query: Static<typeof SeriesQuery>): SeriesRequest {
  const { endpoint_id: endpointId, domain, version } = query;
  if (endpointId !== undefined && domain !== undefined)
    throw new AppError('invalid_input', 'query.domain: cannot be given together with endpoint_id');
  if (version !== undefined && endpointId === undefined)
    throw new AppError('invalid_input', 'query.version: needs the endpoint_id whose version it is');
  const span = timeSpan(query);
  const now = Date.now();
  const until = span.until ?? new Date(now);
  // With the current minute these are 60.
  const since = span.since ?? new Date(until.getTime() - 59 * MINUTE * 1000);
  const seconds = (until.getTime() - since.getTime()) / 1000;
  if (seconds <= 0) throw new AppError('invalid_input', 'query.since: must be in the past');
  const kept = keptStep((now - since.getTime()) / 1000);
  const fits = (name: string) => secondsOf(name) >= kept && seconds / secondsOf(name) <= MAX_POINTS;
  const stepName = query.step ?? STEPS.find(fits) ?? '1d';
  const step = secondsOf(stepName);
  if (query.step === undefined && seconds / step > MAX_POINTS)
    throw new AppError(
      'invalid_input',
      `query.since: no more than ${MAX_POINTS} days can be asked for at a time`,
    );
  if (step % kept !== 0)
    throw new AppError(
      'invalid_input',
      `query.step: figures since then are kept by ${kept / MINUTE} minutes: it must be a multiple of ${kept / MINUTE}m`,
    );
  if (seconds / step > MAX_POINTS)
    throw new AppError(
      'invalid_input',
      `query.step: these are ${Math.ceil(seconds / step)} points, and may be ${MAX_POINTS}: ask for a longer step or less time`,
    );
  const begins = new Date(Math.floor(since.getTime() / 1000 / step) * step * 1000);
  return {
    endpointId,
    domain: domain?.toLowerCase(),
    ...{ version, since: begins, until, step, stepName },
  };
}

/** The shortest step of figures of this age, seconds. */
function keptStep(age: number): number {
  return (KEPT.find((kept) => age <= kept.age) ?? KEPT[KEPT.length - 1] ?? KEPT[0]).step;
}

function secondsOf(step: string): number {
  return Number(step.slice(0, -1)) * (UNITS[step.slice(-1)] ?? MINUTE);
}

/** All points of a series, also those of which nothing is known. */
export function presentSeries(
  { since, until, step, stepName }: SeriesRequest,
  known: readonly SeriesPoint[],
): Static<typeof Series> {
  const byTime = new Map(known.map((point) => [point.at, point]));
  const points: Static<typeof Point>[] = [];
  for (let at = since.getTime() / 1000; at < until.getTime() / 1000; at += step)
    points.push(present(at, byTime.get(at)));
  return { since: since.toISOString(), until: until.toISOString(), step: stepName, points };
}

function present(at: number, point: SeriesPoint | undefined): Static<typeof Point> {
  const statuses = {
    '2xx': point?.status_2xx ?? 0,
    '3xx': point?.status_3xx ?? 0,
    '4xx': point?.status_4xx ?? 0,
    '5xx': point?.status_5xx ?? 0,
    other: point?.status_other ?? 0,
  };
  const percentileOf = (percent: number) => {
    const ms = point ? percentile(point, percent) : null;
    return ms === null ? null : rounded(ms);
  };
  return {
    at: new Date(at * 1000).toISOString(),
    requests: Object.values(statuses).reduce((sum, count) => sum + count, 0),
    errors: statuses['5xx'],
    statuses,
    ...{ p50: percentileOf(50), p95: percentileOf(95), p99: percentileOf(99) },
    cpu_seconds: rounded(point?.cpu_seconds ?? 0),
    memory_bytes: point?.memory_bytes || null,
    restarts: point?.restarts ?? 0,
    in_flight: point?.in_flight ?? 0,
  };
}

/** Rounds to four digits. */
function rounded(value: number): number {
  return Number(value.toPrecision(4));
}
