//! A lane is one connection with the gateway. Usually one thread does everything on it: read what has come, run handlers
//! one after the other, write all answers at once. That costs no wake-up at all, however many requests a read brings.
//! Other threads join when handlers take long; see [`super::Runtime::serve`] and [`super::monitor`].

use super::{lock, poll};
use crate::wire::buffer::Buffer;
use crate::wire::head;
use crate::{Request, Response};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Duration;

/// Answers are sent off when this many bytes have gathered, or earlier when there is nothing else to do.
const FLUSH_BYTES: usize = 64 * 1024;
/// A body up to this size is copied behind its head; a larger one is written from where it is.
const COPY_BYTES: usize = 16 * 1024;
/// A buffer grown beyond this is given back.
const KEEP_BYTES: usize = 2 * FLUSH_BYTES;

/// One connection and what its threads share.
pub struct Lane {
    stream: UnixStream,
    /// Whoever holds this reads. Held while waiting for bytes, with `being_read` set.
    received: Mutex<Buffer>,
    /// Answers not yet written. Held while writing.
    answers: Mutex<Vec<u8>>,
    being_read: AtomicBool,
    closed: AtomicBool,
    help_called: AtomicBool,
    started: AtomicU64,
    finished: AtomicU64,
}

impl Lane {
    /// A lane on a connection.
    pub fn new(stream: UnixStream) -> Self {
        Lane {
            stream,
            received: Mutex::new(Buffer::new()),
            answers: Mutex::new(Vec::new()),
            being_read: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            help_called: AtomicBool::new(false),
            started: AtomicU64::new(0),
            finished: AtomicU64::new(0),
        }
    }

    /// Whether a thread waits for bytes: whatever comes next will be taken care of.
    pub fn is_being_read(&self) -> bool {
        self.being_read.load(SeqCst)
    }

    /// Whether more than one call is under way.
    pub fn is_busy(&self) -> bool {
        let (started, finished) = self.calls();
        started - finished > 1
    }

    /// Whether a whole request has been read already and nobody works on it.
    pub fn has_request(&self) -> bool {
        match self.received.try_lock() {
            Ok(received) => received.has_frame(),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().has_frame(),
            // Somebody is taking it, or waits for one.
            Err(TryLockError::WouldBlock) => false,
        }
    }

    /// Waits until either this connection or `other` has something to read, or the time is over. Whether it was this one.
    pub fn has_request_before(&self, other: &UnixStream, limit: Duration) -> bool {
        poll::first_readable(other, &self.stream, limit) == Some(1)
    }

    /// How many calls have been started and finished since the beginning.
    pub fn calls(&self) -> (u64, u64) {
        let finished = self.finished.load(SeqCst);
        (self.started.load(SeqCst), finished)
    }

    /// Whether to call a thread: claims the call, so that only one is under way at a time.
    pub fn help_is_needed(&self) -> bool {
        !self.help_called.swap(true, SeqCst)
    }

    /// Takes the claim back.
    pub fn help_has_come(&self) {
        self.help_called.store(false, SeqCst);
    }

    /// The next request. Waits for one if nobody else does; `None` if somebody does, or the connection is closed.
    ///
    /// Answers are on their way before this thread waits or goes.
    pub fn next(&self) -> Option<(u32, Request)> {
        let mut received = self.lock_received()?;
        loop {
            match self.take(&mut received) {
                Ok(Some(request)) => return Some(request),
                Ok(None) => {}
                Err(why) => {
                    eprintln!("edge-gateway-sdk: a connection is closed: {why}");
                    self.close();
                }
            }
            self.flush();
            if self.closed.load(SeqCst) {
                return None;
            }
            self.being_read.store(true, SeqCst);
            let result = (&self.stream).read(received.room());
            self.being_read.store(false, SeqCst);
            match result {
                Ok(0) => {
                    if received.is_mid_frame() {
                        eprintln!("edge-gateway-sdk: a connection ended inside a frame");
                    }
                    self.close();
                }
                Ok(n) => received.filled(n),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    eprintln!("edge-gateway-sdk: reading a connection failed: {error}");
                    self.close();
                }
            }
        }
    }

    /// Adds the answer to a request, and sends it off if `now` or if enough has gathered.
    pub fn answer(&self, number: u32, response: Response, now: bool) {
        self.finished.fetch_add(1, SeqCst);
        let mut answers = lock(&self.answers);
        let body = head::response(&mut answers, number, response);
        if body.len() <= COPY_BYTES {
            answers.extend_from_slice(&body);
            if now || answers.len() > FLUSH_BYTES {
                self.write_out(&mut answers);
            }
        } else {
            self.write_out(&mut answers);
            self.write(&body);
        }
    }

    /// Sends the gathered answers off.
    pub fn flush(&self) {
        let mut answers = lock(&self.answers);
        if !answers.is_empty() {
            self.write_out(&mut answers);
        }
    }

    /// The right to read; `None` if another thread waits for bytes already.
    fn lock_received(&self) -> Option<MutexGuard<'_, Buffer>> {
        match self.received.try_lock() {
            Ok(received) => Some(received),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if self.is_being_read() => {
                self.flush();
                None
            }
            // Another thread is taking a request, which is a matter of microseconds; but it may find none and wait for
            // bytes instead, having looked at the answers before ours was there.
            Err(TryLockError::WouldBlock) => {
                self.flush();
                Some(lock(&self.received))
            }
        }
    }

    fn take(&self, received: &mut Buffer) -> Result<Option<(u32, Request)>, String> {
        if self.closed.load(SeqCst) {
            return Ok(None);
        }
        let Some(frame) = received.next_frame().map_err(|error| error.to_string())? else {
            return Ok(None);
        };
        let request = head::request(&frame)?;
        self.started.fetch_add(1, SeqCst);
        Ok(Some((frame.number, request)))
    }

    fn write_out(&self, answers: &mut Vec<u8>) {
        self.write(answers);
        if answers.capacity() > KEEP_BYTES {
            *answers = Vec::new();
        } else {
            answers.clear();
        }
    }

    fn write(&self, bytes: &[u8]) {
        // A gateway that went away needs no answer, and its reading side reports the end.
        if (&self.stream).write_all(bytes).is_err() {
            self.close();
        }
    }

    /// Ends the connection for good, also for threads that wait on it.
    fn close(&self) {
        self.closed.store(true, SeqCst);
        // Fails only if the other side has closed already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}
