//! What has arrived of a body that a handler sends piece by piece. The handler may send no more than its credit, which
//! grows with what the client takes: so a slow client holds back its own stream, and a stream has at most that much in
//! memory.
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::ops::{Deref, Range};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use edge_wire::{INITIAL_CREDIT, Kind, MAX_DATA_BYTES, MIN_SHARED_BYTES, cost};

use super::shared_memory::{Memories, MemoryOffer, SharedMemory};
use super::window::CreditWindow;
use crate::memory::MemoryShare;

/// What a stream may have in memory without asking for it.
const FREE_BYTES: usize = 64 * 1024;
/// Pieces up to this size are gathered.
const GATHERED_BYTES: usize = 4 * 1024;
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
    /// The bytes are in memory that is used for other frames next.
    Borrowed(&'a [u8]),
    Own(Bytes),
    /// The bytes are in memory that the handler shares: only the kernel may read them.
    Placed(Bytes),
}

impl Deref for Payload<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Own(bytes) | Self::Placed(bytes) => bytes,
        }
    }
}

impl Payload<'_> {
    fn into_bytes(self) -> Bytes {
        match self {
            Self::Borrowed(bytes) => Bytes::copy_from_slice(bytes),
            Self::Own(bytes) | Self::Placed(bytes) => bytes,
        }
    }
}

/// What has arrived of a body, or of a WebSocket.
pub struct StreamBuffer {
    is_socket: bool,
    /// A WebSocket has been closed: nothing more of it counts.
    is_closed: Cell<bool>,
    pieces: RefCell<VecDeque<(Kind, Bytes)>>,
    /// Small pieces behind these: by themselves, many would take far more memory than they have bytes.
    gathered: RefCell<Vec<u8>>,
    /// Bytes of these.
    held: Cell<usize>,
    /// The memory that they take, if it is much.
    share: RefCell<MemoryShare>,
    /// Bytes that the handler may still send.
    credit: Cell<usize>,
    window: CreditWindow,
    /// Where the handler may put large pieces.
    memory: RefCell<Option<SharedMemory>>,
    may_have_memory: Cell<bool>,
    /// Bytes that the client has taken, and the handler has no credit for yet.
    uncredited: Cell<usize>,
    end: RefCell<Option<End>>,
    waker: RefCell<Option<Waker>>,
}

/// Why a piece is not taken.
#[derive(Debug, PartialEq, Eq)]
pub enum PushError {
    /// The handler has sent more than it may.
    BeyondCredit,
    /// The handler has sent a frame of a WebSocket, and it is none.
    NoSocket,
    /// The handler has put it where it may not.
    NotPlaced,
    OutOfMemory,
}

