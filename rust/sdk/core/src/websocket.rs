//! [`WebSocket`]: messages in both directions, for as long as both sides like.

use crate::runtime::body_source::BodySource;
use crate::runtime::socket::Line;
use crate::wire::frame::{Kind, MAX_CONTROL_BYTES};
use crate::{HandlerError, Request, Response};
use std::io;
use std::sync::Arc;

#[cfg(feature = "async")]
mod asynchronous;
#[cfg(feature = "async")]
pub use asynchronous::{AsyncSocketReceiver, AsyncSocketSender, AsyncWebSocket};

/// Longest reason of a [`CloseFrame`], in bytes of UTF-8; a longer one is cut.
const MAX_REASON_BYTES: usize = MAX_CONTROL_BYTES - 2;

/// A message of a WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Text.
    Text(String),
    /// Any bytes.
    Binary(Vec<u8>),
    /// Asks the client for a [`Message::Pong`] with the same bytes, at most 125. It is only sent: the gateway answers
    /// those of clients, and asks by itself whether a client is there.
    Ping(Vec<u8>),
    /// The answer of the client to the last [`Message::Ping`] of this handler. One that is sent asks for nothing.
    Pong(Vec<u8>),
    /// Ends the socket: nothing follows in this direction. Clients that leave without it end it, too.
    Close(Option<CloseFrame>),
}

/// Why a WebSocket is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloseFrame {
    /// 1000: it has done its work. 4000 to 4999 are for applications (RFC 6455, section 7.4).
    pub code: u16,
    /// At most 123 bytes; a longer one is cut.
    pub reason: String,
}

impl CloseFrame {
    /// Makes one.
    pub fn new(code: u16, reason: impl Into<String>) -> Self {
        CloseFrame { code, reason: reason.into() }
    }
}

impl From<&str> for Message {
    fn from(text: &str) -> Self {
        Message::Text(text.to_owned())
    }
}

impl From<String> for Message {
    fn from(text: String) -> Self {
        Message::Text(text)
    }
}

impl From<Vec<u8>> for Message {
    fn from(bytes: Vec<u8>) -> Self {
        Message::Binary(bytes)
    }
}

