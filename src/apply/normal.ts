/** The one form that equal objects have. */
import type { ScheduleObject } from './objects.js';

/** An empty object says nothing. */
export function someOrNull<T extends object>(value: T | null | undefined): T | null {
  return value && Object.keys(value).length > 0 ? value : null;
}

/** Schedules of an endpoint have no names: their order is no part of what they are. */
export function sortedSchedules(schedules: readonly ScheduleObject[]): ScheduleObject[] {
  return schedules
    .map((schedule) => ({ schedule, text: textOf(schedule) }))
    .sort((left, right) => (left.text < right.text ? -1 : left.text > right.text ? 1 : 0))
    .map(({ schedule }) => schedule);
}

function textOf({ cron, timezone, enabled, method, path, headers, body }: ScheduleObject): string {
  return JSON.stringify([cron, timezone, enabled, method, path, Object.entries(headers).sort(), body]);
}
