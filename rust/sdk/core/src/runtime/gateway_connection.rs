//! One connection with the gateway. Usually one thread does everything on it: it reads what has been received, runs
//! handlers one after the other, and writes all answers at once. No thread is woken, however many requests a read
//! brings. Other threads join when handlers take long; see [`super::workers`].

use super::bodies::{is_opening, BodyId};
use super::outgoing::Outgoing;
use super::poll;
use super::streams::{StreamId, Streams};
use super::threads::lock;
use crate::request::Request;
use crate::response::Response;
use crate::wire::buffer::Buffer;
use crate::wire::frame::{credit, Kind};
use crate::wire::head;
use crate::wire::takes::Takes;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Duration;

/// One connection and what its threads share.
pub struct GatewayConnection {
    stream: UnixStream,
    /// The thread that holds this reads. Held while waiting for bytes, with `has_reader` set.
    received: Mutex<Buffer>,
    outgoing: Outgoing,
    has_reader: AtomicBool,
    /// Whether a thread waits until it may read: one at most, or all could, and none would be left for a request.
    has_next_reader: AtomicBool,
    closed: AtomicBool,
    /// Whether a further thread has been requested and has not started yet.
    thread_requested: AtomicBool,
    started: AtomicU64,
    finished: AtomicU64,
    pub streams: Streams,
    /// Requests that were read by a thread which waited for something else, and whether there have ever been any.
    set_aside: Mutex<VecDeque<IncomingRequest>>,
    has_set_aside: AtomicBool,
    takes: Takes,
}

/// A request that has been read.
pub struct IncomingRequest {
    pub number: u32,
    pub request: Request,
    /// The body that follows, unless the request has come whole.
    pub body: Option<BodyId>,
}

/// What the next frame is.
#[allow(clippy::large_enum_variant)] // A box would cost each request an allocation.
enum NextFrame {
    Request(IncomingRequest),
    /// It was about a stream, and was dealt with.
    Control,
    /// It has not arrived yet.
    Nothing,
}

impl GatewayConnection {
    /// Wraps an accepted stream, to a handler that takes this.
    pub fn new(stream: UnixStream, takes: Takes) -> Self {
        GatewayConnection {
            stream,
            received: Mutex::new(Buffer::new()),
            outgoing: Outgoing::default(),
            has_reader: AtomicBool::new(false),
            has_next_reader: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            thread_requested: AtomicBool::new(false),
            started: AtomicU64::new(0),
            finished: AtomicU64::new(0),
            streams: Streams::default(),
            set_aside: Mutex::default(),
            has_set_aside: AtomicBool::new(false),
            takes,
        }
    }

    /// Whether a thread waits for bytes, and so for the next request.
    pub fn has_reader(&self) -> bool {
        self.has_reader.load(SeqCst)
    }

    /// Whether more than one call is under way.
    pub fn is_busy(&self) -> bool {
        let (started, finished) = self.calls();
        started - finished > 1
    }

    /// Whether a whole request has been read that no thread works on.
    pub fn has_request(&self) -> bool {
        // If another thread has the right to read, it is taking the request, or waits for one.
        let Some(received) = self.try_received() else { return false };
        let has_request = received.has_frame();
        drop(received);
        self.streams.reader_has_left();
        has_request
    }

    /// Whether a thread has the right to read, or is about to. It calls [`Streams::reader_has_left`] when it gives that
    /// back.
    pub fn is_read(&self) -> bool {
        self.has_next_reader.load(SeqCst) || self.try_received().is_none()
    }

    /// Waits at most `limit` until this connection or `other` can be read. Whether this one can.
    pub fn has_request_before(&self, other: &UnixStream, limit: Duration) -> bool {
        poll::first_readable(other, &self.stream, limit) == Some(1)
    }

    /// How many calls have been started and finished since the beginning.
    pub fn calls(&self) -> (u64, u64) {
        let finished = self.finished.load(SeqCst);
        (self.started.load(SeqCst), finished)
    }

    /// Claims the request for a further thread. `false` if one has been requested already.
    pub fn claim_thread_request(&self) -> bool {
        !self.thread_requested.swap(true, SeqCst)
    }

    /// The thread has started, or none can be had.
    pub fn clear_thread_request(&self) {
        self.thread_requested.store(false, SeqCst);
    }

