//! How long handlers take, roughly: the one fact that decides between serving in line and serving side by side.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Above this, waking a thread (some microseconds) costs little beside what it saves the requests behind.
const SLOW: u64 = 100_000;
/// One call counts no more than this, so that a single slow one is forgotten after a few dozen quick ones.
const MOST: Duration = Duration::from_millis(10);

/// A moving average of the duration of calls, in nanoseconds.
#[derive(Default)]
pub struct Pace(AtomicU64);

impl Pace {
    /// Whether calls are known to take long.
    pub fn is_slow(&self) -> bool {
        self.0.load(Relaxed) > SLOW
    }

    /// Runs `f` and counts its duration.
    pub fn measure<T>(&self, f: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = f();
        let nanos = start.elapsed().min(MOST).as_nanos() as u64;
        // Two threads may overwrite each other here: a lost sample of an average does no harm.
        let average = self.0.load(Relaxed);
        self.0.store(average - average / 8 + nanos / 8, Relaxed);
        result
    }
}
