/** The charts of an endpoint, and what they add up to. */
import { useMemo } from 'preact/hooks';
import { Chart, type ChartLine } from '../../base/chart.js';
import { once } from '../../base/once.js';
import { bytes, count, duration } from '../../base/text.js';
import type { Series, SeriesPoint } from '../../generated/routes.js';
import { secondsOf } from './ranges.js';

/** Shortest part of the current step from which a rate per second is computed, seconds. */
const SHORTEST_SECONDS = 10;
const POWERS_OF_TWO = Array.from({ length: 50 }, (_, power) => 2 ** power);
const RATE = once(() => new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 }));

interface Drawn {
  readonly title: string;
  readonly lines: readonly ChartLine[];
  readonly format: (value: number) => string;
  readonly steps?: readonly number[];
}

export function EndpointCharts({ series }: { readonly series: Series }) {
  const times = useMemo(() => series.points.map(({ at }) => Date.parse(at) / 1_000), [series]);
  const charts = useMemo(() => chartsOf(series), [series]);
  return (
    <>
      <Totals points={series.points} />
      <div class="charts">
        {charts.map((chart) => (
          <Chart key={chart.title} times={times} {...chart} />
        ))}
      </div>
    </>
  );
}

function Totals({ points }: { readonly points: readonly SeriesPoint[] }) {
  const sum = (of: (point: SeriesPoint) => number) => points.reduce((total, point) => total + of(point), 0);
  const requests = sum((point) => point.requests);
  const errors = sum((point) => point.errors);
  const slowest = points.reduce<number | null>(
    (most, { p95 }) => (p95 === null ? most : Math.max(most ?? 0, p95)),
    null,
  );
  const memory = points.reduce((most, point) => Math.max(most, point.memory_bytes ?? 0), 0);
  const facts = [
    ['Requests', count(requests)],
    ['Answered with 5xx', requests > 0 ? `${count(errors)} (${percent(errors / requests)})` : count(errors)],
    ['Highest p95', slowest === null ? '–' : duration(slowest)],
    ['Most memory', memory > 0 ? bytes(memory) : '–'],
    ['Restarts', count(sum((point) => point.restarts))],
  ] as const;
  return (
    <dl class="totals">
      {facts.map(([name, value]) => (
        <div key={name} class="card">
          <dt>{name}</dt>
          <dd class="number">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function percent(share: number): string {
  return `${RATE().format(share * 100)} %`;
}

function aSecond(value: number): string {
  return `${RATE().format(value)}/s`;
}

function processors(value: number): string {
  return percent(value);
}

function chartsOf({ points, step }: Series): readonly Drawn[] {
  const seconds = secondsOf(step);
  const values = (of: (point: SeriesPoint) => number | null) => points.map(of);
  const rate = (of: (point: SeriesPoint) => number) =>
    points.map((point) => {
      const passed = (Date.now() - Date.parse(point.at)) / 1_000;
      return of(point) / Math.min(seconds, Math.max(SHORTEST_SECONDS, passed));
    });
  const line = (label: string, number: number, of: ChartLine['values']): ChartLine => ({
    ...{ label, values: of, colour: `--chart-${number}` },
  });
  return [
    {
      title: 'Requests',
      format: aSecond,
      lines: [
        line(
          'all',
          1,
          rate((point) => point.requests),
        ),
      ],
    },
    {
      title: `Errors in ${lengthOf(step)}`,
      format: count,
      lines: [
        line(
          '4xx',
          2,
          values(({ statuses }) => statuses['4xx']),
        ),
        line(
          '5xx',
          3,
          values(({ statuses }) => statuses['5xx']),
        ),
      ],
    },
    {
      title: 'Time to answer',
      format: duration,
      lines: [
        line(
          'p50',
          1,
          values(({ p50 }) => p50),
        ),
        line(
          'p95',
          2,
          values(({ p95 }) => p95),
        ),
        line(
          'p99',
          3,
          values(({ p99 }) => p99),
        ),
      ],
    },
    {
      title: 'Memory',
      format: bytes,
      steps: POWERS_OF_TWO,
      lines: [
        line(
          'all handlers',
          1,
          values((point) => point.memory_bytes),
        ),
      ],
    },
    {
      title: 'Processor',
      format: processors,
      lines: [
        line(
          'of one processor',
          1,
          rate((point) => point.cpu_seconds),
        ),
      ],
    },
    {
      title: `Restarts in ${lengthOf(step)}`,
      format: count,
      lines: [
        line(
          'after a crash or a deadline',
          3,
          values((point) => point.restarts),
        ),
      ],
    },
  ];
}

function lengthOf(step: string): string {
  const names: Readonly<Record<string, string>> = {
    '1m': 'a minute',
    '10m': '10 minutes',
    '1h': 'an hour',
    '1d': 'a day',
  };
  return names[step] ?? step;
}
