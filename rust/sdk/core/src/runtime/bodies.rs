//! The bodies of requests that arrive piece by piece on a connection, and what their readers have not taken yet.

use crate::wire::frame::{cost, Frame, Kind, INITIAL_CREDIT, MAX_DATA_BYTES};
use crate::wire::takes::Takes;
use std::collections::{HashMap, VecDeque};
use std::io;
#[cfg(feature = "async")]
use std::task::{Context, Waker};

/// Credit is given back when the reader has taken so much: less would be many small frames.
const CREDITED_BYTES: usize = INITIAL_CREDIT / 2;

/// Whether a frame begins a request whose body follows.
///
/// # Errors
/// A sentence for the log: the handler does not take such requests.
pub fn is_opening(kind: Kind, takes: Takes) -> Result<bool, String> {
    match kind {
        Kind::Open if takes == Takes::Whole => {
            Err("a request whose body follows, which this handler does not take".into())
        }
        _ => Ok(kind == Kind::Open),
    }
}

/// The bodies that the runtime wants more of.
#[derive(Default)]
pub struct Bodies {
    by_number: HashMap<u32, ArrivingBody>,
    opened: u64,
}

/// A body, whatever the number of its request is used for later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyId {
    /// The number of its request.
    pub number: u32,
    opened: u64,
}

struct ArrivingBody {
    id: BodyId,
    /// Also messages of a WebSocket.
    pieces: VecDeque<(Kind, Vec<u8>)>,
    end: Option<Ending>,
    /// What the reader has taken, and the gateway has no credit for yet.
    uncredited: usize,
    /// Nobody reads it any more: what comes is dropped, as if it were read.
    is_dropped: bool,
    /// Tasks that wait for a piece.
    #[cfg(feature = "async")]
    wakers: Vec<Waker>,
}

enum Ending {
    Complete,
    /// Why there is no more of it.
    Broken(String),
}

/// What has come: a piece of a body or of a message, and its kind. `None` at the end.
pub type ReceivedPiece = Option<(Kind, Vec<u8>)>;

/// What a reader gets.
#[derive(Debug, PartialEq, Eq)]
pub enum BodyPart {
    Piece {
        kind: Kind,
        bytes: Vec<u8>,
        /// The gateway is to be told that it may send so many more bytes; 0 for nothing.
        credit: u32,
    },
    /// The body is complete.
    End,
}

impl Bodies {
    /// Begins the body of a request.
    pub fn open(&mut self, number: u32) -> BodyId {
        self.opened += 1;
        let id = BodyId { number, opened: self.opened };
        let body = ArrivingBody {
            id,
            pieces: VecDeque::new(),
            end: None,
            uncredited: 0,
            is_dropped: false,
            #[cfg(feature = "async")]
            wakers: Vec::new(),
        };
        self.by_number.insert(number, body);
        id
    }

    /// Takes a piece, the end or the reset of a body. Those of a request that has been answered are dropped. Returns
    /// how many more bytes the gateway is to be told that it may send, for what comes of a body that nobody reads.
    pub fn take_frame(&mut self, frame: &Frame<'_>) -> u32 {
        let Some(body) = self.by_number.get_mut(&frame.number) else { return 0 };
        match frame.kind {
            Kind::Data if frame.body.is_empty() => {}
            Kind::Data | Kind::Text | Kind::Binary | Kind::Ping | Kind::Pong | Kind::Close => {
                body.add(frame.kind, frame.body);
            }
            Kind::End => body.end = Some(Ending::Complete),
            _ => body.end = Some(Ending::Broken(String::from_utf8_lossy(frame.body).into_owned())),
        }
        body.wake();
        body.due_credit()
    }

    /// The next piece, or the end once all pieces were taken; `None` while neither has come.
    ///
    /// # Errors
    /// `ConnectionAborted` when the body has no end, and when the request has been answered.
    pub fn take(&mut self, id: BodyId) -> io::Result<Option<BodyPart>> {
        let Some(body) = self.by_number.get_mut(&id.number).filter(|body| body.id == id) else {
            return Err(aborted("its request has been answered"));
        };
        match (body.pieces.pop_front(), &body.end) {
            (Some((kind, bytes)), _) => {
                body.uncredited += cost(kind, bytes.len());
                Ok(Some(BodyPart::Piece { kind, bytes, credit: body.due_credit() }))
            }
            (None, Some(Ending::Complete)) => Ok(Some(BodyPart::End)),
            (None, Some(Ending::Broken(reason))) => Err(aborted(reason)),
            (None, None) => Ok(None),
        }
    }

