//! The connection of a thread to one handler process. It carries many requests at a time, and enforces their deadlines.
mod carrier;
mod sockets;
mod streams;
mod uploads;

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use edge_wire::{Decoded, Frame, HEADER_BYTES, Kind, decode, problem_of};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;

pub use self::sockets::SWITCHING;
use self::sockets::UNASKED_SOCKET;
use super::in_flight::{InFlight, Pending};
use super::incoming::Incoming;
use super::outgoing::{Outgoing, RequestBody};
use super::reply::{Answer, AnswerBody, Outcome, Reply};
use super::response_head::HandlerResponseHead;
use super::shared_memory::Memories;
use super::socket;
use super::stream_buffer::{End, HANDLER_DRAINED, Payload};
use crate::memory::MemoryShare;
use crate::scratch;

/// A connection whose answer finds no memory tries again after this.
const MEMORY_RETRY: Duration = Duration::from_millis(100);
/// What a connection may hold of an answer without asking for memory.
const FREE_BYTES: usize = 64 * 1024;

/// What the endpoint of a connection is told.
pub trait Events {
    /// A request exceeded its deadline.
    fn deadline_exceeded(&self, instance_id: u64);
    /// The connection is closed, and its requests have been aborted.
    fn connection_lost(&self, instance_id: u64, reason: &str);
}

/// It does not reconnect.
pub struct HandlerConnection {
    pub instance_id: u64,
    events: Rc<dyn Events>,
    in_flight: RefCell<InFlight>,
    outgoing: RefCell<Outgoing>,
    has_outgoing: Notify,
    /// Consecutive answers mostly have the same head, which is parsed once.
    last_head: RefCell<Option<(Vec<u8>, Rc<HandlerResponseHead>)>>,
    /// Reading waits for memory.
    is_paused: Cell<bool>,
    /// Requests have exceeded their deadline: what is held may not be wanted any more.
    has_expired: Notify,
    is_open: Cell<bool>,
    /// Since when another one has its place: it closes when nothing is in flight.
    retired: Cell<Option<Instant>>,
    /// The memory that is taken by what has arrived of streams.
    memory: MemoryShare,
    /// Where its handler may put large streams.
    pub(super) memories: Memories,
    may_close: Notify,
    closed: Notify,
}

impl HandlerConnection {
    /// Connects to a handler. `share` is for answers that have arrived in part. The returned future runs the
    /// connection, and ends when it is closed.
    ///
    /// # Errors
    /// Of the system: most likely the handler has ended.
    pub async fn open(
        instance_id: u64,
        socket: &Path,
        share: MemoryShare,
        events: Rc<dyn Events>,
    ) -> io::Result<(Rc<Self>, impl Future<Output = ()> + 'static)> {
        let (reader, writer) = socket::connect(socket).await?.into_split();
        let connection = Rc::new(Self {
            instance_id,
            events,
            in_flight: RefCell::default(),
            outgoing: RefCell::default(),
            has_outgoing: Notify::new(),
            last_head: RefCell::default(),
            is_paused: Cell::default(),
            has_expired: Notify::new(),
            is_open: Cell::new(true),
            retired: Cell::default(),
            memory: share.another(),
            memories: Memories::default(),
            may_close: Notify::new(),
            closed: Notify::new(),
        });
        let running = connection.clone().run(reader, writer, share);
        Ok((connection, running))
    }

    pub fn is_open(&self) -> bool {
        self.is_open.get()
    }

    pub fn is_retired(&self) -> bool {
        self.retired.get().is_some()
    }

    pub fn in_flight(&self) -> usize {
        self.in_flight.borrow().len()
    }

    /// Sends a request, whose outcome the reply gets. Returns false when too many are in flight, or wait to be written.
    pub fn send(&self, head: &[u8], body: &Arc<RequestBody>, reply: &Rc<Reply>, deadline: Instant) -> bool {
        if self.outgoing.borrow().is_full() {
            return false;
        }
        let pending = Pending { reply: reply.clone(), deadline: Some(deadline), is_socket: false };
        let Some(number) = self.in_flight.borrow_mut().add(pending) else {
            return false;
        };
        self.outgoing.borrow_mut().add(number, head, body);
        self.has_outgoing.notify_one();
        true
    }

    /// Ends the requests past their deadline; also the streams of a connection that was retired before `streams_until`.
    pub fn expire(&self, now: Instant, streams_until: Option<Instant>) {
        if self.in_flight() == 0 {
            return;
        }
        if streams_until.is_some_and(|until| self.retired.get().is_some_and(|retired| retired <= until)) {
            self.end_streams(HANDLER_DRAINED);
        }
        let late =
            self.in_flight.borrow_mut().expire(|pending| pending.deadline.is_some_and(|deadline| deadline <= now));
        if late.is_empty() {
            return;
        }
        self.has_expired.notify_one();
        for Pending { reply, .. } in late {
            reply.set(Outcome::Expired);
        }
        // Otherwise an answer may have arrived: it is not the handler that keeps the memory.
        if !self.is_paused.get() {
            self.events.deadline_exceeded(self.instance_id);
        }
        self.close_if_done();
    }

