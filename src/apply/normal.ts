/** The one form that equal objects have. */
import { Pauses } from '../util/pauses.js';
import type { ScheduleObject } from './objects.js';

/** An empty object says nothing. */
export function someOrNull<T extends object>(value: T | null | undefined): T | null {
  return value && Object.keys(value).length > 0 ? value : null;
}

/**
 * Schedules of an endpoint have no names: their order is no part of what they are. Bodies, which may be large, are only
 * compared where all else is equal, with pauses.
 */
export async function sortedSchedules(schedules: readonly ScheduleObject[]): Promise<ScheduleObject[]> {
  const pauses = new Pauses();
  const sorted: { readonly schedule: ScheduleObject; readonly text: string }[] = [];
  for (const schedule of schedules) {
    const text = textOf(schedule);
    let [low, high] = [0, sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = sorted[middle];
      const isBefore =
        other && (order(text, other.text) || orderOfBodies(schedule.body, other.schedule.body)) < 0;
      [low, high] = isBefore ? [low, middle] : [middle + 1, high];
      await pauses.here();
    }
    sorted.splice(low, 0, { schedule, text });
  }
  return sorted.map(({ schedule }) => schedule);
}

function textOf({ cron, timezone, enabled, method, path, headers }: ScheduleObject): string {
  return JSON.stringify([cron, timezone, enabled, method, path, Object.entries(headers).sort()]);
}

function order(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

/** One without a body is the last. */
function orderOfBodies(left: string | null, right: string | null): number {
  if (left === null || right === null) return Number(left === null) - Number(right === null);
  return order(left, right);
}