    /// Nobody reads any more of a body, though its request may not be answered for long: what has come, and what still
    /// comes, counts as read, or the gateway would wait for that. Returns what [`Bodies::take_frame`] does.
    pub fn close(&mut self, id: BodyId) -> u32 {
        let Some(body) = self.by_number.get_mut(&id.number).filter(|body| body.id == id) else { return 0 };
        body.is_dropped = true;
        let unread = std::mem::take(&mut body.pieces);
        body.uncredited += unread.iter().map(|(kind, bytes)| cost(*kind, bytes.len())).sum::<usize>();
        body.due_credit()
    }

    /// The request of this number has been answered.
    pub fn remove(&mut self, number: u32) {
        if let Some(mut body) = self.by_number.remove(&number) {
            body.wake();
        }
    }

    /// The connection is closed: no more comes.
    pub fn close_all(&mut self) {
        for body in self.by_number.values_mut() {
            body.end.get_or_insert_with(|| Ending::Broken("the gateway has closed its connection".to_owned()));
            body.wake();
        }
    }

    /// Wakes a task when there is more of a body, or its end.
    #[cfg(feature = "async")]
    pub fn wake_later(&mut self, id: BodyId, context: &Context<'_>) {
        let Some(body) = self.by_number.get_mut(&id.number) else { return };
        if !body.wakers.iter().any(|waker| waker.will_wake(context.waker())) {
            body.wakers.push(context.waker().clone());
        }
    }
}

impl ArrivingBody {
    /// Data joins the piece before it, if that is data and not long: or tiny pieces would take many times the memory
    /// that credit allows.
    fn add(&mut self, kind: Kind, bytes: &[u8]) {
        if self.is_dropped {
            self.uncredited += cost(kind, bytes.len());
            return;
        }
        match self.pieces.back_mut() {
            Some((Kind::Data, last)) if kind == Kind::Data && last.len() + bytes.len() <= MAX_DATA_BYTES => {
                last.extend_from_slice(bytes);
            }
            _ => self.pieces.push_back((kind, bytes.to_vec())),
        }
    }

    /// How many more bytes the gateway is to be told that it may send, if there are enough to say so.
    fn due_credit(&mut self) -> u32 {
        match self.end.is_none() && self.uncredited >= CREDITED_BYTES {
            true => std::mem::take(&mut self.uncredited) as u32,
            false => 0,
        }
    }

    fn wake(&mut self) {
        #[cfg(feature = "async")]
        self.wakers.drain(..).for_each(Waker::wake);
    }
}