    /// No request is sent any more. The connection closes when none is in flight.
    pub fn retire(&self) {
        if !self.is_retired() {
            self.retired.set(Some(Instant::now()));
        }
        self.close_if_done();
    }

    /// Resolves when the connection is closed.
    pub async fn closed(&self) {
        let closed = self.closed.notified();
        if self.is_open() {
            closed.await;
        }
    }

    fn close_if_done(&self) {
        if self.is_retired() && self.in_flight() == 0 {
            self.may_close.notify_one();
        }
    }

    async fn run(self: Rc<Self>, mut reader: OwnedReadHalf, mut writer: OwnedWriteHalf, share: MemoryShare) {
        let reason = tokio::select! {
            biased;
            reason = self.read(&mut reader, share) => reason,
            () = self.write(&mut writer) => GONE.to_owned(),
            () = self.may_close.notified() => GONE.to_owned(),
        };
        self.is_open.set(false);
        // The endpoint may keep the connection for a while, but not what waited to be written.
        let outgoing = self.outgoing.take();
        let unsent: Vec<_> = {
            let mut in_flight = self.in_flight.borrow_mut();
            outgoing.unsent.iter().filter_map(|&number| in_flight.take(number)).collect()
        };
        drop(outgoing);
        let aborted = self.in_flight.borrow_mut().expire(|_| true);
        self.in_flight.borrow_mut().take_bodies().iter().for_each(|send_credit| send_credit.end());
        let because: Rc<str> = reason.as_str().into();
        let streams = self.in_flight.borrow().streams();
        for (number, buffer) in streams {
            buffer.end(End::Broken(because.clone()));
            self.in_flight.borrow_mut().end_stream(number);
        }
        for Pending { reply, .. } in aborted {
            reply.set(Outcome::Aborted(because.clone()));
        }
        // After the connection counts as closed, so that they wait for another one.
        for Pending { reply, .. } in unsent {
            reply.set(Outcome::Unsent);
        }
        if !self.is_retired() {
            self.events.connection_lost(self.instance_id, &reason);
        }
        self.closed.notify_waiters();
    }

    /// Writes what there is, until it cannot.
    async fn write(&self, writer: &mut OwnedWriteHalf) {
        loop {
            self.has_outgoing.notified().await;
            loop {
                let Some(piece) = self.outgoing.borrow_mut().take() else { break };
                match piece.write_to(writer).await {
                    Ok(()) => self.outgoing.borrow_mut().recycle(piece),
                    // A handler that is gone has got nothing of it: its requests can be sent to another one.
                    Err(0) => return self.outgoing.borrow_mut().put_back(),
                    Err(_) => return,
                }
            }
        }
    }

    /// Reads answers until the connection ends. Returns why.
    async fn read(self: &Rc<Self>, reader: &mut OwnedReadHalf, mut share: MemoryShare) -> String {
        let mut incoming = Incoming::default();
        loop {
            let held = incoming.held();
            let needed = match incoming.needed() {
                Ok(needed) if held > FREE_BYTES => needed,
                Ok(_) => 0,
                Err(error) => return violation(error),
            };
            if needed > 0 {
                match self.drop_unwanted(&mut incoming, share.is_beyond_part(needed)) {
                    Ok(false) => {}
                    Ok(true) => {
                        self.close_if_done();
                        continue;
                    }
                    Err(reason) => return reason,
                }
            }
            if !share.set(needed) {
                self.is_paused.set(true);
                tokio::time::sleep(MEMORY_RETRY).await;
                continue;
            }
            self.is_paused.set(false);
            let has_own_memory = match incoming.has_own_memory() {
                Ok(has_own_memory) => has_own_memory,
                Err(error) => return violation(error),
            };
            let read = if !has_own_memory {
                self.read_frames(reader, &mut incoming).await
            } else {
                tokio::select! {
                    biased;
                    read = self.read_held(reader, &mut incoming, &mut share) => read,
                    () = self.has_expired.notified() => Ok(()),
                }
            };
            if let Err(reason) = read {
                return reason;
            }
            self.close_if_done();
            if held > FREE_BYTES {
                // Other connections have their turn.
                tokio::task::yield_now().await;
            }
        }
    }

