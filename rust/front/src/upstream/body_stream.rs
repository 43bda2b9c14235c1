//! A body that a handler sends piece by piece. The handler may send no more than its credit, which grows with what the
//! client takes: so a slow client holds back its own stream, and a stream has at most that much in memory.
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{pending, poll_fn};
use std::ops::Deref;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use edge_wire::{INITIAL_CREDIT, Kind, MAX_DATA_BYTES, cost};

use super::connection::HandlerConnection;
use super::upload::Wanted;
use crate::memory::Share;

/// What a stream may have in memory without asking for it.
const FREE_BYTES: usize = 64 * 1024;
/// Pieces up to this size are gathered.
const GATHERED_BYTES: usize = 4 * 1024;
/// Pieces that are taken together.
const MAX_PIECES: usize = 16;
/// What a handler may send ahead of a client that takes it as fast as it comes: each wait for credit costs both
/// processes a wakeup.
const MAX_WINDOW: usize = 4 * INITIAL_CREDIT;
/// Why streams have no end.
pub const HANDLER_DRAINED: &str = "its handler has been replaced or stopped";
pub const FRONT_DRAINED: &str = "the gateway stops, or its front is replaced";
const OUT_OF_MEMORY: &str = "there is no memory for what its client has not read yet";

/// How a body ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Complete,
    /// Why there is no more of it.
    Broken(Rc<str>),
    /// Its handler or the front has been replaced or stopped, and its time is up. Which of them, for logs.
    Drained(&'static str),
}

/// The bytes of a frame.
pub enum Payload<'a> {
    /// In memory that is used for others next.
    Shared(&'a [u8]),
    Own(Bytes),
}

impl Deref for Payload<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Shared(bytes) => bytes,
            Self::Own(bytes) => bytes,
        }
    }
}

impl Payload<'_> {
    fn into_bytes(self) -> Bytes {
        match self {
            Self::Shared(bytes) => Bytes::copy_from_slice(bytes),
            Self::Own(bytes) => bytes,
        }
    }
}

/// What has arrived of a body.
pub struct Arrived {
    pieces: RefCell<VecDeque<(Kind, Bytes)>>,
    /// Small pieces behind these: by themselves, many would take far more memory than they have bytes.
    gathered: RefCell<Vec<u8>>,
    /// Bytes of these.
    held: Cell<usize>,
    /// The memory that they take, if it is much.
    share: RefCell<Share>,
    /// Bytes that the handler may still send.
    credit: Cell<usize>,
    /// Bytes that it may send ahead of the client.
    window: Cell<usize>,
    end: RefCell<Option<End>>,
    waker: RefCell<Option<Waker>>,
}

/// Why a piece is not taken.
#[derive(Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// The handler has sent more than it may.
    BeyondCredit,
    OutOfMemory,
}

impl Arrived {
    /// `share` is for what is not taken at once.
    pub fn new(share: Share) -> Rc<Self> {
        Rc::new(Self {
            pieces: RefCell::default(),
            gathered: RefCell::default(),
            held: Cell::default(),
            share: RefCell::new(share),
            credit: Cell::new(INITIAL_CREDIT),
            window: Cell::new(INITIAL_CREDIT),
            end: RefCell::default(),
            waker: RefCell::default(),
        })
    }

    /// Bytes that the handler may still send.
    pub fn credit(&self) -> usize {
        self.credit.get()
    }

