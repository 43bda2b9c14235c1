/** The one form that equal objects have. */
import type { ScheduleObject } from './objects.js';

/** An empty object says nothing. */
export function someOrNull<T extends object>(value: T | null | undefined): T | null {
  return value && Object.keys(value).length > 0 ? value : null;
}

/**
 * Schedules of an endpoint have no names: their order is no part of what they are. Bodies, which may be large, are only
 * compared where all else is equal.
 */
export function sortedSchedules(schedules: readonly ScheduleObject[]): ScheduleObject[] {
  return schedules
    .map((schedule) => ({ schedule, text: textOf(schedule) }))
    .sort((left, right) => order(left.text, right.text) || orderOfBodies(left.schedule, right.schedule))
    .map(({ schedule }) => schedule);
}

function textOf({ cron, timezone, enabled, method, path, headers }: ScheduleObject): string {
  return JSON.stringify([cron, timezone, enabled, method, path, Object.entries(headers).sort()]);
}

function order(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}

/** One without a body is the last. */
function orderOfBodies({ body: left }: ScheduleObject, { body: right }: ScheduleObject): number {
  if (left === null || right === null) return Number(left === null) - Number(right === null);
  return order(left, right);
}
