//! The connection of a thread to one handler process. It carries many requests at a time, and enforces their deadlines.
mod carrier;
mod frames;
mod streams;

use std::cell::{Cell, RefCell};
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use edge_wire::{Kind, header};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;

use super::in_flight::{InFlight, Pending};
use super::outgoing::{Outgoing, RequestBody};
use super::reply::{Outcome, Reply};
use super::response_head::HandlerResponseHead;
use super::shared_memory::Memories;
use super::socket;
use super::stream_buffer::{End, HANDLER_DRAINED};
use super::stream_handle::{StreamCarrier, StreamHandle};
use super::upload::{SendCredit, Upload};
use crate::memory::MemoryShare;

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
    /// Those of the system: most likely the handler has ended.
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

    /// Sends the head of a request, whose outcome the reply gets. `None` when too many are in flight, or wait to be
    /// written. `memory` is for what waits of its body.
    pub fn open_request(self: &Rc<Self>, head: &[u8], reply: &Rc<Reply>, memory: MemoryShare) -> Option<Upload> {
        if self.outgoing.borrow().is_full() {
            return None;
        }
        let send_credit = SendCredit::new();
        let pending = Pending { reply: reply.clone(), deadline: None, is_socket: false };
        let number = self.in_flight.borrow_mut().add_opened(pending, send_credit.clone())?;
        self.outgoing.borrow_mut().add_head(number, head);
        self.has_outgoing.notify_one();
        Some(Upload::new(StreamHandle { carrier: self.clone(), number }, send_credit, memory))
    }

    /// Asks for a WebSocket; the reply gets the outcome. Returns false when too many are in flight, or wait to be
    /// written.
    pub fn open_socket(&self, head: &[u8], reply: &Rc<Reply>, deadline: Instant) -> bool {
        if self.outgoing.borrow().is_full() {
            return false;
        }
        let pending = Pending { reply: reply.clone(), deadline: Some(deadline), is_socket: true };
        let Some(number) = self.in_flight.borrow_mut().add_opened(pending, SendCredit::new()) else { return false };
        self.outgoing.borrow_mut().add_head(number, head);
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

    /// Ends all streams before their end, in both directions. The reason is one for logs.
    pub fn end_streams(&self, reason: &'static str) {
        self.end_uploads(reason);
        let streams = self.in_flight.borrow().streams();
        for (number, buffer) in streams {
            buffer.end(End::Drained(reason));
            self.drop_stream(number);
        }
    }

    /// Writes a frame about a stream.
    fn queue_frame(&self, frame: &[u8]) {
        if self.is_open() {
            self.outgoing.borrow_mut().add_frame(frame);
            self.has_outgoing.notify_one();
        }
    }

    /// The handler has answered, or its answer has come to its end: it wants no more of the request.
    fn close_body(&self, number: u32) {
        let send_credit = self.in_flight.borrow_mut().take_body(number);
        if let Some(send_credit) = send_credit {
            send_credit.end();
            self.reset(number, "");
        }
    }

    /// Ends requests that are still arriving.
    fn end_uploads(&self, reason: &'static str) {
        let numbers = self.in_flight.borrow().opened();
        for number in numbers {
            let abandoned = self.in_flight.borrow_mut().abandon(number);
            if let Some(Pending { reply, .. }) = abandoned {
                reply.set(Outcome::Aborted(reason.into()));
            }
            self.close_body(number);
            self.close_if_done();
        }
    }

    fn reset(&self, number: u32, reason: &str) {
        self.queue_frame(&[&header(Kind::Reset, number, 0, reason.len())[..], reason.as_bytes()].concat());
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
            reason = frames::read(&self, &mut reader, share) => reason,
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
        // These are told after the connection counts as closed, so that they wait for another one.
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
