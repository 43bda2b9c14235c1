//! What the threads tell the supervisor.
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use crate::messages::{Done, FromFront, Level, RequestEntry};

/// Log lines and entries that wait for the supervisor. More are dropped, and counted.
const MAX_LINES: usize = 10_000;
const WARN_EVERY: Duration = Duration::from_secs(60);

/// Sends messages; each thread has one of these.
#[derive(Clone)]
pub struct Supervisor {
    sender: UnboundedSender<FromFront>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    lines: AtomicUsize,
    dropped: AtomicUsize,
    /// When each warning that may come often was sent last.
    warned: Mutex<HashMap<&'static str, Instant>>,
}

/// The messages, in the thread that writes them.
pub struct Messages {
    receiver: UnboundedReceiver<FromFront>,
    shared: Arc<Shared>,
}

/// A way to the supervisor, and the messages that take it.
pub fn channel() -> (Supervisor, Messages) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let shared = Arc::<Shared>::default();
    (Supervisor { sender, shared: shared.clone() }, Messages { receiver, shared })
}

impl Supervisor {
    pub fn send(&self, message: FromFront) {
        // The front exits when nobody receives any more.
        let _ = self.sender.send(message);
    }

    /// Answers a message.
    pub fn done(&self, done: Done) {
        self.send(FromFront::Done(Box::new(done)));
    }

    /// Sends a log line; `fields` is an object.
    pub fn log(&self, level: Level, fields: Value, message: &'static str) {
        self.send_line(|| FromFront::Log { level, fields, message });
    }

    /// Sends an entry of the log.
    pub fn request(&self, entry: RequestEntry) {
        self.send_line(|| FromFront::Request(Box::new(entry)));
    }

    fn send_line(&self, line: impl FnOnce() -> FromFront) {
        if self.shared.lines.fetch_add(1, Ordering::Relaxed) < MAX_LINES {
            self.send(line());
        } else {
            self.shared.lines.fetch_sub(1, Ordering::Relaxed);
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sends a warning that may come often.
    pub fn warn_rarely(&self, fields: Value, message: &'static str) {
        let now = Instant::now();
        let Ok(mut warned) = self.shared.warned.lock() else { return };
        if warned.get(message).is_none_or(|&last| now - last >= WARN_EVERY) {
            warned.insert(message, now);
            self.log(Level::Warn, fields, message);
        }
    }
}

impl Messages {
    pub async fn next(&mut self) -> Option<FromFront> {
        let message = self.receiver.recv().await?;
        self.received(&message);
        Some(message)
    }

    pub fn try_next(&mut self) -> Option<FromFront> {
        let message = self.receiver.try_recv().ok()?;
        self.received(&message);
        Some(message)
    }

    fn received(&self, message: &FromFront) {
        if matches!(message, FromFront::Log { .. } | FromFront::Request(_)) {
            self.shared.lines.fetch_sub(1, Ordering::Relaxed);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.receiver.is_empty()
    }

    /// Log lines dropped since the last call.
    pub fn take_dropped(&self) -> usize {
        self.shared.dropped.swap(0, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rare_warnings_do_not_hide_others() {
        let (supervisor, mut messages) = channel();
        for message in ["one", "other", "one"] {
            supervisor.warn_rarely(json!({}), message);
        }
        let mut next = || match messages.try_next() {
            Some(FromFront::Log { message, .. }) => Some(message),
            _ => None,
        };
        assert_eq!([next(), next(), next()], [Some("one"), Some("other"), None]);
    }
}
