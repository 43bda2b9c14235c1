//! The supervisor's end of the channel: sends messages, and keeps what the front reports until a test asks for it.
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use serde_json::Value;

use super::PATIENCE;

pub struct Supervisor {
    channel: Mutex<UnixStream>,
    reports: Arc<Reports>,
    last_seq: AtomicU64,
}

/// What the front has sent, in its order, without what was taken out.
#[derive(Default)]
struct Reports {
    all: Mutex<Vec<Value>>,
    has_more: Condvar,
}

impl Supervisor {
    pub fn new(channel: UnixStream) -> Self {
        let lines = BufReader::new(channel.try_clone().unwrap()).lines();
        let reports = Arc::<Reports>::default();
        let keep = reports.clone();
        thread::spawn(move || {
            // They end with the front.
            for line in lines.map_while(Result::ok) {
                keep.all.lock().unwrap().push(serde_json::from_str(&line).unwrap());
                keep.has_more.notify_all();
            }
        });
        Self { channel: Mutex::new(channel), reports, last_seq: AtomicU64::new(0) }
    }

    /// Sends a message that has no answer.
    pub fn send(&self, message: &Value) {
        self.channel.lock().unwrap().write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    /// Sends a message, and waits for the answer to it.
    pub fn request(&self, mut message: Value) -> Value {
        let seq = self.last_seq.fetch_add(1, Ordering::Relaxed) + 1;
        message["seq"] = seq.into();
        self.send(&message);
        self.report(&format!("an answer to {message}"), |report| report["type"] == "done" && report["seq"] == seq)
    }

    /// Takes out the first report of the kind, once it is there. `what` says what is missing when it does not come.
    pub fn report(&self, what: &str, matches: impl Fn(&Value) -> bool) -> Value {
        let all = self.reports.all.lock().unwrap();
        let is_missing = |all: &mut Vec<Value>| !all.iter().any(&matches);
        let (mut all, time) = self.reports.has_more.wait_timeout_while(all, PATIENCE, is_missing).unwrap();
        assert!(!time.timed_out(), "the front has not sent {what}, but {:?}", *all);
        let at = all.iter().position(&matches).unwrap();
        all.remove(at)
    }

    /// Takes out all reports of the kind that are there already.
    pub fn reports(&self, matches: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut all = self.reports.all.lock().unwrap();
        let (matching, others) = all.drain(..).partition(|report| matches(report));
        *all = others;
        matching
    }
}
