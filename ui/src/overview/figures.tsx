/** Requests, errors and durations: now, and over the last hour or day. */
import { useMemo } from 'preact/hooks';
import { useQuery } from '../api/query.js';
import { useAddressValue } from '../base/address.js';
import { Loaded } from '../base/notices.js';
import { Sparkline } from '../base/sparkline.js';
import { count, duration } from '../base/text.js';
import { useInterval } from '../base/use-interval.js';
import type { Series, SeriesPoint } from '../generated/routes.js';

const REFRESH_MS = 5_000;
const DAY_MS = 86_400_000;

export function Figures() {
  const [range, setRange] = useAddressValue('range');
  const isDay = range === 'day';
  // A day by steps of ten minutes; it begins with one.
  const query = useMemo(() => {
    const since = new Date(Math.floor((Date.now() - DAY_MS) / 600_000) * 600_000).toISOString();
    return isDay ? { since, step: '10m' } : {};
  }, [isDay]);
  const recent = useQuery('GET /api/series', {});
  const series = useQuery('GET /api/series', { query });
  useInterval(REFRESH_MS, () => {
    recent.refresh();
    if (isDay) series.refresh();
  });
  return (
    <section class="stack" aria-label="Requests">
      <fieldset class="actions" aria-label="Time span">
        {(['hour', 'day'] as const).map((one) => (
          <button
            key={one}
            type="button"
            class="button small"
            aria-pressed={isDay === (one === 'day')}
            onClick={() => setRange(one === 'day' ? 'day' : '')}
          >
            Last {one}
          </button>
        ))}
      </fieldset>
      <Loaded result={series} lines={4}>
        {(data) => <Tiles series={data} recent={recent.data ?? data} span={isDay ? 'day' : 'hour'} />}
      </Loaded>
    </section>
  );
}

interface TilesProps {
  readonly series: Series;
  /** Figures by minutes, up to the current one. */
  readonly recent: Series;
  readonly span: string;
}

function Tiles({ series: { points, step }, recent, span }: TilesProps) {
  const seconds = secondsOf(step);
  const now = latest(recent.points);
  const total = sum(points, ({ requests }) => requests);
  const errors = sum(points, ({ errors }) => errors);
  const slowest = Math.max(...points.map(({ p95 }) => p95 ?? 0));
  return (
    <div class="grid">
      <Tile
        title="Requests a second"
        value={rate(now.requests / now.seconds)}
        more={`${count(total)} in the last ${span}`}
        values={points.map(({ at, requests }) => requests / passedOf(at, seconds))}
      />
      <Tile
        title="Errors"
        value={now.requests > 0 ? percent(now.errors / now.requests) : '0 %'}
        more={`${count(errors)} in the last ${span}`}
        values={points.map(({ requests, errors }) => (requests > 0 ? errors / requests : 0))}
        isBad={now.errors > 0}
      />
      <Tile
        title="95 % answered within"
        value={now.p95 === null ? '–' : duration(now.p95)}
        more={total > 0 ? `at most ${duration(slowest)} in the last ${span}` : `none in the last ${span}`}
        values={points.map(({ p95 }) => p95)}
      />
    </div>
  );
}

interface TileProps {
  readonly title: string;
  readonly value: string;
  readonly more: string;
  readonly values: readonly (number | null)[];
  readonly isBad?: boolean;
}

function Tile({ title, value, more, values, isBad = false }: TileProps) {
  return (
    <div class="card pad tile">
      <h2>{title}</h2>
      <div class={`value number${isBad ? ' bad-text' : ''}`}>{value}</div>
      <Sparkline label={`${title}: now ${value}, ${more}`} values={values} />
      <div class="small muted">{more}</div>
    </div>
  );
}

/** The current minute with the one before it, so that it is no figure of a few seconds. */
function latest(points: readonly SeriesPoint[]) {
  const last = points.slice(-2);
  const since = last[0] ? Date.parse(last[0].at) : Date.now();
  return {
    requests: sum(last, ({ requests }) => requests),
    errors: sum(last, ({ errors }) => errors),
    p95: last.at(-1)?.p95 ?? last[0]?.p95 ?? null,
    seconds: Math.max(1, (Date.now() - since) / 1_000),
  };
}

/** Less is too short to say how many there are a second. */
const SHORTEST_SECONDS = 10;

/** So much of a step has passed. @param seconds of the whole step */
function passedOf(at: string, seconds: number): number {
  return Math.min(seconds, Math.max(SHORTEST_SECONDS, (Date.now() - Date.parse(at)) / 1_000));
}

function sum(points: readonly SeriesPoint[], of: (point: SeriesPoint) => number): number {
  return points.reduce((total, point) => total + of(point), 0);
}

/** Seconds of a step such as `10m`. */
function secondsOf(step: string): number {
  const unit = { m: 60, h: 3_600, d: 86_400 }[step.slice(-1)] ?? 1;
  return Number.parseInt(step, 10) * unit;
}

const rate = (value: number) =>
  value >= 100 ? count(Math.round(value)) : value.toFixed(value >= 10 ? 0 : 1);
const percent = (share: number) => `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;
