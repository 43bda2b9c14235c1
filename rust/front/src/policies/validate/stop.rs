//! A check that nobody waits for any more ends.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tells a check whether somebody waits for it. That of `default` never ends.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    pub fn is_asked_for(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Asks the check to end when it is dropped.
pub struct StopOnDrop(StopFlag);

impl StopOnDrop {
    /// The other half is for the check.
    pub fn new() -> (Self, StopFlag) {
        let stop = StopFlag::default();
        (Self(stop.clone()), stop)
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}
