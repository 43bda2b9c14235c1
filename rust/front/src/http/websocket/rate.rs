//! How many messages a client sends in a second; its pings and pongs count as well.
use std::time::{Duration, Instant};

const WINDOW: Duration = Duration::from_secs(1);

pub struct Rate {
    limit: Option<u32>,
    window: Instant,
    messages: u32,
}

impl Rate {
    /// No limit without one.
    pub fn new(limit: Option<u32>) -> Self {
        Self { limit, window: Instant::now(), messages: 0 }
    }

    /// Counts a message. Returns false when it is one too many.
    pub fn admits(&mut self, now: Instant) -> bool {
        let Some(limit) = self.limit else { return true };
        if now.duration_since(self.window) >= WINDOW {
            (self.window, self.messages) = (now, 0);
        }
        self.messages += 1;
        self.messages <= limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_has_its_messages() {
        let mut rate = Rate::new(Some(2));
        let now = rate.window;
        assert_eq!([rate.admits(now), rate.admits(now), rate.admits(now)], [true, true, false]);
        assert!(rate.admits(now + WINDOW));
        let mut unlimited = Rate::new(None);
        assert!((0..10_000).all(|_| unlimited.admits(now)));
    }
}