impl StreamBuffer {
    /// `share` is for what is not taken at once.
    pub fn new(share: MemoryShare, is_socket: bool) -> Rc<Self> {
        Rc::new(Self {
            is_socket,
            is_closed: Cell::default(),
            pieces: RefCell::default(),
            gathered: RefCell::default(),
            held: Cell::default(),
            share: RefCell::new(share),
            credit: Cell::new(INITIAL_CREDIT),
            window: CreditWindow::new(),
            memory: RefCell::default(),
            may_have_memory: Cell::default(),
            uncredited: Cell::default(),
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
    pub fn push(&self, kind: Kind, piece: Payload<'_>) -> Result<(), PushError> {
        if kind != Kind::Data && !self.is_socket {
            return Err(PushError::NoSocket);
        }
        if self.is_closed.get() {
            return Ok(());
        }
        self.is_closed.set(kind == Kind::Close);
        let cost = cost(kind, piece.len());
        let Some(credit) = self.credit.get().checked_sub(cost) else { return Err(PushError::BeyondCredit) };
        self.credit.set(credit);
        if kind == Kind::Data && piece.is_empty() {
            return Ok(());
        }
        let held = self.held.get() + cost;
        if held > FREE_BYTES && !self.share.borrow_mut().set(held) {
            self.end(End::Broken(OUT_OF_MEMORY.into()));
            return Err(PushError::OutOfMemory);
        }
        self.held.set(held);
        let mut gathered = self.gathered.borrow_mut();
        let is_small = kind == Kind::Data && piece.len() <= GATHERED_BYTES && !matches!(piece, Payload::Placed(_));
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

    /// The handler may be given memory, once.
    pub fn may_have_memory(&self) {
        self.may_have_memory.set(true);
    }

    /// Whether the handler is to be given memory now: for a client that has been quick for a while, where memory is
    /// plentiful, and not asked for before.
    pub fn is_worth_memory(&self) -> bool {
        self.may_have_memory.get() && self.window.is_widest() && self.share.borrow().is_plentiful()
    }

    /// Memory that the handler is to be given, if there is any.
    pub fn take_memory(&self, memories: &Memories) -> Option<MemoryOffer> {
        self.may_have_memory.set(false);
        let (memory, given) = memories.take(self.share.borrow().another())?;
        *self.memory.borrow_mut() = Some(memory);
        Some(given)
    }

    /// A piece is where the handler may put it.
    ///
    /// # Errors
    /// Why it is not taken. See [`StreamBuffer::push`].
    pub fn push_placed(&self, range: Range<usize>) -> Result<(), PushError> {
        let memory = self.memory.borrow();
        let is_worth_it = range.len() >= MIN_SHARED_BYTES;
        let bytes = memory.as_ref().filter(|_| is_worth_it).and_then(|memory| memory.part(range));
        self.push(Kind::Data, Payload::Placed(bytes.ok_or(PushError::NotPlaced)?))
    }

    /// Nothing more comes. A stream ends once. Its time may be up, whatever its client has not taken yet.
    pub fn end(&self, end: End) {
        if matches!(end, End::Drained(_)) && !self.is_socket {
            self.pieces.take();
            self.gathered.take();
        }
        self.end.borrow_mut().get_or_insert(end);
        self.wake();
    }

    /// Resolves when it is to end, whatever its client has not taken yet; why.
    pub async fn drained(&self) -> &'static str {
        poll_fn(|cx| {
            if let Some(End::Drained(reason)) = *self.end.borrow() {
                return Poll::Ready(reason);
            }
            *self.waker.borrow_mut() = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
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
    pub fn next(&self) -> Option<Result<(Kind, Bytes), End>> {
        let piece = self.next_piece();
        piece.map(Ok).or_else(|| self.end.borrow().clone().map(Err))
    }

    /// The next piece, if it is there.
    pub fn next_piece(&self) -> Option<(Kind, Bytes)> {
        let piece = self.pieces.borrow_mut().pop_front();
        piece.or_else(|| {
            let gathered = self.gathered.take();
            (!gathered.is_empty()).then(|| (Kind::Data, gathered.into()))
        })
    }

    pub fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Result<(Kind, Bytes), End>> {
        if let Some(next) = self.next() {
            return Poll::Ready(next);
        }
        *self.waker.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }

    /// The client has taken so much of what was held. Returns for how many bytes the handler gets credit: mostly none.
    /// It may send further ahead of a client that has taken all there is, while there is memory in plenty.
    pub fn consumed(&self, bytes: usize) -> usize {
        let held = self.held.get() - bytes;
        self.held.set(held);
        let mut share = self.share.borrow_mut();
        share.set(if held > FREE_BYTES { held } else { 0 });
        let uncredited = self.uncredited.get() + bytes;
        if uncredited < self.window.half() {
            self.uncredited.set(uncredited);
            return 0;
        }
        self.uncredited.set(0);
        let may_widen = held == 0 && !self.is_socket && share.is_plentiful();
        let credit = self.window.credit_for(uncredited, may_widen);
        self.credit.set(self.credit.get() + credit);
        credit
    }
}

#[cfg(test)]
impl StreamBuffer {
    /// What the client takes next, it takes at once.
    pub fn client_is_quick(&self) {
        self.window.begin(std::time::Instant::now() + std::time::Duration::from_secs(60));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::memory::MemoryBudget;

    fn arrived(memory: usize) -> Rc<StreamBuffer> {
        StreamBuffer::new(MemoryShare::new(Arc::new(MemoryBudget::new(memory)), None), false)
    }

    fn push(arrived: &StreamBuffer, piece: &[u8]) -> Result<(), PushError> {
        arrived.push(Kind::Data, Payload::Borrowed(piece))
    }

    fn next(arrived: &StreamBuffer) -> Poll<Result<Bytes, End>> {
        arrived.poll_next(&mut Context::from_waker(Waker::noop())).map(|next| next.map(|(_, piece)| piece))
    }

    #[test]
    fn small_pieces_that_nobody_takes_become_few() {
        let stream = arrived(INITIAL_CREDIT);
        for _ in 0..INITIAL_CREDIT {
            push(&stream, b"x").unwrap();
        }
        assert_eq!(push(&stream, b"x"), Err(PushError::BeyondCredit));
        let pieces = std::iter::from_fn(|| stream.next_piece()).count();
        assert_eq!((pieces, stream.credit()), (INITIAL_CREDIT / MAX_DATA_BYTES, 0));
    }

    #[test]
    fn the_window_grows_while_all_is_taken_and_memory_is_plentiful() {
        const HALF: usize = INITIAL_CREDIT / 2;
        let whole = Arc::new(MemoryBudget::new(2 * INITIAL_CREDIT));
        let taken = |rest: usize, others: usize, is_socket: bool| {
            let stream = StreamBuffer::new(MemoryShare::new(whole.clone(), None), is_socket);
            let mut of_others = MemoryShare::new(whole.clone(), None);
            for length in [HALF, rest] {
                stream.push(Kind::Data, Payload::Borrowed(&vec![7; length])).unwrap();
            }
            assert!(of_others.set(others));
            stream.client_is_quick();
            stream.consumed(HALF)
        };
        assert_eq!(taken(0, INITIAL_CREDIT, false), HALF + INITIAL_CREDIT);
        assert_eq!(taken(0, INITIAL_CREDIT + 1, false), HALF);
        assert_eq!(taken(1, 0, false), HALF);
        assert_eq!(taken(0, 0, true), HALF);
    }

    #[test]
    fn nothing_of_a_stream_is_left_when_its_time_is_up() {
        let stream = arrived(0);
        push(&stream, b"a").unwrap();
        stream.end(End::Drained(HANDLER_DRAINED));
        assert_eq!(next(&stream), Poll::Ready(Err(End::Drained(HANDLER_DRAINED))));
    }

    #[test]
    fn nothing_counts_after_the_close_of_a_socket() {
        let stream = StreamBuffer::new(MemoryShare::new(Arc::new(MemoryBudget::new(0)), None), true);
        for _ in 0..3 {
            stream.push(Kind::Close, Payload::Borrowed(&[3, 232])).unwrap();
        }
        assert!(stream.next_piece().is_some() && stream.next_piece().is_none());
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
        assert_eq!(push(&stream, b"x"), Err(PushError::BeyondCredit));
    }

    #[test]
    fn arrived_bytes_take_memory_and_give_it_back() {
        let stream = arrived(FREE_BYTES + 10);
        let piece = vec![7; FREE_BYTES / 2];
        for _ in 0..2 {
            push(&stream, &piece).unwrap();
        }
        push(&stream, b"0123456789").unwrap();
        assert!(matches!(next(&stream), Poll::Ready(Ok(_))));
        stream.consumed(piece.len());
        push(&stream, &piece).unwrap();
        assert_eq!(push(&stream, b"x"), Err(PushError::OutOfMemory));
        for _ in 0..3 {
            assert!(matches!(next(&stream), Poll::Ready(Ok(_))));
        }
        assert_eq!(next(&stream), Poll::Ready(Err(End::Broken(OUT_OF_MEMORY.into()))));
    }
}
