//! How long handlers take, roughly: the one fact that decides between serving in line and serving side by side.

use std::cell::Cell;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Above this, waking a thread (some microseconds) costs little beside what it saves the requests behind.
const SLOW: Duration = Duration::from_micros(100);
/// So many of the last eight calls have to be slow before the next is expected to be. One or two may have been quick ones
/// that lost the processor for a moment.
const MANY: u32 = 3;

thread_local! {
    /// What the call that this thread runs has waited so far.
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
pub struct Pace(AtomicU8);

impl Pace {
    /// Whether calls are known to take long.
    pub fn is_slow(&self) -> bool {
        self.0.load(Relaxed).count_ones() >= MANY
    }

    /// Runs `f` and notes whether it took long. What was spent in [`waiting`] does not count: whoever waits lets others
    /// take over.
    pub fn measure<T>(&self, f: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        WAITED.set(Duration::ZERO);
        let result = f();
        let is_slow = start.elapsed().saturating_sub(WAITED.get()) > SLOW;
        // Two threads may overwrite each other here: a lost call does no harm.
        self.0.store(self.0.load(Relaxed) << 1 | u8::from(is_slow), Relaxed);
        result
    }
}