impl Message {
    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Message::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What it is on the wire, and its payload.
    fn into_frame(self) -> io::Result<(Kind, Vec<u8>)> {
        let (kind, payload) = match self {
            Message::Text(text) => (Kind::Text, text.into_bytes()),
            Message::Binary(bytes) => (Kind::Binary, bytes),
            Message::Ping(bytes) => (Kind::Ping, bytes),
            Message::Pong(bytes) => (Kind::Pong, bytes),
            Message::Close(frame) => (Kind::Close, frame.map_or(Vec::new(), CloseFrame::into_payload)),
        };
        if matches!(kind, Kind::Ping | Kind::Pong) && payload.len() > MAX_CONTROL_BYTES {
            let text =
                format!("a ping or a pong has at most {MAX_CONTROL_BYTES} bytes, and this one {}", payload.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        Ok((kind, payload))
    }
}

impl CloseFrame {
    pub(crate) fn into_payload(mut self) -> Vec<u8> {
        let mut length = self.reason.len().min(MAX_REASON_BYTES);
        while !self.reason.is_char_boundary(length) {
            length -= 1;
        }
        self.reason.truncate(length);
        [&self.code.to_be_bytes()[..], self.reason.as_bytes()].concat()
    }

    fn of_payload(payload: &[u8]) -> Option<Self> {
        let [high, low, reason @ ..] = payload else { return None };
        Some(CloseFrame::new(u16::from_be_bytes([*high, *low]), String::from_utf8_lossy(reason)))
    }
}

/// Makes messages of frames.
#[derive(Default)]
struct Assembler {
    message: Vec<u8>,
}

impl Assembler {
    /// Takes a frame; the message that it completes.
    fn take(&mut self, (kind, payload): (Kind, Vec<u8>)) -> Option<Message> {
        Some(match kind {
            Kind::Ping => Message::Ping(payload),
            Kind::Pong => Message::Pong(payload),
            Kind::Close => Message::Close(CloseFrame::of_payload(&payload)),
            _ => {
                let mut message = std::mem::take(&mut self.message);
                if message.is_empty() {
                    message = payload;
                } else {
                    message.extend_from_slice(&payload);
                }
                match kind {
                    // The gateway has checked that it is UTF-8.
                    Kind::Text => Message::Text(String::from_utf8_lossy(&message).into_owned()),
                    Kind::Binary => Message::Binary(message),
                    _ => {
                        self.message = message;
                        return None;
                    }
                }
            }
        })
    }
}

/// A client that asks for a WebSocket, and the socket once it is accepted: by [`WebSocket::accept`], or by the first
/// message that is sent or awaited. What [`crate::handler_ws!`] gives to its function.
///
/// ```no_run
/// use rust_edge_gateway_sdk_core::prelude::*;
///
/// fn echo(mut socket: WebSocket) -> Result<(), HandlerError> {
///     while let Some(message) = socket.recv() {
///         if let Message::Text(_) | Message::Binary(_) = message {
///             socket.send(message)?;
///         }
///     }
///     Ok(())
/// }
///
/// handler_ws!(echo);
/// ```
///
/// When the function returns, the socket is closed with 1000; with 1011 when it returns an error or panics, which is in
/// the endpoint's log, unless the client has left before. Before a socket is accepted, an error is its answer, as
/// in [`crate::handler_loop_result!`].
///
/// A socket keeps its thread: a handler has up to 48 sockets (three quarters of its threads), and answers further ones
/// with 503. Where many clients stay for long, use [`crate::handler_ws_async!`].
pub struct WebSocket {
    request: Request,
    receiver: SocketReceiver,
    sender: SocketSender,
}

impl WebSocket {
    pub(crate) fn new(request: Request, body: BodySource, line: Arc<Line>) -> Self {
        let receiver = SocketReceiver { body, line: line.clone(), assembler: Assembler::default() };
        WebSocket { request, receiver, sender: SocketSender { line } }
    }

    /// The request that asks for the socket: its path, its headers, who sends it. It has no body.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The subprotocols that the client offers, its favourites first (`Sec-WebSocket-Protocol`).
    pub fn protocols(&self) -> Vec<&str> {
        protocols(&self.request)
    }

    /// Chooses one of the subprotocols that the client offers. Without effect on a socket that is accepted.
    pub fn with_protocol(self, protocol: impl Into<String>) -> Self {
        self.with_header("Sec-WebSocket-Protocol", protocol)
    }

    /// Sets a header of the answer that accepts the socket, such as a cookie. Without effect on one that is accepted.
    pub fn with_header(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.sender.line.change_head(|head| head.with_header(key, value));
        self
    }

    /// Answers the request with a response instead: there will be no socket.
    ///
    /// ```no_run
    /// # use rust_edge_gateway_sdk_core::prelude::*;
    /// fn serve(socket: WebSocket) -> Result<(), HandlerError> {
    ///     if socket.request().subject().is_none() {
    ///         return socket.refuse(Response::text(403, "members only"));
    ///     }
    ///     // ...
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// None; its type is that of a handler's result. Once the socket is accepted, it closes that with 1008 instead.
    pub fn refuse(self, response: Response) -> Result<(), HandlerError> {
        self.sender.line.refuse(response);
        Ok(())
    }

    /// Accepts the socket.
    ///
    /// # Errors
    /// `BrokenPipe` when the client has left, or the headers of the answer are not valid.
    pub fn accept(&self) -> io::Result<()> {
        self.sender.line.accept()
    }

    /// The next message, which is waited for; `None` when no more come: the client has closed the socket (that is a
    /// [`Message::Close`] before) or has left, or this handler is being replaced.
    pub fn recv(&mut self) -> Option<Message> {
        self.receiver.recv()
    }

    /// Sends a message, once the client has taken what was sent before.
    ///
    /// # Errors
    /// `BrokenPipe` when the client has left, or one side has closed the socket.
    pub fn send(&self, message: impl Into<Message>) -> io::Result<()> {
        self.sender.send(message)
    }

    /// Closes the socket with a code and a reason.
    ///
    /// # Errors
    /// See [`WebSocket::send`].
    pub fn close(self, code: u16, reason: impl Into<String>) -> io::Result<()> {
        self.send(Message::Close(Some(CloseFrame::new(code, reason))))
    }

    /// Whether the client has left, or one side has closed the socket: nothing more can be sent.
    pub fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Accepts the socket, and takes it apart: one thread receives while others send.
    ///
    /// ```no_run
    /// use rust_edge_gateway_sdk_core::prelude::*;
    /// use std::{thread, time::Duration};
    ///
    /// fn clock(socket: WebSocket) -> Result<(), HandlerError> {
    ///     let (sender, mut receiver) = socket.split()?;
    ///     thread::spawn(move || {
    ///         // Fails when the socket is closed.
    ///         while sender.send("tick").is_ok() {
    ///             thread::sleep(Duration::from_secs(1));
    ///         }
    ///     });
    ///     while receiver.recv().is_some() {}
    ///     Ok(())
    /// }
    ///
    /// handler_ws!(clock);
    /// ```
    ///
    /// # Errors
    /// See [`WebSocket::accept`].
    pub fn split(self) -> io::Result<(SocketSender, SocketReceiver)> {
        self.accept()?;
        Ok((self.sender, self.receiver))
    }
}

impl std::fmt::Debug for WebSocket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebSocket").field("request", &self.request).finish_non_exhaustive()
    }
}

