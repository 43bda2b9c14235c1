/**
 * Lines of figures over time, drawn by uPlot. The table below has the same figures for those who do not see the
 * drawing.
 */
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { once } from './once.js';
import { ScrollArea } from './scroll-area.js';

export interface ChartLine {
  readonly label: string;
  /** One for each time; null: nothing is known. */
  readonly values: readonly (number | null)[];
  /** A custom property, such as `--chart-1`. */
  readonly colour: `--${string}`;
}

export interface ChartProps {
  readonly title: string;
  /** Seconds since 1970, ascending. */
  readonly times: readonly number[];
  readonly lines: readonly ChartLine[];
  /** A value as text, with its unit. */
  readonly format: (value: number) => string;
  /** What may lie between two marks of the axis; powers of ten and halves of them unless given. */
  readonly steps?: readonly number[];
}

interface Pointed {
  readonly index: number;
  /** Pixels from the left of the drawing. */
  readonly left: number;
  readonly isRightHalf: boolean;
}

const DAY = 86_400;
const CLOCK = once(
  () => new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }),
);
const DATE = once(() => new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' }));
const MOMENT = once(
  () =>
    new Intl.DateTimeFormat(undefined, {
      ...{ month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' },
      hourCycle: 'h23',
    }),
);

export function Chart({ title, times, lines, format, steps }: ChartProps) {
  const [pointed, setPointed] = useState<Pointed>();
  const [isTable, setTable] = useState(false);
  const plot = usePlot({ title, times, lines, format, ...(steps && { steps }) }, setPointed);
  return (
    <figure class="card chart" aria-label={title}>
      <figcaption>
        <h2>{title}</h2>
        <ul class="legend">
          {lines.map((line) => (
            <li key={line.label}>
              <Swatch line={line} />
              <span class="muted">{line.label}</span>
              <span class="number">{newest(line.values, format)}</span>
            </li>
          ))}
        </ul>
      </figcaption>
      <div class="plot" aria-hidden="true" ref={plot} onMouseLeave={() => setPointed(undefined)}>
        {pointed && <Tip pointed={pointed} times={times} lines={lines} format={format} />}
      </div>
      <details onToggle={(event) => setTable(event.currentTarget.open)}>
        <summary>{title} as a table</summary>
        {isTable && <Table title={title} times={times} lines={lines} format={format} />}
      </details>
    </figure>
  );
}

function Swatch({ line }: { readonly line: ChartLine }) {
  return <span class="swatch" style={{ background: `var(${line.colour})` }} />;
}

function newest(values: ChartLine['values'], format: ChartProps['format']): string {
  const value = values.findLast((one) => one !== null);
  return value == null ? '–' : format(value);
}

/** The values at the time that is pointed at. */
function Tip({ pointed, times, lines, format }: Omit<ChartProps, 'title'> & { readonly pointed: Pointed }) {
  const { index, left, isRightHalf } = pointed;
  const at = times[index];
  if (at === undefined) return null;
  return (
    <div class={`chart-tip ${isRightHalf ? 'left' : 'right'}`} style={{ left: `${left}px` }}>
      <strong>{MOMENT().format(at * 1_000)}</strong>
      <ul>
        {lines.map((line) => (
          <li key={line.label}>
            <Swatch line={line} />
            {line.label} <strong class="number">{shown(line.values[index], format)}</strong>
          </li>
        ))}
      </ul>
    </div>
  );
}

function shown(value: number | null | undefined, format: ChartProps['format']): string {
  return value == null ? '–' : format(value);
}

/** The same figures, newest first. */
function Table({ title, times, lines, format }: ChartProps) {
  return (
    <ScrollArea class="scroll" label={`Figures of ${title}`}>
      <table>
        <thead>
          <tr>
            <th scope="col">From</th>
            {lines.map(({ label }) => (
              <th key={label} scope="col">
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {times
            .map((at, index) => (
              <tr key={at}>
                <th scope="row">{MOMENT().format(at * 1_000)}</th>
                {lines.map(({ label, values }) => (
                  <td key={label} class="number">
                    {shown(values[index], format)}
                  </td>
                ))}
              </tr>
            ))
            .reverse()}
        </tbody>
      </table>
    </ScrollArea>
  );
}

/** Draws into the element of the returned reference, in its size and in the colours of the theme. */
function usePlot(
  { times, lines, format, steps }: ChartProps,
  onPoint: (pointed: Pointed | undefined) => void,
) {
  const ref = useRef<HTMLDivElement>(null);
  const drawn = useRef<uPlot | undefined>(undefined);
  const data = [times, ...lines.map(({ values }) => values)] as unknown as uPlot.AlignedData;
  const names = lines.map(({ label, colour }) => `${label} ${colour}`).join();

  useLayoutEffect(() => {
    const element = ref.current;
    if (!element) return;
    const size = () => ({ width: element.clientWidth, height: element.clientHeight });
    const plot = new uPlot(
      {
        ...size(),
        ...{ legend: { show: false }, padding: [8, 20, 0, 0], scales: { y: { range: fromZero } } },
        cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
        series: [
          {},
          ...lines.map(({ colour }) => ({ stroke: () => colourOf(colour), width: 1.75, points: LONELY })),
        ],
        axes: [
          axis({ values: timesOf, space: 70, size: 30 }),
          axis({ values: (_, ticks) => ticks.map(format), size: 66, ...(steps && { incrs: [...steps] }) }),
        ],
        hooks: {
          setCursor: [
            ({ cursor: { idx, left }, bbox }) => {
              if (idx == null || left === undefined || left < 0) return onPoint(undefined);
              const inset = bbox.left / devicePixelRatio;
              onPoint({
                index: idx,
                left: left + inset,
                isRightHalf: left > bbox.width / devicePixelRatio / 2,
              });
            },
          ],
        },
      },
      data,
      element,
    );
    drawn.current = plot;
    const resized = new ResizeObserver(() => plot.setSize(size()));
    resized.observe(element);
    const themed = new MutationObserver(() => plot.redraw(false));
    themed.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    return () => {
      resized.disconnect();
      themed.disconnect();
      plot.destroy();
      drawn.current = undefined;
    };
  }, [names, format]);
  useLayoutEffect(() => drawn.current?.setData(data), [times, lines]);
  return ref;
}

/** A line needs two points: one without neighbours is a dot. */
const LONELY: uPlot.Series.Points = {
  show: true,
  size: 5,
  filter: (plot, index) => {
    const values = plot.data[index] ?? [];
    const isLonely = (value: unknown, at: number) =>
      value != null && values[at - 1] == null && values[at + 1] == null;
    return Array.from(values).flatMap((value, at) => (isLonely(value, at) ? [at] : []));
  },
};

function fromZero(_: uPlot, _min: number, max: number | null): [number, number] {
  return [0, max ? max * 1.1 : 1];
}

function axis(own: uPlot.Axis): uPlot.Axis {
  const line = { stroke: () => colourOf('--border'), width: 1 };
  return {
    stroke: () => colourOf('--text-2'),
    font: fontOf(),
    grid: line,
    ticks: { ...line, size: 4 },
    ...own,
  };
}

/** Labels of ticks in the zone of the reader; days where the time is longer than one. */
function timesOf(plot: uPlot, ticks: number[]): string[] {
  const [first = 0, last = 0] = plot.data[0].length > 0 ? [plot.data[0][0], plot.data[0].at(-1)] : [];
  const isLong = last - first > 2 * DAY;
  return ticks.map((at) => {
    const date = new Date(at * 1_000);
    const isMidnight = date.getHours() === 0 && date.getMinutes() === 0;
    return (isLong || isMidnight ? DATE : CLOCK)().format(date);
  });
}

function colourOf(property: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(property);
}

function fontOf(): string {
  return `11.5px ${colourOf('--font')}`;
}