    /// The next request. Waits for one if no other thread does; `None` if one does, or the connection is closed.
    ///
    /// Buffered answers are written before this waits or returns `None`.
    pub fn next(&self) -> Option<IncomingRequest> {
        let next = self.read_request();
        self.streams.reader_has_left();
        next
    }

    fn read_request(&self) -> Option<IncomingRequest> {
        if let Some(request) = self.take_set_aside() {
            return Some(request);
        }
        let mut received = match self.try_received() {
            Some(received) => received,
            None => {
                self.flush();
                if self.has_reader() || self.has_next_reader.swap(true, SeqCst) {
                    return None;
                }
                // Another thread is taking a request, which is a matter of microseconds; but it may find none and wait
                // for bytes instead, having flushed before our answer was buffered. Or it has set a request aside since
                // this thread looked, and reads again: it does not where it sees that there is a next reader.
                let set_aside = self.take_set_aside();
                let received = set_aside.is_none().then(|| lock(&self.received));
                self.has_next_reader.store(false, SeqCst);
                match received {
                    Some(received) => received,
                    None => return set_aside,
                }
            }
        };
        loop {
            // While this thread waited for the right to read, another one may have read for it.
            if let Some(request) = self.take_set_aside() {
                return Some(request);
            }
            match self.next_frame(&mut received) {
                NextFrame::Request(request) => return Some(request),
                NextFrame::Control => continue,
                NextFrame::Nothing => {}
            }
            self.flush();
            if self.closed.load(SeqCst) {
                return None;
            }
            self.read(&mut received);
        }
    }

    /// Reads for a thread that waits for something else than a request, if no other thread reads: at most once, and
    /// until there is something new, which it waits for if it `waits`. Requests that come are set aside; whether there
    /// are any. `None` if another thread reads.
    pub fn read_aside(&self, waits: impl FnOnce() -> bool) -> Option<bool> {
        let mut received = self.try_received()?;
        let waits = waits();
        let mut has_read = false;
        loop {
            match self.next_frame(&mut received) {
                NextFrame::Request(request) => {
                    lock(&self.set_aside).push_back(request);
                    self.has_set_aside.store(true, SeqCst);
                    has_read = true;
                }
                NextFrame::Control => has_read = true,
                NextFrame::Nothing if has_read || self.closed.load(SeqCst) => return Some(self.has_set_aside()),
                // The next reader may have looked before a request was set aside: it reads now, and finds that.
                NextFrame::Nothing if self.has_next_reader.load(SeqCst) => return Some(self.has_set_aside()),
                NextFrame::Nothing if !waits && !poll::is_readable(&self.stream) => return Some(self.has_set_aside()),
                NextFrame::Nothing => {
                    self.flush();
                    self.read(&mut received);
                    has_read = true;
                }
            }
        }
    }

    /// Whether there are requests that were read and no thread works on.
    pub fn has_set_aside(&self) -> bool {
        self.has_set_aside.load(SeqCst) && !lock(&self.set_aside).is_empty()
    }

    /// Takes one, and writes buffered answers before it is worked on: the thread that reads does not.
    fn take_set_aside(&self) -> Option<IncomingRequest> {
        if !self.has_set_aside.load(SeqCst) {
            return None;
        }
        let request = lock(&self.set_aside).pop_front()?;
        self.flush();
        Some(request)
    }

