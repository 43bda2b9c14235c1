//! How far a handler may send ahead of the client of its stream. Each wait for credit costs both processes a wakeup, so
//! a quick client has a wide window; that of a slow one is narrow, so that little is held for it.
use std::cell::Cell;
use std::time::{Duration, Instant};

use edge_wire::{INITIAL_CREDIT, MAX_CREDIT};

/// A client is quick that takes half a window within this time.
const QUICK: Duration = Duration::from_millis(100);

pub struct CreditWindow {
    bytes: Cell<usize>,
    /// When the handler has last got credit.
    credited: Cell<Instant>,
}

impl CreditWindow {
    pub fn new() -> Self {
        Self { bytes: Cell::new(INITIAL_CREDIT), credited: Cell::new(Instant::now()) }
    }

    /// Makes the window believe that credit was given then.
    #[cfg(test)]
    pub fn begin(&self, credited: Instant) {
        self.credited.set(credited);
    }

    /// Whether the client has been quick for a while.
    pub fn is_widest(&self) -> bool {
        self.bytes.get() == MAX_CREDIT
    }

    /// When the client has taken so much, the handler gets credit: less would be many small frames.
    pub fn half(&self) -> usize {
        self.bytes.get() / 2
    }

    /// The credit for so many bytes that the client has taken: half a window, at least. It becomes wider for a quick
    /// client if it `may_widen`, and narrower for a slow one, until it is as at first.
    pub fn credit_for(&self, taken: usize, may_widen: bool) -> usize {
        let bytes = self.bytes.get();
        let is_quick = self.credited.replace(Instant::now()).elapsed() < QUICK;
        let next = match (is_quick, may_widen) {
            (false, _) => INITIAL_CREDIT,
            (true, true) => (2 * bytes).min(MAX_CREDIT),
            (true, false) => bytes,
        };
        // What the handler has credit for may not be taken back: it gets none for what the window loses.
        let next = next.max(bytes.saturating_sub(taken));
        self.bytes.set(next);
        taken + next - bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_wide_for_a_quick_client_and_narrow_for_a_slow_one() {
        const HALF: usize = INITIAL_CREDIT / 2;
        let window = CreditWindow::new();
        let credit_after = |time: Duration, taken: usize, may_widen: bool| {
            assert_eq!(taken, window.half());
            window.begin(Instant::now() + Duration::from_secs(60) - time);
            window.credit_for(taken, may_widen)
        };
        let (quick, slow) = (Duration::ZERO, Duration::from_secs(120));
        assert_eq!(credit_after(slow, HALF, true), HALF);
        assert_eq!(credit_after(quick, HALF, false), HALF);
        assert_eq!(credit_after(quick, HALF, true), HALF + INITIAL_CREDIT);
        assert_eq!(credit_after(quick, 2 * HALF, true), 2 * HALF + 2 * INITIAL_CREDIT);
        assert_eq!(credit_after(quick, 4 * HALF, true), 4 * HALF);
        // It becomes narrower until it is as at first.
        assert_eq!([4 * HALF, 2 * HALF, HALF].map(|taken| credit_after(slow, taken, true)), [0, 0, HALF]);
    }
}
