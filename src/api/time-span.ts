/** The query parameters `since` and `until`. */
import { Type } from '@sinclair/typebox';
import { AppError } from '../errors.js';

export const TimeSpan = {
  since: Type.String({ format: 'date-time', description: 'ISO 8601: what was from then on' }),
  until: Type.String({ format: 'date-time', description: 'ISO 8601: what was before then' }),
};

/** @throws AppError invalid_input when one is no time, or there is nothing between them */
export function timeSpan(query: { readonly since?: string; readonly until?: string }): {
  readonly since: Date | undefined;
  readonly until: Date | undefined;
} {
  const since = timeOf('since', query.since);
  const until = timeOf('until', query.until);
  if (since && until && since >= until)
    throw new AppError('invalid_input', 'query.since: must be before until');
  return { since, until };
}

function timeOf(name: string, text: string | undefined): Date | undefined {
  if (text === undefined) return undefined;
  const time = new Date(text);
  const [, year, month, day] = /^(\d{4})-(\d{2})-(\d{2})T/.exec(text) ?? [];
  // A day that the month does not have would be one of the next.
  const isDay = Number(day) <= new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  if (!isDay || Number.isNaN(time.getTime()))
    throw new AppError('invalid_input', `query.${name}: must be a time such as 2026-01-31T12:00:00Z`);
  return time;
}
