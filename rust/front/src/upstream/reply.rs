//! What became of a request that was sent to a handler. Each connection of a client has one place for it, because its
//! requests are answered one after the other.
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use super::body_stream::BodyStream;
use super::response_head::HandlerResponseHead;
use crate::memory::MemoryShare;

/// The status with which a handler accepts a WebSocket.
pub const SWITCHING: u16 = 101;

/// The answer of a handler.
pub struct Answer {
    pub head: Rc<HandlerResponseHead>,
    pub body: AnswerBody,
}

/// A body, at the end of the bytes that it arrived in.
pub struct AnswerBody {
    pub bytes: Vec<u8>,
    pub start: usize,
    /// The memory that it takes, if it is large.
    pub share: Option<MemoryShare>,
}

impl AnswerBody {
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

/// An answer whose body follows.
pub struct StreamedAnswer {
    pub head: Rc<HandlerResponseHead>,
    pub body: BodyStream,
}

pub enum Outcome {
    Answered(Answer),
    Streamed(StreamedAnswer),
    /// The handler exited, or violated the protocol.
    Aborted(Rc<str>),
    /// The answer is larger than the memory for all, or than what the endpoint may have of it.
    TooLarge,
    /// It exceeded its deadline.
    Expired,
    /// The connection closed before the request was sent: it can be sent again.
    Unsent,
}

pub struct Reply {
    outcome: RefCell<Option<Outcome>>,
    /// The version of the handler that the request was sent to last.
    pub version: Cell<Option<u32>>,
    waker: Waker,
}

impl Reply {
    /// Makes a place for replies to the task with this waker.
    pub fn new(waker: Waker) -> Rc<Self> {
        Rc::new(Self { outcome: RefCell::default(), version: Cell::default(), waker })
    }

    pub fn set(&self, outcome: Outcome) {
        *self.outcome.borrow_mut() = Some(outcome);
        self.waker.wake_by_ref();
    }

    /// Resolves in the task of the waker only.
    pub async fn outcome(&self) -> Outcome {
        poll_fn(|_| self.outcome.borrow_mut().take().map_or(Poll::Pending, Poll::Ready)).await
    }
}
