//! Durations of requests, counted in buckets of which each is a sixteenth as wide as what it counts or narrower: a
//! percentile read from them is exact to 3.2 %, and counts of several threads, gateways and minutes can be added. These
//! are the log-linear buckets of HdrHistogram (Gil Tene); `src/model/durations.ts` reads them.
use std::iter::repeat_n;
use std::time::Duration;

/// Durations below 1 µs, which is 16 of these, are counted exactly.
const UNIT_NS: u128 = 64;
/// Buckets for each power of two, and for all durations below the first one.
const PER_OCTAVE: u64 = 16;

/// Has memory for the buckets between the shortest and the longest duration only.
#[derive(Default)]
pub struct Durations {
    first: usize,
    counts: Vec<u32>,
}

impl Durations {
    pub fn add(&mut self, duration: Duration) {
        let bucket = bucket_of(duration);
        if self.counts.is_empty() {
            self.first = bucket;
        }
        if bucket < self.first {
            self.counts.splice(0..0, repeat_n(0, self.first - bucket));
            self.first = bucket;
        }
        let at = bucket - self.first;
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += 1;
    }

    /// Numbers of buckets that are not empty, and what they count.
    pub fn counts(&self) -> impl Iterator<Item = (usize, u32)> {
        (self.first..).zip(self.counts.iter().copied()).filter(|&(_, count)| count > 0)
    }
}

fn bucket_of(duration: Duration) -> usize {
    let units = u64::try_from(duration.as_nanos() / UNIT_NS).unwrap_or(u64::MAX);
    if units < PER_OCTAVE {
        return units as usize;
    }
    let octave = u64::from(units.ilog2() - PER_OCTAVE.ilog2());
    // Its first four bits say where in the octave it is, the one that all have not counted.
    (octave * PER_OCTAVE + (units >> octave)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other() {
        let at = |ns| bucket_of(Duration::from_nanos(ns));
        assert_eq!([0, 63, 64, 15 * 64, 16 * 64, 31 * 64, 32 * 64, 34 * 64].map(at), [0, 0, 1, 15, 16, 31, 32, 33]);
        // The test of `src/model/durations.ts` has the same values.
        assert_eq!([1_000_000, 250_000_000, 30_000_000_000].map(at), [174, 301, 411]);
        assert_eq!(bucket_of(Duration::MAX), 975);
        for ns in (1..100_000).step_by(7) {
            assert!(at(ns) <= at(ns + 7) && at(ns + 7) <= at(ns) + 7);
        }
    }

    #[test]
    fn each_duration_is_counted_in_its_bucket() {
        let mut durations = Durations::default();
        for micros in [30, 2, 900, 30] {
            durations.add(Duration::from_micros(micros));
        }
        let bucket = |micros| bucket_of(Duration::from_micros(micros));
        let expected = [(bucket(2), 1), (bucket(30), 2), (bucket(900), 1)];
        assert_eq!(durations.counts().collect::<Vec<_>>(), expected);
    }
}
