import { expect } from 'chai';
import fc from 'fast-check';
import { percentile } from '../../src/model/durations.js';

/** As `rust/front/src/durations.rs` has it. */
function bucketOf(ns: number): number {
  const units = Math.floor(ns / 64);
  if (units < 16) return units;
  const octave = Math.floor(Math.log2(units)) - 4;
  return octave * 16 + Math.floor(units / 2 ** octave);
}

function countsOf(durations: readonly number[]) {
  const counts = new Map<number, number>();
  for (const ns of durations) counts.set(bucketOf(ns), (counts.get(bucketOf(ns)) ?? 0) + 1);
  const sorted = [...counts].sort(([left], [right]) => left - right);
  return { buckets: sorted.map(([bucket]) => bucket), counts: sorted.map(([, count]) => count) };
}

describe('percentiles of durations', () => {
  it('computes percentiles of durations that are exact to 3.2 %', () => {
    const duration = fc.integer({ min: 1_100, max: 60_000_000_000 });
    const property = (durations: number[], percent: number) => {
      const sorted = durations.toSorted((left, right) => left - right);
      const exact = sorted[Math.max(1, Math.ceil((percent / 100) * sorted.length)) - 1] ?? 0;
      expect((percentile(countsOf(durations), percent) ?? 0) * 1e6).to.be.closeTo(exact, 0.032 * exact);
    };
    fc.assert(
      fc.property(fc.array(duration, { minLength: 1 }), fc.constantFrom(0, 50, 95, 99, 100), property),
    );
  });

  it('computes percentiles from the buckets that the front counts in', () => {
    // As in the test of `rust/front/src/durations.rs`.
    expect([1_000_000, 250_000_000, 30_000_000_000].map(bucketOf)).to.deep.equal([174, 301, 411]);
    expect(percentile({ buckets: [174], counts: [1] }, 50)).to.be.closeTo(1, 0.032);
    expect(percentile({ buckets: [411], counts: [1] }, 50)).to.be.closeTo(30_000, 960);
  });

  it('returns null as a percentile when nothing was counted', () => {
    expect(percentile({ buckets: [], counts: [] }, 99)).to.equal(null);
  });
});
