//! What tasks read and write of a connection with the gateway: answers, the bodies of requests, WebSockets.

use crate::response::Response;
use crate::runtime::bodies::{BodyId, BodyPart, ReceivedPiece};
use crate::runtime::streams::{StreamId, Streams};
use crate::runtime::workers::blocking;
use crate::wire::frame::{credit, header, Kind};
use crate::wire::head;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinHandle;

/// A connection with the gateway as tasks have it: where their answers go, and the credit of its streams.
#[derive(Clone)]
pub struct TaskConnection {
    sender: UnboundedSender<WriterMessage>,
    pub streams: Arc<Streams>,
}

/// What the task that writes gets.
pub enum WriterMessage {
    Answer(u32, Response),
    /// Frames of a stream.
    Frames(Vec<u8>),
}

impl TaskConnection {
    /// Also starts the task that writes.
    pub fn new(stream: OwnedWriteHalf) -> (Self, JoinHandle<()>) {
        let (sender, messages) = unbounded_channel();
        (TaskConnection { sender, streams: Arc::default() }, tokio::spawn(write(stream, messages)))
    }

    /// Sends the head of a stream or of a WebSocket; or, if it is none, a whole answer that says so.
    pub fn begin(&self, number: u32, head: Vec<u8>, is_stream: bool) -> Option<StreamId> {
        // Credit may come as soon as the head is written.
        let id = is_stream.then(|| self.streams.open(number));
        if id.is_none() {
            self.streams.answered(number);
        }
        self.send(WriterMessage::Frames(head));
        id
    }

    /// Tells the gateway that it may send so many more bytes of a request's body; nothing if it is 0.
    pub fn give_credit(&self, number: u32, bytes: u32) {
        if bytes > 0 {
            self.send(WriterMessage::Frames(credit(number, bytes).to_vec()));
        }
    }

    pub fn send(&self, message: WriterMessage) {
        // Fails only if the connection is closed.
        let _ = self.sender.send(message);
    }
}

/// Writes all answers that are ready at once.
async fn write(mut stream: OwnedWriteHalf, mut messages: UnboundedReceiver<WriterMessage>) {
    const MOST_AT_ONCE: usize = 256;
    let mut ready = Vec::new();
    let mut out = Vec::new();
    while messages.recv_many(&mut ready, MOST_AT_ONCE).await > 0 {
        for message in ready.drain(..) {
            match message {
                WriterMessage::Answer(number, response) => {
                    let body = head::response(&mut out, number, response);
                    out.extend_from_slice(&body);
                }
                WriterMessage::Frames(frames) => out.extend_from_slice(&frames),
            }
        }
        if stream.write_all(&out).await.is_err() {
            return;
        }
        out = Vec::new();
    }
}

/// The body of a request, which arrives on a connection.
pub struct TaskBody {
    connection: TaskConnection,
    id: BodyId,
}

impl TaskBody {
    /// That of a request which has just come.
    pub fn open(connection: &TaskConnection, number: u32) -> Self {
        TaskBody { connection: connection.clone(), id: connection.streams.open_body(number) }
    }

    /// The next piece, which is waited for, and what it is; `None` at the end.
    ///
    /// # Errors
    /// `ConnectionAborted` when the body has no end.
    pub fn next(&mut self) -> io::Result<ReceivedPiece> {
        // The task that reads the connection may be one of this thread.
        blocking(|| self.connection.streams.take_of_body(self.id)).map(|part| self.credited(part))
    }

    /// The same for a task.
    pub fn poll_next(&mut self, context: &Context<'_>) -> Poll<io::Result<ReceivedPiece>> {
        self.connection.streams.poll_of_body(self.id, context).map_ok(|part| self.credited(part))
    }

    /// The connection of the socket whose messages it brings.
    pub fn socket(&self) -> TaskSocket {
        TaskSocket { connection: self.connection.clone(), number: self.id.number }
    }

    fn credited(&self, part: BodyPart) -> ReceivedPiece {
        let BodyPart::Piece { kind, bytes, credit } = part else { return None };
        self.connection.give_credit(self.id.number, credit);
        Some((kind, bytes))
    }
}

impl Drop for TaskBody {
    fn drop(&mut self) {
        let credit = self.connection.streams.close_body(self.id);
        self.connection.give_credit(self.id.number, credit);
    }
}

/// The connection of a WebSocket.
pub struct TaskSocket {
    connection: TaskConnection,
    number: u32,
}

impl TaskSocket {
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Sends the head that accepts the socket. `None` if it cannot be sent, and a 500 is the answer.
    pub fn accept(&self, head: &Response) -> Option<StreamId> {
        let mut begin = Vec::new();
        let is_accepted = head::socket(&mut begin, self.number, head);
        self.connection.begin(self.number, begin, is_accepted)
    }

    /// Waits until so many bytes may be sent.
    pub async fn take(&self, id: StreamId, bytes: usize) -> io::Result<()> {
        poll_fn(|context| self.connection.streams.poll_take_all(id, bytes, context)).await
    }

    pub fn write(&self, kind: Kind, payload: &[u8]) {
        let frame = [&header(kind, self.number, 0, payload.len())[..], payload].concat();
        self.connection.send(WriterMessage::Frames(frame));
    }

    /// Whether nobody wants it any more.
    pub fn is_over(&self, id: StreamId) -> bool {
        self.connection.streams.is_over(id)
    }

    /// Resolves when nobody wants it any more.
    pub async fn over(&self, id: StreamId) {
        self.connection.streams.over(id).await;
    }
}