    /// Waits for bytes.
    fn read(&self, received: &mut Buffer) {
        self.has_reader.store(true, SeqCst);
        // Memory may come with them: another thread begins a stream while this one waits.
        let result = self.streams.receive(&self.stream, received.room());
        self.has_reader.store(false, SeqCst);
        match result {
            Ok(0) => {
                if received.is_mid_frame() {
                    eprintln!("edge-gateway-sdk: a connection ended inside a frame");
                }
                self.close();
            }
            Ok(n) => received.filled(n),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                eprintln!("edge-gateway-sdk: reading a connection failed: {error}");
                self.close();
            }
        }
    }

    /// Begins to answer with a stream: the gateway has its head when this returns. `None` if it cannot be sent, and a
    /// 500 is the answer.
    pub fn begin_stream(&self, number: u32, head: &Response) -> Option<StreamId> {
        self.begin(number, |answers| head::stream(answers, number, head))
    }

    /// The same for a WebSocket.
    pub fn begin_socket(&self, number: u32, head: &Response) -> Option<StreamId> {
        self.begin(number, |answers| head::socket(answers, number, head))
    }

    fn begin(&self, number: u32, write_head: impl FnOnce(&mut Vec<u8>) -> bool) -> Option<StreamId> {
        let mut stream = None;
        let written = self.outgoing.write(&self.stream, |buffered| {
            // Credit may come as soon as the head is written.
            let id = self.streams.open(number);
            if write_head(buffered) {
                stream = Some(id);
            } else {
                self.streams.remove(number);
                self.finished.fetch_add(1, SeqCst);
            }
        });
        self.close_unless(written);
        stream
    }

    /// Writes a frame of a stream at once.
    pub fn write_frame(&self, header: &[u8], body: &[u8]) {
        self.close_unless(self.outgoing.write_frame(&self.stream, header, body));
    }

    /// Writes a part of a stream at once: puts it into memory, if the stream has been given some.
    pub fn write_data(&self, id: StreamId, bytes: &[u8]) {
        let placed = self.streams.lock().put(id, bytes);
        match placed {
            Some(frame) => self.write_frame(&frame, b""),
            None => self.close_unless(self.outgoing.write_data(&self.stream, id.number, bytes)),
        }
    }

    /// Tells the gateway that it may send so many more bytes of a request's body; nothing if it is 0.
    pub fn give_credit(&self, number: u32, bytes: u32) {
        if bytes > 0 {
            self.write_frame(&credit(number, bytes), b"");
        }
    }

    /// Ends a stream with its last frame.
    pub fn end_stream(&self, number: u32, frame: &[u8]) {
        self.streams.remove(number);
        self.finished.fetch_add(1, SeqCst);
        self.write_frame(frame, b"");
    }

    /// Buffers the answer to a request, and writes the buffer if `now` or if it is large enough.
    pub fn answer(&self, number: u32, response: Response, now: bool) {
        self.streams.answered(number);
        self.finished.fetch_add(1, SeqCst);
        self.close_unless(self.outgoing.answer(&self.stream, number, response, now));
    }

    /// Writes the buffered answers.
    pub fn flush(&self) {
        self.close_unless(self.outgoing.flush(&self.stream));
    }

    /// The right to read; `None` if another thread has it.
    fn try_received(&self) -> Option<MutexGuard<'_, Buffer>> {
        match self.received.try_lock() {
            Ok(received) => Some(received),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The next frame. One that cannot be understood closes the connection.
    fn next_frame(&self, received: &mut Buffer) -> NextFrame {
        if self.closed.load(SeqCst) {
            return NextFrame::Nothing;
        }
        self.try_next_frame(received).unwrap_or_else(|why| {
            eprintln!("edge-gateway-sdk: a connection is closed: {why}");
            self.close();
            NextFrame::Nothing
        })
    }

    fn try_next_frame(&self, received: &mut Buffer) -> Result<NextFrame, String> {
        let Some(frame) = received.next_frame().map_err(|error| error.to_string())? else {
            return Ok(NextFrame::Nothing);
        };
        if !matches!(frame.kind, Kind::Request | Kind::Open) {
            let credit = self.streams.control(&frame)?;
            self.give_credit(frame.number, credit);
            return Ok(NextFrame::Control);
        }
        let request = head::request(&frame)?;
        let number = frame.number;
        let body = is_opening(frame.kind, self.takes)?.then(|| self.streams.open_body(number));
        self.started.fetch_add(1, SeqCst);
        Ok(NextFrame::Request(IncomingRequest { number, request, body }))
    }

    /// A gateway that has closed the connection needs no answer, and the reader reports the end.
    fn close_unless(&self, written: io::Result<()>) {
        if written.is_err() {
            self.close();
        }
    }

    /// Closes the connection, also for threads that wait on it.
    fn close(&self) {
        self.closed.store(true, SeqCst);
        // Fails only if the other side has closed already.
        let _ = self.stream.shutdown(Shutdown::Both);
        self.streams.close();
    }
}

#[cfg(test)]
mod tests;