/// Sends messages of a [`WebSocket`] that was taken apart, also from several threads: each has a clone. The socket does
/// not end with it, but with the function of the handler.
#[derive(Clone)]
pub struct SocketSender {
    line: Arc<Line>,
}

impl SocketSender {
    /// Sends a message. See [`WebSocket::send`].
    ///
    /// # Errors
    /// See there.
    pub fn send(&self, message: impl Into<Message>) -> io::Result<()> {
        let (kind, payload) = message.into().into_frame()?;
        self.line.send(kind, &payload)
    }

    /// See [`WebSocket::is_closed`].
    pub fn is_closed(&self) -> bool {
        self.line.is_closed()
    }
}

/// Receives the messages of a [`WebSocket`] that was taken apart. What comes after it was dropped is dropped, too.
pub struct SocketReceiver {
    body: BodySource,
    line: Arc<Line>,
    assembler: Assembler,
}

impl SocketReceiver {
    /// The next message. See [`WebSocket::recv`].
    pub fn recv(&mut self) -> Option<Message> {
        self.line.accept().ok()?;
        loop {
            // An error says that no more comes.
            let frame = self.body.next_frame().ok()??;
            if let Some(message) = self.assembler.take(frame) {
                return Some(message);
            }
        }
    }
}

fn protocols(request: &Request) -> Vec<&str> {
    let offered = request.header("sec-websocket-protocol").map_or("", |offered| offered.as_str());
    offered.split(',').map(str::trim).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_made_of_pieces() {
        let mut assembler = Assembler::default();
        assert_eq!(assembler.take((Kind::Data, b"he".to_vec())), None);
        assert_eq!(assembler.take((Kind::Pong, vec![1])), Some(Message::Pong(vec![1])));
        assert_eq!(assembler.take((Kind::Text, b"llo".to_vec())), Some("hello".into()));
        assert_eq!(assembler.take((Kind::Binary, vec![])), Some(vec![].into()));
        let close = Message::Close(Some(CloseFrame::new(4000, "bye")));
        let (kind, payload) = close.clone().into_frame().unwrap();
        assert_eq!(assembler.take((kind, payload)), Some(close));
        assert_eq!(assembler.take((Kind::Close, vec![])), Some(Message::Close(None)));
    }

    #[test]
    fn control_frames_are_short() {
        assert!(Message::Ping(vec![0; MAX_CONTROL_BYTES]).into_frame().is_ok());
        assert!(Message::Ping(vec![0; MAX_CONTROL_BYTES + 1]).into_frame().is_err());
        let (_, payload) = Message::Close(Some(CloseFrame::new(1000, "ä".repeat(100)))).into_frame().unwrap();
        assert!(payload.len() <= MAX_CONTROL_BYTES && std::str::from_utf8(&payload[2..]).is_ok());
    }
}
