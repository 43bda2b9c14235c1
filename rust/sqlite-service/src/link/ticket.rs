//! Whether the work of one call is wanted, and how far it has come; both threads look at it.
use std::sync::atomic::{AtomicU8, Ordering};

const WAITING: u8 = 0;
const RUNNING: u8 = 1;
const ABORTED: u8 = 2;
const DONE: u8 = 3;

#[derive(Debug, Default)]
pub struct Ticket(AtomicU8);

impl Ticket {
    /// Begins the work; returns false when it was aborted before.
    pub fn begin(&self) -> bool {
        self.0.compare_exchange(WAITING, RUNNING, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    pub fn end(&self) {
        self.0.store(DONE, Ordering::Relaxed);
    }

    /// Ends the work if it is running, and prevents it otherwise. Returns whether it is running.
    pub fn abort(&self) -> bool {
        let abort = |state| (state != DONE).then_some(ABORTED);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, abort) == Ok(RUNNING)
    }

    pub fn is_aborted(&self) -> bool {
        self.0.load(Ordering::Relaxed) == ABORTED
    }

    pub fn is_done(&self) -> bool {
        self.0.load(Ordering::Relaxed) == DONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_aborted_before_it_begins_or_while_it_runs() {
        let ticket = Ticket::default();
        assert!(!ticket.abort() && !ticket.begin());
        let ticket = Ticket::default();
        assert!(ticket.begin() && !ticket.is_aborted());
        assert!(ticket.abort() && ticket.is_aborted());
        ticket.end();
        assert!(!ticket.abort() && ticket.is_done());
    }
}
