//! What the threads tell the supervisor.
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use crate::messages::{FromFront, FrontAnswer, Level, RequestEntry};

/// Log lines and entries that wait for the supervisor. More are dropped, and counted.
const MAX_LINES: usize = 10_000;
/// Entries of requests that have failed may wait beyond that: nothing else takes their place.
const MAX_WITH_FAILED: usize = 2 * MAX_LINES;
const WARN_EVERY: Duration = Duration::from_secs(60);

/// Sends messages; each thread has one of these.
#[derive(Clone)]
pub struct Supervisor {
    sender: UnboundedSender<FromFront>,
    shared: Arc<QueueState>,
}

#[derive(Default)]
struct QueueState {
    lines: AtomicUsize,
    dropped: AtomicUsize,
    /// When each warning that may come often was sent last.
    warned: Mutex<HashMap<&'static str, Instant>>,
}

/// The messages, in the thread that writes them.
pub struct Messages {
    receiver: UnboundedReceiver<FromFront>,
    shared: Arc<QueueState>,
}

/// A way to the supervisor, and the messages that take it.
pub fn channel() -> (Supervisor, Messages) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let shared = Arc::<QueueState>::default();
    (Supervisor { sender, shared: shared.clone() }, Messages { receiver, shared })
}

impl Supervisor {
    pub fn send(&self, message: FromFront) {
        // The front exits when nobody receives any more.
        let _ = self.sender.send(message);
    }

    /// Answers a message.
    pub fn done(&self, done: FrontAnswer) {
        self.send(FromFront::Done(Box::new(done)));
    }

    /// Sends a log line; `fields` is an object.
    pub fn log(&self, level: Level, fields: Value, message: &'static str) {
        if !self.send_line(MAX_LINES, || FromFront::Log { level, fields, message }) {
            self.count_dropped();
        }
    }

    /// Counts what there was no room for.
    pub fn count_dropped(&self) {
        self.shared.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Sends an entry of the log; false when it is dropped.
    pub fn log_request(&self, entry: RequestEntry) -> bool {
        let limit = if entry.status >= 500 { MAX_WITH_FAILED } else { MAX_LINES };
        self.send_line(limit, || FromFront::Request(Box::new(entry)))
    }

    fn send_line(&self, limit: usize, line: impl FnOnce() -> FromFront) -> bool {
        let has_room = self.shared.lines.fetch_add(1, Ordering::Relaxed) < limit;
        if has_room {
            self.send(line());
        } else {
            self.shared.lines.fetch_sub(1, Ordering::Relaxed);
        }
        has_room
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

    fn entry(status: u16) -> RequestEntry {
        RequestEntry {
            endpoint_id: String::new(),
            request_id: String::new(),
            trace_id: String::new(),
            span: None,
            method: String::new(),
            route: String::new(),
            path: String::new(),
            status,
            ms: 0.0,
            bytes: 0,
            client_ip: String::new(),
            scheme: "http",
            version: None,
            error: None,
            policy: None,
            reported: None,
            subject: None,
            key_label: None,
            is_kept: true,
        }
    }

    #[test]
    fn requests_that_fail_have_room_where_others_have_none() {
        let (supervisor, mut messages) = channel();
        while supervisor.log_request(entry(200)) {}
        supervisor.log(Level::Warn, json!({}), "no room");
        assert_eq!(messages.take_dropped(), 1);
        let mut failed = 0;
        while supervisor.log_request(entry(500)) {
            failed += 1;
        }
        assert_eq!(failed, MAX_WITH_FAILED - MAX_LINES);
        assert!(messages.try_next().is_some() && supervisor.log_request(entry(500)));
    }

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
