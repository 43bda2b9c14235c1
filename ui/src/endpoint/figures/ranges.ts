/** How far back figures are shown, seconds; the names stand in the address. */
export const RANGES = { '1h': 3_600, '6h': 21_600, '1d': 86_400, '7d': 604_800, '30d': 2_592_000 } as const;

export type Range = keyof typeof RANGES;

export const RANGE_NAMES: Readonly<Record<Range, string>> = {
  '1h': '1 h',
  '6h': '6 h',
  '1d': '1 d',
  '7d': '7 d',
  '30d': '30 d',
};

/** The last hour unless the address names another range. */
export function rangeOf(address: URLSearchParams): Range {
  const name = address.get('range') ?? '';
  return name in RANGES ? (name as Range) : '1h';
}

/** Seconds of a step such as `10m`. */
export function secondsOf(step: string): number {
  const units: Readonly<Record<string, number>> = { m: 60, h: 3_600, d: 86_400 };
  return Number(step.slice(0, -1)) * (units[step.slice(-1)] ?? 60);
}
