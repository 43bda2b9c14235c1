/** Times as people give them. */
import { UsageError } from './errors.js';

const MS: Readonly<Record<string, number>> = { s: 1e3, m: 60e3, h: 3_600e3, d: 86_400e3, w: 604_800e3 };

/** So long ago, or an instant; as ISO 8601. */
export function timeAgo(text: string): string {
  return instant(text, -1);
}

/** So long from now, or an instant; as ISO 8601. */
export function timeIn(text: string): string {
  return instant(text, 1);
}

function instant(text: string, direction: 1 | -1): string {
  const [, count, unit = ''] = /^(\d{1,6})([smhdw])$/.exec(text) ?? [];
  if (count !== undefined)
    return new Date(Date.now() + direction * Number(count) * (MS[unit] ?? 0)).toISOString();
  const time = /^\d{4}-\d\d-\d\d/.test(text) ? new Date(text) : new Date(Number.NaN);
  if (Number.isNaN(time.getTime()))
    throw new UsageError(`${text} is no time`, 'Such as 15m, 2h, 7d, or 2026-01-31T12:00:00Z.');
  return time.toISOString();
}
