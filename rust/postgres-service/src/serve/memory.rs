//! A limit on the bytes that the process holds for its clients at a time.
use std::cell::Cell;

pub struct MemoryBudget {
    limit: usize,
    used: Cell<usize>,
}

impl MemoryBudget {
    pub fn new(limit: usize) -> Self {
        Self { limit, used: Cell::new(0) }
    }

    /// Takes nothing, and returns false, when the limit would be exceeded.
    pub fn take(&self, bytes: usize) -> bool {
        match self.used.get().checked_add(bytes) {
            Some(used) if used <= self.limit => {
                self.used.set(used);
                true
            }
            _ => false,
        }
    }

    pub fn release(&self, bytes: usize) {
        self.used.set(self.used.get().saturating_sub(bytes));
    }
}
