//! The line of a WebSocket that a handler serves: who may send, and how it ends.

use super::answer::{Answer, OutgoingAnswer};
#[cfg(feature = "async")]
use super::asynchronous::connection::TaskSocket;
use super::body_source::BodySource;
use super::streaming::last_frame;
use super::streams::StreamId;
use super::threads::lock;
use super::waiting::Waiter;
use super::{panics, records};
use crate::error::HandlerError;
use crate::response::Response;
use crate::websocket::message::CloseFrame;
use crate::wire::frame::{cost, header, Kind, MAX_DATA_BYTES};
use crate::wire::head::SWITCHING;
use std::io;
use std::sync::Mutex;

/// Why a socket ends before its end, for the gateway. The log has the details.
const FAILED: &str = "its handler has failed";
const REFUSED: u16 = 1008;
const DONE: u16 = 1000;

/// The connection of a socket.
pub enum SocketLink {
    /// The connection of a thread.
    Connection(Waiter, u32),
    /// The connection of tasks.
    #[cfg(feature = "async")]
    Task(TaskSocket),
}

impl SocketLink {
    /// That of the socket whose messages a body brings; none of a request that has come whole.
    pub fn of(body: &BodySource) -> Option<Self> {
        match body {
            BodySource::Connection(body) => {
                let (waiter, number) = body.origin();
                Some(SocketLink::Connection(waiter, number))
            }
            #[cfg(feature = "async")]
            BodySource::Task(body) => Some(SocketLink::Task(body.socket())),
            BodySource::Whole(_) | BodySource::HasReader => None,
        }
    }

    /// Sends the head that accepts a socket. `None` if it cannot be sent, and a 500 is the answer.
    fn accept(&self, head: &Response) -> Option<StreamId> {
        match self {
            SocketLink::Connection(Waiter { workers, connection }, number) => {
                let stream = connection.begin_socket(*number, head);
                // It takes as long as its client likes.
                workers.request_thread(connection);
                stream
            }
            #[cfg(feature = "async")]
            SocketLink::Task(socket) => socket.accept(head),
        }
    }

    /// Waits until so many bytes may be sent.
    fn take(&self, id: StreamId, bytes: usize) -> io::Result<()> {
        match self {
            SocketLink::Connection(waiter, _) => {
                waiter.look();
                waiter.wait_for(|table| Ok(table.take_all(id, bytes)?.then_some(())))
            }
            #[cfg(feature = "async")]
            SocketLink::Task(_) => Err(io::Error::other("this WebSocket is one of handler_ws_async!")),
        }
    }

    fn write(&self, kind: Kind, payload: &[u8]) {
        match self {
            SocketLink::Connection(Waiter { connection, .. }, number) => {
                connection.write_frame(&header(kind, *number, 0, payload.len()), payload);
            }
            #[cfg(feature = "async")]
            SocketLink::Task(socket) => socket.write(kind, payload),
        }
    }

    /// Whether nobody wants it any more.
    fn is_over(&self, id: StreamId) -> bool {
        match self {
            SocketLink::Connection(waiter, _) => {
                waiter.look();
                waiter.connection.streams.is_over(id)
            }
            #[cfg(feature = "async")]
            SocketLink::Task(socket) => socket.is_over(id),
        }
    }

    fn number(&self) -> u32 {
        match self {
            SocketLink::Connection(_, number) => *number,
            #[cfg(feature = "async")]
            SocketLink::Task(socket) => socket.number(),
        }
    }
}

/// How far a socket has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The client has requested it.
    Requested,
    Open,
    /// This side has closed it.
    Closed,
    /// Its number may belong to another request.
    Over,
}

struct LineState {
    phase: Phase,
    /// What is sent, once the socket is accepted.
    stream: Option<StreamId>,
    /// The answer that accepts it.
    head: Response,
    /// The one that does not.
    refusal: Option<Response>,
}

