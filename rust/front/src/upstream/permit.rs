//! Limits of how many there are at a time.
use std::sync::atomic::{AtomicU32, Ordering};

/// One of a number that has a limit.
pub struct Permit<'a> {
    number: &'a AtomicU32,
    /// What it was when this one was added, with this one.
    pub count: u32,
}

impl<'a> Permit<'a> {
    /// `None` when there are so many already.
    pub fn acquire(number: &'a AtomicU32, limit: u32) -> Option<Self> {
        let before = number.fetch_add(1, Ordering::Relaxed);
        if before < limit {
            return Some(Self { number, count: before + 1 });
        }
        number.fetch_sub(1, Ordering::Relaxed);
        None
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.number.fetch_sub(1, Ordering::Relaxed);
    }
}
