//! [`WebSocket`]: messages in both directions, for as long as both sides like.

use crate::error::HandlerError;
use crate::request::Request;
use crate::response::Response;
use crate::runtime::body_source::BodySource;
use crate::runtime::socket_line::Line;
use std::io;
use std::sync::Arc;

#[cfg(feature = "async")]
pub mod asynchronous;
pub mod message;

use message::{Assembler, CloseFrame, Message};

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