/// What all parts of a socket share.
pub struct Line {
    link: SocketLink,
    state: Mutex<LineState>,
    /// Held while a message is sent: the pieces of two do not mix.
    turn: Mutex<()>,
    #[cfg(feature = "async")]
    async_turn: tokio::sync::Mutex<()>,
}

impl Line {
    /// That of a socket which a client requests.
    pub fn new(link: SocketLink) -> Self {
        let state = LineState { phase: Phase::Requested, stream: None, head: Response::new(SWITCHING), refusal: None };
        Line {
            link,
            state: Mutex::new(state),
            turn: Mutex::default(),
            #[cfg(feature = "async")]
            async_turn: tokio::sync::Mutex::default(),
        }
    }

    /// Changes the answer that accepts the socket.
    pub fn change_head(&self, change: impl FnOnce(Response) -> Response) {
        let mut state = lock(&self.state);
        state.head = change(std::mem::replace(&mut state.head, Response::new(SWITCHING)));
    }

    /// Answers with a response instead, or closes a socket that is accepted, when the function returns.
    pub fn refuse(&self, response: Response) {
        lock(&self.state).refusal = Some(response);
    }

    /// Accepts the socket, unless it is.
    ///
    /// # Errors
    /// `BrokenPipe` when it has ended.
    pub fn accept(&self) -> io::Result<()> {
        let mut state = lock(&self.state);
        if state.phase == Phase::Requested && state.refusal.is_none() {
            state.stream = self.link.accept(&state.head);
            state.phase = if state.stream.is_some() { Phase::Open } else { Phase::Over };
        }
        match state.phase {
            Phase::Open | Phase::Closed => Ok(()),
            Phase::Requested | Phase::Over => Err(closed()),
        }
    }

    /// Sends a message.
    ///
    /// # Errors
    /// `BrokenPipe` when it is not wanted any more.
    pub fn send(&self, kind: Kind, payload: &[u8]) -> io::Result<()> {
        let _turn = lock(&self.turn);
        let id = self.begin(kind)?;
        for (kind, piece) in pieces(kind, payload) {
            self.link.take(id, cost(kind, piece.len()))?;
            self.link.write(kind, piece);
        }
        Ok(())
    }

    /// The same for a task.
    ///
    /// # Errors
    /// See [`Line::send`].
    #[cfg(feature = "async")]
    pub async fn send_async(&self, kind: Kind, payload: &[u8]) -> io::Result<()> {
        let SocketLink::Task(socket) = &self.link else {
            return Err(io::Error::other("this WebSocket is one of handler_ws!"));
        };
        let _turn = self.async_turn.lock().await;
        let id = self.begin(kind)?;
        let mut half_sent = HalfSent { line: self, is_so: false };
        for (kind, piece) in pieces(kind, payload) {
            socket.take(id, cost(kind, piece.len())).await?;
            socket.write(kind, piece);
            half_sent.is_so = kind == Kind::Data;
        }
        Ok(())
    }

    /// Resolves when nobody wants the socket any more.
    #[cfg(feature = "async")]
    pub async fn over(&self) {
        let stream = lock(&self.state).stream;
        if let (SocketLink::Task(socket), Some(id)) = (&self.link, stream) {
            socket.over(id).await;
        }
    }

    fn begin(&self, kind: Kind) -> io::Result<StreamId> {
        self.accept()?;
        let mut state = lock(&self.state);
        let id = state.stream.filter(|_| state.phase == Phase::Open).ok_or_else(closed)?;
        if kind == Kind::Close {
            state.phase = Phase::Closed;
        }
        Ok(id)
    }

    /// Whether nothing more can be sent.
    pub fn is_closed(&self) -> bool {
        let state = lock(&self.state);
        match state.phase {
            Phase::Requested => false,
            Phase::Open => state.stream.is_none_or(|id| self.link.is_over(id)),
            Phase::Closed | Phase::Over => true,
        }
    }

