/**
 * Durations counted in buckets, each a sixteenth as wide as what it counts or narrower: percentiles are exact to 3.2 %,
 * and counts can be added. `rust/front/src/durations.rs` counts them, and names the source of the format.
 */

import { PER_OCTAVE, UNIT_NS } from '../contracts/front.js';

const UNIT_MS = UNIT_NS / 1e6;

/** Numbers of buckets in ascending order, and how many durations each has. */
export interface DurationCounts {
  readonly buckets: readonly number[];
  readonly counts: readonly number[];
}

/**
 * The duration that so many percent are not above, milliseconds.
 * @param percent 0 to 100
 * @returns null when there are no durations
 */
export function percentile({ buckets, counts }: DurationCounts, percent: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  const rank = Math.max(1, Math.ceil((percent / 100) * total));
  let seen = 0;
  for (const [at, bucket] of buckets.entries()) {
    seen += counts[at] ?? 0;
    if (seen >= rank) return middleOf(bucket);
  }
  return null;
}

/** The middle of a bucket, milliseconds. */
function middleOf(bucket: number): number {
  if (bucket < PER_OCTAVE) return (bucket + 0.5) * UNIT_MS;
  const octave = Math.floor(bucket / PER_OCTAVE) - 1;
  const place = bucket - octave * PER_OCTAVE;
  return (place + 0.5) * 2 ** octave * UNIT_MS;
}
