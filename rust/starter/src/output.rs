//! Reports to the actor host, of all threads.
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};

use crate::messages::Report;

pub struct Output(Mutex<UnixStream>);

impl Output {
    pub fn new(stream: UnixStream) -> Self {
        Self(Mutex::new(stream))
    }

    /// An actor host that has ended is told nothing: the main thread sees its end.
    pub fn send(&self, report: &Report) {
        let Ok(mut line) = serde_json::to_vec(report) else { return };
        line.push(b'\n');
        let _ = self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line);
    }
}