    /// The function has returned; `None` if it panicked.
    pub fn finish(&self, result: Option<Result<(), HandlerError>>) -> OutgoingAnswer {
        let _turn = lock(&self.turn);
        self.end(result)
    }

    /// The same for a task.
    #[cfg(feature = "async")]
    pub async fn finish_async(&self, result: Option<Result<(), HandlerError>>) -> OutgoingAnswer {
        let _turn = self.async_turn.lock().await;
        self.end(result)
    }

    fn end(&self, result: Option<Result<(), HandlerError>>) -> OutgoingAnswer {
        let mut state = lock(&self.state);
        let number = self.link.number();
        let refusal = state.refusal.take();
        let phase = std::mem::replace(&mut state.phase, Phase::Over);
        match (phase, result) {
            (Phase::Over, _) => OutgoingAnswer::Socket(Vec::new()),
            (Phase::Requested, None) => panics::answer(),
            (Phase::Requested, Some(Err(error))) => Response::from(error).into_outgoing(),
            (Phase::Requested, Some(Ok(()))) => match refusal {
                Some(response) => response.into_outgoing(),
                None if self.link.accept(&state.head).is_none() => OutgoingAnswer::Socket(Vec::new()),
                None => OutgoingAnswer::Socket(last_frames(number, Some(DONE))),
            },
            (Phase::Open, Some(Ok(()))) => {
                OutgoingAnswer::Socket(last_frames(number, Some(if refusal.is_some() { REFUSED } else { DONE })))
            }
            (Phase::Closed, Some(Ok(()))) => OutgoingAnswer::Socket(last_frames(number, None)),
            (_, failed) => {
                let is_over = state.stream.is_none_or(|id| self.link.is_over(id));
                if let Some(Err(error)) = failed.filter(|_| !is_over) {
                    records::error(&format!("a WebSocket has failed: {error}"), serde_json::Map::new());
                }
                OutgoingAnswer::Socket(last_frame(number, Err(if is_over { String::new() } else { FAILED.to_owned() })))
            }
        }
    }
}

/// A message that a task sends. If the task is dropped in the middle of it, nothing may follow.
#[cfg(feature = "async")]
struct HalfSent<'a> {
    line: &'a Line,
    is_so: bool,
}

#[cfg(feature = "async")]
impl Drop for HalfSent<'_> {
    fn drop(&mut self) {
        if self.is_so {
            lock(&self.line.state).phase = Phase::Closed;
        }
    }
}

/// The close, unless there was one, and the end.
fn last_frames(number: u32, code: Option<u16>) -> Vec<u8> {
    let mut frames = Vec::new();
    if let Some(code) = code {
        let payload = CloseFrame::new(code, "").into_payload();
        frames.extend_from_slice(&header(Kind::Close, number, 0, payload.len()));
        frames.extend_from_slice(&payload);
    }
    frames.extend_from_slice(&last_frame(number, Ok(())));
    frames
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the WebSocket is closed")
}

/// The frames of a message: the last one has its kind.
fn pieces(kind: Kind, payload: &[u8]) -> impl Iterator<Item = (Kind, &[u8])> {
    let count = payload.len().div_ceil(MAX_DATA_BYTES).max(1);
    (0..count).map(move |at| {
        let rest = &payload[at * MAX_DATA_BYTES..];
        match at + 1 == count {
            true => (kind, rest),
            false => (Kind::Data, &rest[..MAX_DATA_BYTES]),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_cut_into_pieces() {
        let kinds = |length: usize| {
            let payload = vec![0; length];
            pieces(Kind::Text, &payload).map(|(kind, piece)| (kind, piece.len())).collect::<Vec<_>>()
        };
        assert_eq!(kinds(0), [(Kind::Text, 0)]);
        assert_eq!(kinds(MAX_DATA_BYTES), [(Kind::Text, MAX_DATA_BYTES)]);
        assert_eq!(kinds(MAX_DATA_BYTES + 1), [(Kind::Data, MAX_DATA_BYTES), (Kind::Text, 1)]);
    }
}
