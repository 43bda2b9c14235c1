/** The results of a benchmark: rows of a table, each with a ratio measured in one run and its target. */

/** One result. */
export interface Row {
  readonly question: string;
  /** The measured values in words and numbers. */
  readonly measured: string;
  /** The value that is compared with the target. */
  readonly value: number;
  /** e.g. `x`, `ms`, `MB`. */
  readonly unit: string;
  readonly bar: { readonly atMost: number } | { readonly atLeast: number };
}

export function isMet({ value, bar }: Row): boolean {
  return 'atMost' in bar ? value <= bar.atMost : value >= bar.atLeast;
}

/** The rows as a Markdown table. */
export function table(rows: readonly Row[]): string {
  return ['| question | measured | result | bar | |', '|---|---|---|---|---|', ...rows.map(line)].join('\n');
}

/** A row of that table. */
export function line(row: Row): string {
  const bar = 'atMost' in row.bar ? `<= ${row.bar.atMost}` : `>= ${row.bar.atLeast}`;
  const value = `${round(row.value)} ${row.unit}`;
  return `| ${row.question} | ${row.measured} | ${value} | ${bar} ${row.unit} | ${isMet(row) ? 'met' : '**missed**'} |`;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** Three significant digits. */
export function round(value: number): string {
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

/** The duration of a function, milliseconds. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}
