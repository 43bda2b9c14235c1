//! A limit on the bytes of bodies that a front holds at a time, and on the part of them that one endpoint may hold.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Blocks of this size are given back to the system when they are freed, so that a front is small again after large
/// bodies.
const GIVEN_BACK_BYTES: libc::c_int = 256 * 1024;

/// That much free memory is kept: under load, it is needed again at once, and the kernel would clear each page anew.
const KEPT_FREE_BYTES: libc::c_int = 2 * 1024 * 1024;

/// Once a sixteenth of a body or of a frame is here, memory for all of it is reserved: a length that is only claimed
/// reserves nothing.
pub const RESERVE_AFTER: usize = 16;

/// Has large blocks given back to the system as soon as they are free. It is called first.
pub fn give_back_large_blocks() {
    // SAFETY: takes numbers only; without effect where it fails.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, GIVEN_BACK_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_FREE_BYTES);
    }
}

pub struct MemoryBudget {
    limit: usize,
    used: AtomicUsize,
}

impl MemoryBudget {
    pub fn new(limit: usize) -> Self {
        Self { limit, used: AtomicUsize::new(0) }
    }

    /// The limit for one of many, so that it leaves something to the others.
    pub fn half(&self) -> Self {
        Self::new(self.limit / 2)
    }

    /// Takes nothing, and returns false, when the limit would be exceeded.
    fn take(&self, bytes: usize) -> bool {
        let next = |used: usize| used.checked_add(bytes).filter(|&used| used <= self.limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }

    fn release(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// What one owner holds of one or two budgets. It is given back when it is dropped.
pub struct MemoryShare {
    whole: Arc<MemoryBudget>,
    part: Option<Arc<MemoryBudget>>,
    taken: usize,
}

impl MemoryShare {
    pub fn new(whole: Arc<MemoryBudget>, part: Option<Arc<MemoryBudget>>) -> Self {
        Self { whole, part, taken: 0 }
    }

    /// An empty one of the same budgets.
    pub fn another(&self) -> Self {
        Self::new(self.whole.clone(), self.part.clone())
    }

    /// Whether so much is more than all, or than what others leave of the part. Otherwise others may give it back soon.
    pub fn is_beyond_part(&self, bytes: usize) -> bool {
        let exceeds = |part: &Arc<MemoryBudget>| {
            let used_by_others = part.used.load(Ordering::Relaxed).saturating_sub(self.taken);
            used_by_others.saturating_add(bytes) > part.limit
        };
        bytes > self.whole.limit || self.part.as_ref().is_some_and(exceeds)
    }

    /// Whether at most half of it is in use.
    pub fn is_plentiful(&self) -> bool {
        let has = |budget: &Arc<MemoryBudget>| budget.used.load(Ordering::Relaxed) <= budget.limit / 2;
        has(&self.whole) && self.part.as_ref().is_none_or(has)
    }

    /// Whether there is ever so much.
    pub fn may_hold(&self, bytes: usize) -> bool {
        bytes <= self.whole.limit && self.part.as_ref().is_none_or(|part| bytes <= part.limit)
    }

    /// What is held, for another owner. Nothing is held here any more.
    pub fn hand_over(&mut self) -> Self {
        let empty = self.another();
        std::mem::replace(self, empty)
    }

    /// Changes what is held. Takes nothing more, and returns false, when a limit would be exceeded.
    pub fn set(&mut self, bytes: usize) -> bool {
        if bytes > self.taken {
            let more = bytes - self.taken;
            if !self.whole.take(more) {
                return false;
            }
            if self.part.as_ref().is_some_and(|part| !part.take(more)) {
                self.whole.release(more);
                return false;
            }
        } else {
            let less = self.taken - bytes;
            self.whole.release(less);
            if let Some(part) = &self.part {
                part.release(less);
            }
        }
        self.taken = bytes;
        true
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_given_back() {
        let whole = Arc::new(MemoryBudget::new(100));
        let part = Arc::new(whole.half());
        let mut one = MemoryShare::new(whole.clone(), Some(part.clone()));
        let mut other = MemoryShare::new(whole.clone(), None);
        assert!(one.set(50) && !one.set(51));
        assert!(other.set(50) && !other.set(51));
        assert!(one.set(20) && other.set(80) && !one.set(21));
        drop(other);
        assert!(one.set(50));
        drop(one);
        assert!(MemoryShare::new(whole, Some(part)).set(50));
    }

    #[test]
    fn shares_are_handed_over_without_a_gap() {
        let whole = Arc::new(MemoryBudget::new(100));
        let part = Arc::new(whole.half());
        let mut one = MemoryShare::new(whole.clone(), Some(part));
        assert!(one.is_beyond_part(51) && !one.is_beyond_part(50) && one.set(30));
        let mut other = one.hand_over();
        assert!(one.set(20) && !one.set(21) && one.is_beyond_part(21));
        assert!(other.set(10) && one.set(40));
        drop(other);
        assert!(one.set(50));
    }
}
