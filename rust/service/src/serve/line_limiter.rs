//! Limits the log lines that handlers can cause, and counts dropped lines: untrusted code must not fill the disk.
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep};

use crate::log::{Level, Log};

/// Warnings about handlers that are logged per second, at most.
const PER_SECOND: usize = 20;
const SECOND: Duration = Duration::from_secs(1);

pub struct LineLimiter {
    log: Log,
    since: Cell<Instant>,
    taken: Cell<usize>,
    dropped: Cell<usize>,
}

impl LineLimiter {
    pub fn new(log: Log) -> Rc<Self> {
        Rc::new(Self { log, since: Cell::new(Instant::now()), taken: Cell::new(0), dropped: Cell::new(0) })
    }

    /// Logs a warning, unless there were many within this second.
    pub fn warn(self: &Rc<Self>, details: Value, message: &str) {
        if self.since.get().elapsed() >= SECOND {
            self.report_dropped();
            self.since.set(Instant::now());
            self.taken.set(0);
        }
        if self.taken.get() < PER_SECOND {
            self.taken.set(self.taken.get() + 1);
            return self.log.line(Level::Warn, details, message);
        }
        self.dropped.set(self.dropped.get() + 1);
        if self.dropped.get() == 1 {
            // This reports them if no further line does.
            let limiter = self.clone();
            spawn_local(async move {
                sleep(SECOND).await;
                limiter.report_dropped();
            });
        }
    }

    /// Reports dropped lines that have not been reported yet.
    pub fn report_dropped(&self) {
        let dropped = self.dropped.take();
        if dropped > 0 {
            self.log.line(Level::Warn, json!({ "dropped": dropped }), "handlers do more that is wrong than is logged");
        }
    }
}
