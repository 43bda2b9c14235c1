//! A limit on the bytes that the process holds for its clients at a time, whichever thread does.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Blocks of this size are given back to the system when they are freed: what is free within the heap counts against
/// the limit of the process like what is used.
const GIVEN_BACK_BYTES: libc::c_int = 256 * 1024;

/// Has large blocks given back to the system as soon as they are free. It is called first.
pub fn give_back_large_blocks() {
    // SAFETY: takes numbers only; without effect where it fails.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, GIVEN_BACK_BYTES) };
}

/// Gives back what is free between small blocks. Takes some ms for each 100 MiB.
pub fn give_back_small_blocks() {
    // SAFETY: takes a number only.
    unsafe { libc::malloc_trim(0) };
}

pub struct MemoryBudget {
    limit: usize,
    used: AtomicUsize,
}

impl MemoryBudget {
    pub fn new(limit: usize) -> Self {
        Self { limit, used: AtomicUsize::new(0) }
    }

    /// Takes nothing, and returns false, when the limit would be exceeded.
    pub fn take(&self, bytes: usize) -> bool {
        self.change(|used| used.checked_add(bytes).filter(|&used| used <= self.limit))
    }

    pub fn release(&self, bytes: usize) {
        self.change(|used| Some(used.saturating_sub(bytes)));
    }

    /// Whether so much could be taken now.
    pub fn has(&self, bytes: usize) -> bool {
        self.used.load(Ordering::Relaxed).saturating_add(bytes) <= self.limit
    }

    pub fn limit(&self) -> usize {
        self.limit
    }

    fn change(&self, next: impl Fn(usize) -> Option<usize>) -> bool {
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }
}

/// What one owner holds, which is given back when it is dropped. A little is not counted: nearly all owners hold no
/// more.
pub struct Share {
    budget: Arc<MemoryBudget>,
    taken: usize,
}

impl Share {
    /// Bytes that are not counted.
    pub const FREE: usize = 64 * 1024;

    pub fn new(budget: Arc<MemoryBudget>) -> Self {
        Self { budget, taken: 0 }
    }

    /// Changes what is held. Takes nothing more, and returns false, when the limit would be exceeded.
    pub fn set(&mut self, bytes: usize) -> bool {
        let counted = if bytes > Self::FREE { bytes } else { 0 };
        if counted > self.taken && !self.budget.take(counted - self.taken) {
            return false;
        }
        self.budget.release(self.taken.saturating_sub(counted));
        self.taken = counted;
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.release(self.taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_given_back() {
        let budget = Arc::new(MemoryBudget::new(1_000_000));
        let mut share = Share::new(budget.clone());
        assert!(share.set(Share::FREE) && budget.take(1_000_000));
        assert!(!share.set(100_000));
        budget.release(1_000_000);
        assert!(share.set(900_000) && !budget.take(200_000));
        assert!(share.set(100_000) && budget.take(900_000));
        drop(share);
        assert!(budget.take(100_000) && !budget.take(1));
    }
}
