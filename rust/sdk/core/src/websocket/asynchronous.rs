//! The same for `handler_ws_async!`.

use super::message::{Assembler, CloseFrame, Message};
use super::protocols;
use crate::error::HandlerError;
use crate::request::Request;
use crate::response::Response;
use crate::runtime::body_source::BodySource;
use crate::runtime::socket_line::Line;
use futures_core::Stream;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{ready, Context, Poll};

/// A [`super::WebSocket`] for an `async fn`. What [`crate::handler_ws_async!`] gives to it.
///
/// ```no_run
/// use rust_edge_gateway_sdk_core::prelude::*;
///
/// async fn echo(mut socket: AsyncWebSocket) -> Result<(), HandlerError> {
///     while let Some(message) = socket.recv().await {
///         if let Message::Text(_) | Message::Binary(_) = message {
///             socket.send(message).await?;
///         }
///     }
///     Ok(())
/// }
///
/// handler_ws_async!(echo);
/// ```
///
/// It ends as a [`super::WebSocket`] does. When the client leaves, `recv` has no more messages, `send` fails, and
/// [`AsyncSocketSender::closed`] resolves; the function goes on until it returns.
pub struct AsyncWebSocket {
    request: Request,
    receiver: AsyncSocketReceiver,
    sender: AsyncSocketSender,
}

impl AsyncWebSocket {
    pub(crate) fn new(request: Request, body: BodySource, line: Arc<Line>) -> Self {
        let receiver = AsyncSocketReceiver { body, line: line.clone(), assembler: Assembler::default() };
        AsyncWebSocket { request, receiver, sender: AsyncSocketSender { line } }
    }

    /// See [`super::WebSocket::request`].
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// See [`super::WebSocket::protocols`].
    pub fn protocols(&self) -> Vec<&str> {
        protocols(&self.request)
    }

    /// See [`super::WebSocket::with_protocol`].
    pub fn with_protocol(self, protocol: impl Into<String>) -> Self {
        self.with_header("Sec-WebSocket-Protocol", protocol)
    }

    /// See [`super::WebSocket::with_header`].
    pub fn with_header(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.sender.line.change_head(|head| head.with_header(key, value));
        self
    }

    /// See [`super::WebSocket::refuse`].
    ///
    /// # Errors
    /// None; its type is that of a handler's result.
    pub fn refuse(self, response: Response) -> Result<(), HandlerError> {
        self.sender.line.refuse(response);
        Ok(())
    }

    /// See [`super::WebSocket::accept`]. It waits for nothing.
    ///
    /// # Errors
    /// See there.
    pub fn accept(&self) -> io::Result<()> {
        self.sender.line.accept()
    }

    /// The next message. See [`super::WebSocket::recv`]. A future that is dropped has taken nothing.
    pub async fn recv(&mut self) -> Option<Message> {
        self.receiver.recv().await
    }

    /// Sends a message. See [`super::WebSocket::send`]. A future that is dropped may have sent a part of a long one,
    /// after which nothing can be sent.
    ///
    /// # Errors
    /// See there.
    pub async fn send(&self, message: impl Into<Message>) -> io::Result<()> {
        self.sender.send(message).await
    }

    /// See [`super::WebSocket::close`].
    ///
    /// # Errors
    /// See [`super::WebSocket::send`].
    pub async fn close(self, code: u16, reason: impl Into<String>) -> io::Result<()> {
        self.send(Message::Close(Some(CloseFrame::new(code, reason)))).await
    }

    /// See [`super::WebSocket::is_closed`].
    pub fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Accepts the socket, and takes it apart: one task, or one branch of a `select!`, receives while others send.
    ///
    /// ```no_run
    /// use rust_edge_gateway_sdk_core::prelude::*;
    /// use rust_edge_gateway_sdk_core::tokio::{self, time};
    ///
    /// async fn clock(socket: AsyncWebSocket) -> Result<(), HandlerError> {
    ///     let (sender, mut receiver) = socket.split()?;
    ///     let mut every_second = time::interval(time::Duration::from_secs(1));
    ///     loop {
    ///         tokio::select! {
    ///             _ = every_second.tick() => sender.send("tick").await?,
    ///             message = receiver.recv() => if message.is_none() {
    ///                 return Ok(());
    ///             },
    ///         }
    ///     }
    /// }
    ///
    /// handler_ws_async!(clock);
    /// ```
    ///
    /// # Errors
    /// See [`super::WebSocket::accept`].
    pub fn split(self) -> io::Result<(AsyncSocketSender, AsyncSocketReceiver)> {
        self.accept()?;
        Ok((self.sender, self.receiver))
    }
}

impl std::fmt::Debug for AsyncWebSocket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AsyncWebSocket").field("request", &self.request).finish_non_exhaustive()
    }
}

/// Sends messages of an [`AsyncWebSocket`] that was taken apart. See [`super::SocketSender`].
#[derive(Clone)]
pub struct AsyncSocketSender {
    line: Arc<Line>,
}

impl AsyncSocketSender {
    /// See [`AsyncWebSocket::send`].
    ///
    /// # Errors
    /// See [`super::WebSocket::send`].
    pub async fn send(&self, message: impl Into<Message>) -> io::Result<()> {
        let (kind, payload) = message.into().into_frame()?;
        self.line.send_async(kind, &payload).await
    }

    /// See [`super::WebSocket::is_closed`].
    pub fn is_closed(&self) -> bool {
        self.line.is_closed()
    }

    /// Resolves when the client has left, or the socket is closed.
    pub async fn closed(&self) {
        self.line.over().await;
    }
}

/// Receives the messages of an [`AsyncWebSocket`] that was taken apart. It is also a `Stream` of messages. What
/// comes after it was dropped is dropped, too.
pub struct AsyncSocketReceiver {
    body: BodySource,
    line: Arc<Line>,
    assembler: Assembler,
}

impl AsyncSocketReceiver {
    /// See [`AsyncWebSocket::recv`].
    pub async fn recv(&mut self) -> Option<Message> {
        poll_fn(|context| self.poll_recv(context)).await
    }

    fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<Message>> {
        if self.line.accept().is_err() {
            return Poll::Ready(None);
        }
        loop {
            // An error says that no more comes.
            let Ok(Some(frame)) = ready!(self.body.poll_frame(context)) else { return Poll::Ready(None) };
            if let Some(message) = self.assembler.take(frame) {
                return Poll::Ready(Some(message));
            }
        }
    }
}

impl Stream for AsyncSocketReceiver {
    type Item = Message;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Message>> {
        self.poll_recv(context)
    }
}