    /// A piece has arrived.
    ///
    /// # Errors
    /// Why it is not taken. Without memory, the stream has ended.
    pub fn push(&self, kind: Kind, piece: Payload<'_>) -> Result<(), NotTaken> {
        let cost = cost(kind, piece.len());
        let Some(credit) = self.credit.get().checked_sub(cost) else { return Err(NotTaken::BeyondCredit) };
        self.credit.set(credit);
        if kind == Kind::Data && piece.is_empty() {
            return Ok(());
        }
        let held = self.held.get() + cost;
        if held > FREE_BYTES && !self.share.borrow_mut().set(held) {
            self.end(End::Broken(OUT_OF_MEMORY.into()));
            return Err(NotTaken::OutOfMemory);
        }
        self.held.set(held);
        let mut gathered = self.gathered.borrow_mut();
        let is_small = kind == Kind::Data && piece.len() <= GATHERED_BYTES;
        if !is_small || gathered.len() + piece.len() > MAX_DATA_BYTES {
            self.end_gathered(&mut gathered);
        }
        if is_small {
            gathered.extend_from_slice(&piece);
        } else {
            self.pieces.borrow_mut().push_back((kind, piece.into_bytes()));
        }
        drop(gathered);
        self.wake();
        Ok(())
    }

    /// Nothing more comes. A stream ends once.
    pub fn end(&self, end: End) {
        self.end.borrow_mut().get_or_insert(end);
        self.wake();
    }

    fn end_gathered(&self, gathered: &mut Vec<u8>) {
        if !gathered.is_empty() {
            self.pieces.borrow_mut().push_back((Kind::Data, std::mem::take(gathered).into()));
        }
    }

    fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    /// The next piece, or the end once all pieces were taken; `None` when neither is there.
    fn next(&self) -> Option<Result<(Kind, Bytes), End>> {
        let piece = self.next_piece();
        piece.map(Ok).or_else(|| self.end.borrow().clone().map(Err))
    }

    fn next_piece(&self) -> Option<(Kind, Bytes)> {
        let piece = self.pieces.borrow_mut().pop_front();
        piece.or_else(|| {
            let gathered = self.gathered.take();
            (!gathered.is_empty()).then(|| (Kind::Data, gathered.into()))
        })
    }

    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Result<(Kind, Bytes), End>> {
        if let Some(next) = self.next() {
            return Poll::Ready(next);
        }
        *self.waker.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Lets the handler send further ahead of a client that has taken all that has arrived. Returns by how much.
    fn widen(&self) -> usize {
        let window = self.window.get();
        if self.held.get() > 0 || window >= MAX_WINDOW {
            return 0;
        }
        self.window.set(2 * window);
        window
    }

    /// The client has taken so much of what was held.
    fn taken(&self, bytes: usize) {
        let held = self.held.get() - bytes;
        self.held.set(held);
        self.share.borrow_mut().set(if held > FREE_BYTES { held } else { 0 });
    }
}

/// A body as its reader has it. The handler is told when it is dropped before its end.
pub struct BodyStream {
    pub arrived: Rc<Arrived>,
    pub connection: Rc<HandlerConnection>,
    pub number: u32,
    /// What the reader has taken, and the handler has no credit for yet.
    pub uncredited: usize,
    /// What the handler takes, of a WebSocket.
    pub wanted: Option<Rc<Wanted>>,
}

impl BodyStream {
    /// The next piece; the end when there is none.
    pub async fn next(&mut self) -> Result<Bytes, End> {
        self.next_frame().await.map(|(_, piece)| piece)
    }

    /// All pieces that are there, at least one; the end when there is none.
    pub async fn next_pieces(&mut self) -> Result<Vec<Bytes>, End> {
        let mut pieces = vec![self.next().await?];
        let more = std::iter::from_fn(|| self.arrived.next_piece());
        pieces.extend(more.take(MAX_PIECES - 1).map(|(_, piece)| piece));
        Ok(pieces)
    }

    /// The next frame of a WebSocket; the end when there is none.
    pub async fn next_frame(&self) -> Result<(Kind, Bytes), End> {
        poll_fn(|cx| self.arrived.poll_next(cx)).await
    }

    /// The same, if it is there.
    pub fn next_frame_at_once(&self) -> Option<Result<(Kind, Bytes), End>> {
        self.arrived.next()
    }

    /// How many bytes of messages may be sent to the handler.
    pub fn sendable(&self) -> usize {
        self.wanted.as_ref().map_or(0, |wanted| wanted.credit())
    }

