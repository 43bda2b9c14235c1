/** Cron expressions of schedules, as the queue reads them. */
import { getNextMillis } from 'bullmq';
import { toError } from '../errors.js';

const NAMES = /^@(?:yearly|annually|monthly|weekly|daily|hourly)$/;
/** `H`, a time that is chosen at random, would be another one with each look. */
const FIELDS = /^[^\sHh]+(?: [^\sHh]+){4,5}$/;
const EXAMPLES =
  'five fields such as "0 9 * * 1-5" (six with seconds), or @hourly, @daily, @weekly, @monthly or @yearly';

/** Why a text is no cron expression that ever matches; undefined when it is one. */
export function cronProblem(cron: string): string | undefined {
  const hasNames = cron.replaceAll(/\b(?:THU|MARCH)\b/gi, '*');
  if (!NAMES.test(cron) && !FIELDS.test(hasNames)) return `must have ${EXAMPLES}`;
  try {
    return nextRun(cron, 'UTC', new Date()) ? undefined : 'never comes';
  } catch (thrown) {
    return `is no cron expression (${toError(thrown).message}); it has ${EXAMPLES}`;
  }
}

/** Why a text is no time zone; undefined when it is one. */
export function timezoneProblem(timezone: string): string | undefined {
  try {
    new Intl.DateTimeFormat('en', { timeZone: timezone });
    return undefined;
  } catch {
    return 'is no time zone of the IANA database, such as UTC or Europe/Berlin';
  }
}

/** A time zone in the spelling of the database, where it is known in another case. */
export function spelledTimezone(timezone: string): string {
  const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: timezone }).resolvedOptions();
  return timeZone.toLowerCase() === timezone.toLowerCase() ? timeZone : timezone;
}

/** When the first run after a moment begins; undefined when there is none. */
export function nextRun(cron: string, timezone: string, after: Date): Date | undefined {
  const millis = getNextMillis(after.getTime(), { pattern: cron, tz: timezone });
  return millis === undefined ? undefined : new Date(millis);
}
