/** A small line of values over time, beside a figure that says the last one. */

interface SparklineProps {
  /** What it shows, for those who do not see it. */
  readonly label: string;
  /** Null: nothing is known. */
  readonly values: readonly (number | null)[];
}

const WIDTH = 300;
const HEIGHT = 48;

export function Sparkline({ label, values }: SparklineProps) {
  const most = Math.max(...values.map((value) => value ?? 0)) || 1;
  const x = (index: number) => (index / Math.max(1, values.length - 1)) * WIDTH;
  const y = (value: number) => HEIGHT - 2 - (value / most) * (HEIGHT - 6);
  let isBroken = true;
  const line = values
    .map((value, index) => {
      if (value === null) {
        isBroken = true;
        return '';
      }
      const command = isBroken ? 'M' : 'L';
      isBroken = false;
      return `${command}${x(index).toFixed(1)} ${y(value).toFixed(1)}`;
    })
    .join('');
  return (
    <svg
      class="sparkline"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <path d={line} />
    </svg>
  );
}