    /// Reads into the memory that the connections of the thread share.
    async fn read_frames(self: &Rc<Self>, reader: &mut OwnedReadHalf, incoming: &mut Incoming) -> Result<(), String> {
        poll_fn(|cx| {
            scratch::with(|bytes| {
                let held = incoming.held();
                let mut buffer = ReadBuf::new(&mut bytes[held..]);
                if ready!(Pin::new(&mut *reader).poll_read(cx, &mut buffer)).is_err() || buffer.filled().is_empty() {
                    return Poll::Ready(Err(GONE.to_owned()));
                }
                let end = held + buffer.filled().len();
                incoming.unhold(bytes);
                let mut answered = Ok(());
                let read = incoming.read(&bytes[..end], |Frame { kind, number, head, body }| {
                    if answered.is_ok() && kind != Kind::Response {
                        answered = self.streamed(kind, number, head, Payload::Borrowed(body));
                    } else if answered.is_ok() {
                        let body = || AnswerBody { bytes: body.to_vec(), start: 0, share: None };
                        answered = self.answered(number, head, body);
                    }
                });
                Poll::Ready(read.map_err(violation).and(answered))
            })
        })
        .await
    }

    /// Reads more of a frame that has arrived in part.
    async fn read_held(
        self: &Rc<Self>,
        reader: &mut OwnedReadHalf,
        incoming: &mut Incoming,
        share: &mut MemoryShare,
    ) -> Result<(), String> {
        let (held, room) = incoming.room().map_err(violation)?;
        let read = poll_fn(|cx| scratch::read_more(Pin::new(&mut *reader), cx, held, room)).await;
        if !matches!(read, Ok(1..)) {
            return Err(GONE.to_owned());
        }
        // Behind a large piece, there may be a frame that is nothing but a header.
        while let Some(frame) = incoming.whole().map_err(violation)? {
            self.held_frame(frame, share)?;
        }
        Ok(())
    }

    fn held_frame(self: &Rc<Self>, frame: Vec<u8>, share: &mut MemoryShare) -> Result<(), String> {
        let Decoded::Frame(Frame { kind, number, head, .. }, _) = decode(&frame).map_err(violation)? else {
            return Ok(());
        };
        let start = HEADER_BYTES + head.len();
        let head = head.to_vec();
        if kind != Kind::Response {
            let body = Bytes::from(frame).slice(start..);
            return self.streamed(kind, number, &head, Payload::Own(body));
        }
        // With its memory, or other answers would take it first.
        let share = Some(share.hand_over());
        self.answered(number, &head, || AnswerBody { bytes: frame, start, share })
    }

    fn answered(&self, number: u32, head: &[u8], body: impl FnOnce() -> AnswerBody) -> Result<(), String> {
        let mut in_flight = self.in_flight.borrow_mut();
        let Some(Pending { reply, .. }) = in_flight.take(number) else {
            return answered_late(&mut in_flight, number);
        };
        drop(in_flight);
        self.close_body(number);
        reply.set(match self.parse_head(head) {
            Ok(head) if head.status == SWITCHING => Outcome::Aborted(UNASKED_SOCKET.into()),
            Ok(head) => Outcome::Answered(Answer { head, body: body() }),
            Err(reason) => Outcome::Aborted(reason.into()),
        });
        Ok(())
    }

    /// Drops the frame that is held if its request is past its deadline, or its endpoint can have no memory for it.
    fn drop_unwanted(&self, incoming: &mut Incoming, is_beyond_part: bool) -> Result<bool, String> {
        let Some(number) = incoming.number() else { return Ok(false) };
        let mut in_flight = self.in_flight.borrow_mut();
        if !in_flight.has(number) {
            answered_late(&mut in_flight, number)?;
        } else if is_beyond_part {
            let taken = in_flight.take(number);
            drop(in_flight);
            self.close_body(number);
            if let Some(Pending { reply, .. }) = taken {
                reply.set(Outcome::TooLarge);
            }
        } else {
            return Ok(false);
        }
        incoming.drop_frame().map_err(violation)?;
        Ok(true)
    }

    fn parse_head(&self, head: &[u8]) -> Result<Rc<HandlerResponseHead>, String> {
        let mut last = self.last_head.borrow_mut();
        match &*last {
            Some((bytes, parsed)) if bytes == head => return Ok(parsed.clone()),
            _ => {}
        }
        let parsed = Rc::new(HandlerResponseHead::parse(head)?);
        *last = Some((head.to_vec(), parsed.clone()));
        Ok(parsed)
    }
}

const GONE: &str = "it closed its connection to the gateway";
const UNASKED: &str = "it sent a response to no request, or a second one";

/// An answer to a request past its deadline is late, any other to no request a violation.
fn answered_late(in_flight: &mut InFlight, number: u32) -> Result<(), String> {
    match in_flight.answered_late(number) {
        true => Ok(()),
        false => Err(violated(UNASKED)),
    }
}

fn violation(error: edge_wire::FrameError) -> String {
    violated(&problem_of(error))
}

fn violated(how: &str) -> String {
    format!("it violated the protocol: {how}")
}
