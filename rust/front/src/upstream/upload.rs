//! The body of a request on its way to a handler, piece by piece. No more is sent than the handler has given credit
//! for: so a slow handler holds back this client, and no other.
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Instant;

use edge_wire::{HEADER_BYTES, INITIAL_CREDIT, Kind, MAX_DATA_BYTES, header};

use super::outgoing::RequestBody;
use super::stream_handle::StreamHandle;
use crate::memory::MemoryShare;

const LEFT: &str = "the client has left";
/// What a piece takes of memory besides its bytes, about.
pub(super) const PIECE_OVERHEAD: usize = 128;

/// How much of a body, or of the messages of a WebSocket, may be sent to a handler.
#[derive(Default)]
pub struct SendCredit {
    /// Bytes that may be sent.
    bytes: Cell<usize>,
    /// The handler, or its connection, takes no more.
    is_over: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl SendCredit {
    pub fn new() -> Rc<Self> {
        let send_credit = Self::default();
        send_credit.bytes.set(INITIAL_CREDIT);
        Rc::new(send_credit)
    }

    /// The handler takes more. Whatever it says, no more than at first is under way to it.
    pub fn add(&self, bytes: usize) {
        self.bytes.set(self.bytes.get().saturating_add(bytes).min(INITIAL_CREDIT));
        self.wake();
    }

    /// The handler, or its connection, takes no more.
    pub fn end(&self) {
        self.is_over.set(true);
        self.wake();
    }

    /// Bytes that may be sent.
    pub fn bytes(&self) -> usize {
        self.bytes.get()
    }

    /// So many bytes were sent.
    pub fn spend(&self, bytes: usize) {
        self.bytes.set(self.bytes.get().saturating_sub(bytes));
    }

    /// Waits until more may be sent than so many bytes, or the handler takes no more.
    pub async fn exceeds(&self, bytes: usize) {
        poll_fn(|cx| {
            if self.bytes() > bytes || self.is_over.get() {
                return Poll::Ready(());
            }
            *self.waker.borrow_mut() = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }
}

/// A request that was sent without its body, and that body. The handler is told when this is dropped before there is
/// an answer: then it is one that nobody waits for.
pub struct Upload {
    pub handle: StreamHandle,
    pub send_credit: Rc<SendCredit>,
    /// Memory for pieces that wait to be written.
    pub memory: MemoryShare,
    /// What the handler is told when this is dropped before the end of the body.
    pub reason: &'static str,
}

impl Upload {
    pub fn new(handle: StreamHandle, send_credit: Rc<SendCredit>, memory: MemoryShare) -> Self {
        Self { handle, send_credit, memory, reason: LEFT }
    }

    /// How many bytes may be sent; none when the handler takes no more.
    pub fn room(&self) -> Option<usize> {
        (!self.send_credit.is_over.get()).then(|| self.send_credit.bytes())
    }

    /// Waits until there is room, or the handler takes no more.
    pub async fn has_room(&self) {
        self.send_credit.exceeds(0).await
    }

    /// Sends the beginning of these bytes, as many as there is room for. Returns how many; none when there is no memory
    /// for them now.
    pub fn send(&self, bytes: &[u8]) -> Option<usize> {
        let length = bytes.len().min(MAX_DATA_BYTES).min(self.room().unwrap_or(0));
        let mut share = self.memory.another();
        if !share.set(PIECE_OVERHEAD + HEADER_BYTES + length) {
            return None;
        }
        let frame = [&header(Kind::Data, self.handle.number, 0, length)[..], &bytes[..length]].concat();
        self.send_credit.spend(length);
        self.handle.carrier.send_piece(RequestBody::new(frame, Some(share)));
        Some(length)
    }

    /// The body is complete. The time of the handler begins.
    pub fn end(&self, deadline: Instant) {
        self.handle.carrier.end_body(self.handle.number, deadline);
    }

    /// The handler has taken nothing for too long.
    pub fn expire(&mut self) {
        self.reason = "the handler has not read it in time";
        self.handle.carrier.expire_request();
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.handle.carrier.leave(self.handle.number, self.reason);
    }
}