fn aborted(reason: &str) -> io::Error {
    let text = match reason {
        "" => "the rest of the request body does not come".to_owned(),
        _ => format!("the rest of the request body does not come: {reason}"),
    };
    io::Error::new(io::ErrorKind::ConnectionAborted, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(bodies: &mut Bodies, kind: Kind, number: u32, body: &[u8]) {
        bodies.take_frame(&Frame { kind, number, head: b"", body });
    }

    /// A frame of one piece, and the credit for it.
    fn credit_for(bodies: &mut Bodies, kind: Kind, body: &[u8]) -> usize {
        bodies.take_frame(&Frame { kind, number: 7, head: b"", body }) as usize
    }

    fn piece(bytes: &[u8]) -> Option<BodyPart> {
        Some(BodyPart::Piece { kind: Kind::Data, bytes: bytes.to_vec(), credit: 0 })
    }

    #[test]
    fn pieces_come_before_the_end() {
        let mut bodies = Bodies::default();
        let id = bodies.open(7);
        assert_eq!(bodies.take(id).unwrap(), None);
        send(&mut bodies, Kind::Data, 7, b"one");
        send(&mut bodies, Kind::Data, 7, b"");
        send(&mut bodies, Kind::End, 7, b"");
        assert_eq!(bodies.take(id).unwrap(), piece(b"one"));
        assert_eq!(bodies.take(id).unwrap(), Some(BodyPart::End));
    }

    #[test]
    fn credit_is_given_for_what_was_taken_but_not_at_the_end() {
        let mut bodies = Bodies::default();
        let id = bodies.open(7);
        let count = INITIAL_CREDIT / MAX_DATA_BYTES;
        for _ in 0..count {
            send(&mut bodies, Kind::Data, 7, &[1; MAX_DATA_BYTES]);
        }
        let mut take = || match bodies.take(id).unwrap() {
            Some(BodyPart::Piece { credit, .. }) => credit as usize,
            other => panic!("{other:?}"),
        };
        let credit: Vec<_> = (0..count / 2).map(|_| take()).collect();
        assert_eq!((credit.iter().sum::<usize>(), credit.last()), (CREDITED_BYTES, Some(&CREDITED_BYTES)));
        send(&mut bodies, Kind::End, 7, b"");
        for _ in 0..count / 2 {
            assert!(matches!(bodies.take(id).unwrap(), Some(BodyPart::Piece { credit: 0, .. })));
        }
    }

    #[test]
    fn what_comes_without_a_reader_counts_as_read_until_the_end() {
        let mut bodies = Bodies::default();
        let id = bodies.open(7);
        let count = CREDITED_BYTES / MAX_DATA_BYTES;
        for _ in 0..=count {
            assert_eq!(credit_for(&mut bodies, Kind::Data, &[1; MAX_DATA_BYTES]), 0);
        }
        assert_eq!(bodies.close(id) as usize, CREDITED_BYTES + MAX_DATA_BYTES);
        let credit = (0..count).map(|_| credit_for(&mut bodies, Kind::Data, &[1; MAX_DATA_BYTES]));
        let credit: Vec<_> = credit.collect();
        assert_eq!((credit.iter().sum::<usize>(), credit.last()), (CREDITED_BYTES, Some(&CREDITED_BYTES)));
        // Messages count with their headers.
        let messages = CREDITED_BYTES / cost(Kind::Text, 0);
        assert_eq!((1..messages).map(|_| credit_for(&mut bodies, Kind::Text, b"")).sum::<usize>(), 0);
        assert_eq!(credit_for(&mut bodies, Kind::Text, b""), CREDITED_BYTES);
        assert!(bodies.by_number[&7].pieces.is_empty());
        send(&mut bodies, Kind::End, 7, b"");
        bodies.remove(7);
        assert_eq!(bodies.close(id), 0);
    }

    #[test]
    fn tiny_pieces_are_joined() {
        let mut bodies = Bodies::default();
        let id = bodies.open(7);
        for n in 0..INITIAL_CREDIT {
            send(&mut bodies, Kind::Data, 7, &[n as u8]);
        }
        assert_eq!(bodies.by_number[&7].pieces.len(), INITIAL_CREDIT / MAX_DATA_BYTES);
        let mut whole = Vec::new();
        while let Some(BodyPart::Piece { bytes, .. }) = bodies.take(id).unwrap() {
            whole.extend(bytes);
        }
        assert!(whole.len() == INITIAL_CREDIT && whole.iter().enumerate().all(|(n, &byte)| byte == n as u8));
    }

    #[test]
    fn messages_are_not_joined() {
        let mut bodies = Bodies::default();
        let id = bodies.open(7);
        let frames = [
            (Kind::Data, "a"),
            (Kind::Data, "b"),
            (Kind::Ping, "ping"),
            (Kind::Data, "c"),
            (Kind::Text, "d"),
            (Kind::Data, "e"),
            (Kind::Binary, "f"),
            (Kind::Binary, "g"),
        ];
        for (kind, payload) in frames {
            send(&mut bodies, kind, 7, payload.as_bytes());
        }
        let mut parts = Vec::new();
        while let Some(BodyPart::Piece { kind, bytes, .. }) = bodies.take(id).unwrap() {
            parts.push((kind, String::from_utf8(bytes).unwrap()));
        }
        let rest = frames[2..].iter().map(|&(kind, payload)| (kind, payload.to_owned()));
        assert_eq!(parts, [(Kind::Data, "ab".to_owned())].into_iter().chain(rest).collect::<Vec<_>>());
    }

    #[test]
    fn a_broken_body_says_why() {
        let mut bodies = Bodies::default();
        let (left, cut) = (bodies.open(1), bodies.open(2));
        send(&mut bodies, Kind::Data, 1, b"some");
        send(&mut bodies, Kind::Reset, 1, b"the client has left");
        assert_eq!(bodies.take(left).unwrap(), piece(b"some"));
        let error = bodies.take(left).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
        assert!(error.to_string().ends_with("the client has left"));
        bodies.close_all();
        assert!(bodies.take(cut).unwrap_err().to_string().contains("closed its connection"));
    }

    #[test]
    fn an_earlier_reader_gets_nothing_of_the_next_request() {
        let mut bodies = Bodies::default();
        let before = bodies.open(1);
        bodies.remove(1);
        send(&mut bodies, Kind::Data, 1, b"dropped");
        let now = bodies.open(1);
        send(&mut bodies, Kind::Data, 1, b"new");
        assert!(bodies.take(before).unwrap_err().to_string().contains("answered"));
        bodies.close(before);
        assert_eq!(bodies.take(now).unwrap(), piece(b"new"));
    }
}
