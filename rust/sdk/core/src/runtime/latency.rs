//! How long recent calls took: what decides whether requests are served one after the other or in parallel.

use std::cell::Cell;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Above this, waking a thread (some microseconds) costs less than it saves the requests that wait.
const SLOW: Duration = Duration::from_micros(100);
/// So many of the last eight calls have to be slow before the next is expected to be. One or two may have been quick
/// ones that the system preempted.
const SLOW_CALLS: u32 = 3;

thread_local! {
    /// How long the call that this thread runs has waited so far.
    static WAITED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Runs `f`, which waits for something outside the process.
pub fn waiting<T>(f: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = f();
    WAITED.set(WAITED.get() + start.elapsed());
    result
}

/// Which of the last eight calls were slow, a bit each.
#[derive(Default)]
pub struct Latency(AtomicU8);

impl Latency {
    /// Whether the next call is expected to take long.
    pub fn is_slow(&self) -> bool {
        self.0.load(Relaxed).count_ones() >= SLOW_CALLS
    }

    /// Runs `f` and records whether it took long. Time in [`waiting`] does not count: another thread can take over
    /// then.
    pub fn measure<T>(&self, f: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        WAITED.set(Duration::ZERO);
        let result = f();
        let is_slow = start.elapsed().saturating_sub(WAITED.get()) > SLOW;
        // Two threads may overwrite each other: a lost record does no harm.
        self.0.store(self.0.load(Relaxed) << 1 | u8::from(is_slow), Relaxed);
        result
    }
}