    /// Waits until more may be sent than so many bytes.
    pub async fn more_sendable(&self, bytes: usize) {
        match &self.wanted {
            Some(wanted) => wanted.exceeds(bytes).await,
            None => pending().await,
        }
    }

    /// Sends a frame of a WebSocket to the handler, which may be no longer than `sendable`.
    pub fn send(&self, kind: Kind, payload: &[u8]) {
        if let Some(wanted) = &self.wanted {
            wanted.spend(cost(kind, payload.len()));
        }
        self.connection.send_frame(self.number, kind, payload);
    }

    /// So many bytes are not needed any more: the handler may send as many.
    pub fn taken(&mut self, bytes: usize) {
        self.arrived.taken(bytes);
        self.uncredited += bytes;
        // Less would be many small frames.
        if self.uncredited >= self.arrived.window.get() / 2 {
            let credit = self.uncredited + self.arrived.widen();
            self.arrived.credit.set(self.arrived.credit() + credit);
            self.connection.give_credit(self.number, credit as u32);
            self.uncredited = 0;
        }
    }
}

impl Drop for BodyStream {
    fn drop(&mut self) {
        self.connection.drop_stream(self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::memory::MemoryBudget;

    fn arrived(memory: usize) -> Rc<Arrived> {
        Arrived::new(Share::new(Arc::new(MemoryBudget::new(memory)), None))
    }

    fn push(arrived: &Arrived, piece: &[u8]) -> Result<(), NotTaken> {
        arrived.push(Kind::Data, Payload::Shared(piece))
    }

    fn next(arrived: &Arrived) -> Poll<Result<Bytes, End>> {
        arrived.poll_next(&mut Context::from_waker(Waker::noop())).map(|next| next.map(|(_, piece)| piece))
    }

    #[test]
    fn small_pieces_that_nobody_takes_become_few() {
        let stream = arrived(INITIAL_CREDIT);
        for _ in 0..INITIAL_CREDIT {
            push(&stream, b"x").unwrap();
        }
        assert_eq!(push(&stream, b"x"), Err(NotTaken::BeyondCredit));
        let pieces = std::iter::from_fn(|| stream.next_piece()).count();
        assert_eq!((pieces, stream.credit()), (INITIAL_CREDIT / MAX_DATA_BYTES, 0));
    }

    #[test]
    fn pieces_come_before_the_end_and_there_is_one_end() {
        for end in [End::Complete, End::Broken("it has ended".into())] {
            let stream = arrived(0);
            assert!(next(&stream).is_pending());
            push(&stream, b"a").unwrap();
            push(&stream, b"").unwrap();
            stream.end(end.clone());
            stream.end(End::Broken("late".into()));
            assert_eq!(next(&stream), Poll::Ready(Ok("a".into())));
            assert_eq!(next(&stream), Poll::Ready(Err(end)));
        }
    }

    #[test]
    fn nothing_beyond_the_credit_is_taken() {
        let stream = arrived(INITIAL_CREDIT);
        let piece = vec![7; INITIAL_CREDIT / 8];
        for _ in 0..8 {
            push(&stream, &piece).unwrap();
        }
        assert_eq!(push(&stream, b"x"), Err(NotTaken::BeyondCredit));
    }

    #[test]
    fn what_waits_takes_memory_and_gives_it_back() {
        let stream = arrived(FREE_BYTES + 10);
        let piece = vec![7; FREE_BYTES / 2];
        for _ in 0..2 {
            push(&stream, &piece).unwrap();
        }
        push(&stream, b"0123456789").unwrap();
        assert!(matches!(next(&stream), Poll::Ready(Ok(_))));
        stream.taken(piece.len());
        push(&stream, &piece).unwrap();
        assert_eq!(push(&stream, b"x"), Err(NotTaken::OutOfMemory));
        for _ in 0..3 {
            assert!(matches!(next(&stream), Poll::Ready(Ok(_))));
        }
        assert_eq!(next(&stream), Poll::Ready(Err(End::Broken(OUT_OF_MEMORY.into()))));
    }
}
