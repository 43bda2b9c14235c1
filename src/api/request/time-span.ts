/** Times of requests: the query parameters `since` and `until`, and when something expires. */
import { Type } from '@sinclair/typebox';
import { AppError } from '../../errors.js';

export const TimeSpan = {
  since: Type.String({
    format: 'date-time',
    description: 'ISO 8601, UTC without an offset: what was from then on',
  }),
  until: Type.String({
    format: 'date-time',
    description: 'ISO 8601, UTC without an offset: what was before then',
  }),
};

/** @throws AppError invalid_input when one is no time, or there is nothing between them */
export function timeSpan(query: { readonly since?: string; readonly until?: string }): {
  readonly since: Date | undefined;
  readonly until: Date | undefined;
} {
  const since = timeOf('query.since', query.since);
  const until = timeOf('query.until', query.until);
  if (since && until && since >= until)
    throw new AppError('invalid_input', 'query.since: must be before until');
  return { since, until };
}

/**
 * When what a request makes expires; null: never.
 * @throws AppError invalid_input when it is no time, or not one to come
 */
export function expiryOf(text: string | null | undefined): Date | null {
  const time = timeOf('body.expires_at', text ?? undefined);
  if (time && time.getTime() <= Date.now())
    throw new AppError(
      'invalid_input',
      'body.expires_at: must be a time to come, such as 2030-01-01T00:00:00Z',
    );
  return time ?? null;
}

function timeOf(place: string, text: string | undefined): Date | undefined {
  if (text === undefined) return undefined;
  // Not in the time zone of this machine, which its clients do not know.
  const time = new Date(/T[^Z+-]*$/i.test(text) ? `${text}Z` : text);
  const [, year, month, day] = /^(\d{4})-(\d{2})-(\d{2})T/.exec(text) ?? [];
  // A day that the month does not have would be one of the next.
  const isDay = Number(day) <= new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  if (!isDay || Number.isNaN(time.getTime()))
    throw new AppError('invalid_input', `${place}: must be a time such as 2026-01-31T12:00:00Z`);
  return time;
}
