//! How many entries an endpoint may have in the log.
use std::sync::atomic::{AtomicU64, Ordering};

/// The entries of an endpoint in the current second, over all threads.
#[derive(Default)]
pub struct EntryLimit {
    ordinary: EntriesOfSecond,
    /// Entries of requests that a policy reports: others do not take their place.
    reported: EntriesOfSecond,
    left_out: AtomicU64,
    /// Requests among those left out that have failed.
    failed: AtomicU64,
}

/// The second, and how many entries it has.
#[derive(Default)]
struct EntriesOfSecond(AtomicU64);

impl EntriesOfSecond {
    /// Whether there may be another one.
    fn take(&self, second: u32, limit: u32) -> bool {
        let next = |taken: u64| match taken >> 32 == u64::from(second) {
            true if taken as u32 >= limit => None,
            true => Some(taken + 1),
            false if limit == 0 => None,
            false => Some(u64::from(second) << 32 | 1),
        };
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }
}

impl EntryLimit {
    /// Whether a request that has not failed may have an entry.
    pub fn take(&self, is_reported: bool, second: u32, limit: u32) -> bool {
        let taken = if is_reported { &self.reported } else { &self.ordinary };
        taken.take(second, limit)
    }

    /// Counts a request that has no entry; true for the first of those.
    pub fn leave_out(&self, has_failed: bool) -> bool {
        self.failed.fetch_add(u64::from(has_failed), Ordering::Relaxed);
        self.left_out.fetch_add(1, Ordering::Relaxed) == 0
    }

    /// Requests that were left out since the last call, and how many of them have failed.
    pub fn take_left_out(&self) -> (u64, u64) {
        (self.left_out.swap(0, Ordering::Relaxed), self.failed.swap(0, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_so_many_entries() {
        let limit = EntryLimit::default();
        for is_reported in [false, true] {
            assert_eq!([(); 4].map(|()| limit.take(is_reported, 7, 2)), [true, true, false, false]);
            assert!(limit.take(is_reported, 8, 2));
            assert!(!limit.take(is_reported, 9, 0));
        }
    }

    #[test]
    fn entries_that_are_left_out_are_counted() {
        let limit = EntryLimit::default();
        assert_eq!([false, true, false].map(|has_failed| limit.leave_out(has_failed)), [true, false, false]);
        assert_eq!((limit.take_left_out(), limit.take_left_out()), ((3, 1), (0, 0)));
        assert!(limit.leave_out(true));
    }
}
