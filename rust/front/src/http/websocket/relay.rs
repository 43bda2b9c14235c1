//! Carries messages between a client and its handler until one of them ends the socket. Neither gets more than it
//! takes: while the handler does not take a message, nothing is read from the client, and while the client does not
//! take what was written, nothing more is taken from the handler.
use std::borrow::Cow;
use std::time::{Duration, Instant};

use bytes::Bytes;
use edge_wire::{Kind, cost};
use tokio::time::timeout;

use super::super::stream::{ClientStream, StreamError};
use super::codec::{ClientMessage, Codec, SocketClose};
use super::forward::Forward;
use super::rate::Rate;
use crate::memory::MemoryShare;
use crate::policies::Sockets;
use crate::upstream::{BodyStream, End};

/// What a socket may have in memory without asking for it.
const FREE_BYTES: usize = 64 * 1024;
/// Written at a time, of what a handler has sent.
const WRITE_BYTES: usize = 32 * 1024;
/// How long the answer to a close is waited for.
const CLOSE_WAIT: Duration = Duration::from_secs(5);
/// What the front itself asks with whether a client is there.
const PING: &[u8] = b"gateway";

const FAILED: SocketClose = SocketClose::new(1011, "the handler has failed");
const RESTARTS: SocketClose = SocketClose::new(1012, "the endpoint restarts");
const TOO_MANY: SocketClose = SocketClose::new(1008, "more messages in a second than this endpoint takes");
const NO_MEMORY: SocketClose = SocketClose::new(1013, "the gateway has no memory left for this message");

/// How a socket has ended.
pub enum SocketEnd {
    /// Both sides have said so.
    Closed,
    /// The gateway has closed it; why, for logs.
    Ended(Cow<'static, str>),
    /// The same, because of the handler.
    Handler(Cow<'static, str>),
    /// The client has left without saying so, or takes nothing; why, for logs.
    Gone(Cow<'static, str>),
}

impl SocketEnd {
    /// Why it has ended, unless both sides wanted it.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Closed => None,
            Self::Ended(reason) | Self::Handler(reason) | Self::Gone(reason) => Some(reason),
        }
    }
}

impl From<StreamError> for SocketEnd {
    fn from(_: StreamError) -> Self {
        Self::Gone("the client has left without closing the WebSocket".into())
    }
}

pub struct Relay<'a> {
    stream: &'a mut ClientStream,
    handler: BodyStream,
    codec: Codec,
    rate: Rate,
    max_message_bytes: usize,
    idle: Duration,
    share: MemoryShare,
    /// A message that the handler has not taken yet.
    forward: Option<Forward>,
    /// What has arrived of a message of the handler.
    message: Vec<u8>,
    /// What the handler has credit for when the client has taken it.
    uncredited: usize,
    /// Bytes of messages that were sent to the client.
    sent: usize,
    /// When something of the client was last heard, and whether it has been sent a ping since.
    last_heard: Instant,
    awaits_pong: bool,
    /// The payload of the last ping of the handler, unless it was answered.
    handler_ping: Option<Bytes>,
}

impl<'a> Relay<'a> {
    pub fn new(
        stream: &'a mut ClientStream,
        handler: BodyStream,
        limits: &Sockets,
        idle: Duration,
        share: MemoryShare,
    ) -> Self {
        Self {
            stream,
            handler,
            codec: Codec::new(limits.max_message_bytes),
            rate: Rate::new(limits.messages_per_second),
            max_message_bytes: limits.max_message_bytes,
            idle,
            share,
            forward: None,
            message: Vec::new(),
            uncredited: 0,
            sent: 0,
            last_heard: Instant::now(),
            awaits_pong: false,
            handler_ping: None,
        }
    }

    /// Bytes of messages that were sent to the client.
    pub fn sent(&self) -> usize {
        self.sent
    }

    /// Runs until the socket has ended. `head`: of the response.
    pub async fn run(&mut self, head: &[u8]) -> SocketEnd {
        let ended = match self.stream.write(head).await {
            Ok(()) => self.carry().await,
            Err(broken) => Err(broken.into()),
        };
        ended.unwrap_or_else(|left| left)
    }

    async fn carry(&mut self) -> Result<SocketEnd, SocketEnd> {
        loop {
            if let Some(left) = self.take_arrived().await? {
                return Ok(left);
            }
            // More may come while this is written.
            let sendable = self.handler.sendable();
            self.flush().await?;
            let wait = self.until_idle();
            let is_held_back = self.forward.is_some();
            tokio::select! {
                frame = self.handler.next_frame() => if let Some(left) = self.take_frames(frame).await? {
                    return Ok(left);
                },
                read = arrival(self.stream, is_held_back) => {
                    if read? == 0 {
                        return Err(StreamError::Gone.into());
                    }
                    self.client_is_here();
                }
                () = self.handler.more_sendable(sendable), if is_held_back => {}
                () = tokio::time::sleep(wait), if !is_held_back => self.ping_client()?,
            }
        }
    }

    /// Takes what has arrived from the client, as far as the handler does. Returns how the socket has ended, if it has.
    async fn take_arrived(&mut self) -> Result<Option<SocketEnd>, SocketEnd> {
        loop {
            self.send_forward();
            if self.forward.is_some() {
                return Ok(None);
            }
            match self.codec.read(&mut self.stream.buffered) {
                Ok(None) => {
                    let is_held = self.hold();
                    return if is_held { Ok(None) } else { self.close_on_client(NO_MEMORY).await.map(Some) };
                }
                Ok(Some(ClientMessage::Text(text))) => self.forward(Kind::Text, text),
                Ok(Some(ClientMessage::Binary(bytes))) => self.forward(Kind::Binary, bytes),
                Ok(Some(ClientMessage::Pong(payload))) => {
                    if self.handler_ping.as_deref() == Some(&payload[..]) {
                        self.handler_ping = None;
                        self.forward(Kind::Pong, payload);
                    }
                }
                Ok(Some(ClientMessage::Ping)) => {}
                Ok(Some(ClientMessage::Close(frame))) => {
                    self.send_close_to_handler(frame.as_ref().map(|(code, reason)| (*code, &reason[..])));
                    self.flush().await?;
                    self.stream.end().await?;
                    return Ok(Some(SocketEnd::Closed));
                }
                Err(closing) => return self.close_on_client(closing).await.map(Some),
            }
            if !self.rate.admits(Instant::now()) {
                self.forward = None;
                return self.close_on_client(TOO_MANY).await.map(Some);
            }
            if !self.hold() {
                return self.close_on_client(NO_MEMORY).await.map(Some);
            }
        }
    }

    fn forward(&mut self, kind: Kind, message: Bytes) {
        self.forward = Some(Forward::new(kind, message));
    }

    /// Sends the message that waits, as far as the handler takes it.
    fn send_forward(&mut self) {
        while let Some(forward) = &mut self.forward {
            let Some((kind, piece)) = forward.next(self.handler.sendable()) else { break };
            self.handler.send(kind, &piece);
            if kind != Kind::Data {
                self.forward = None;
                self.last_heard = Instant::now();
            }
        }
    }

    /// Takes the memory for what is held; false when there is none.
    fn hold(&mut self) -> bool {
        let forward = self.forward.as_ref().map_or(0, Forward::held);
        // Headers of fragments are not kept, however many there are.
        let arrived = self.codec.held().min(self.max_message_bytes);
        let held = arrived + forward + self.message.len() + self.codec.out_bytes();
        self.share.set(if held > FREE_BYTES { held } else { 0 })
    }

    /// Takes frames of the handler, as many as are there, up to what is written at a time.
    async fn take_frames(&mut self, first: Result<(Kind, Bytes), End>) -> Result<Option<SocketEnd>, SocketEnd> {
        let mut next = Some(first);
        while let Some(frame) = next {
            let left = match frame {
                Ok((kind, payload)) => self.take_frame(kind, payload).await?,
                Err(End::Complete) => Some(self.end_by_handler(None).await?),
                Err(End::Drained(reason)) => {
                    self.close_and_wait(&RESTARTS).await?;
                    Some(SocketEnd::Ended(reason.into()))
                }
                Err(End::Broken(reason)) => {
                    self.close_and_wait(&FAILED).await?;
                    Some(SocketEnd::Handler(reason.to_string().into()))
                }
            };
            if left.is_some() {
                return Ok(left);
            }
            next = if self.codec.out_bytes() < WRITE_BYTES { self.handler.next_frame_at_once() } else { None };
        }
        Ok(None)
    }

    async fn take_frame(&mut self, kind: Kind, payload: Bytes) -> Result<Option<SocketEnd>, SocketEnd> {
        let cost = cost(kind, payload.len());
        match kind {
            Kind::Data | Kind::Text | Kind::Binary => {
                if self.message.len() + payload.len() > self.max_message_bytes {
                    return self
                        .end_failed_handler("it has sent a longer message than its policy `websocket` allows")
                        .await
                        .map(Some);
                }
                if self.message.is_empty() {
                    self.message = payload.into();
                } else {
                    self.message.extend_from_slice(&payload);
                }
            }
            Kind::Ping => {
                self.codec.add_ping(payload.clone());
                self.handler_ping = Some(payload);
            }
            Kind::Pong => self.codec.add_pong(payload),
            _ => return self.end_by_handler(Some(&payload)).await.map(Some),
        }
        if kind == Kind::Data {
            // Otherwise it would not come to its end.
            self.handler.consumed(cost);
            return if self.hold() { Ok(None) } else { self.close_on_client(NO_MEMORY).await.map(Some) };
        }
        self.uncredited += cost;
        if matches!(kind, Kind::Text | Kind::Binary) {
            let message = std::mem::take(&mut self.message);
            self.sent += message.len();
            match kind {
                Kind::Binary => self.codec.add_binary(&message),
                _ if self.codec.add_text(&message).is_err() => {
                    return self.end_failed_handler("it has sent a text message that is not UTF-8").await.map(Some);
                }
                _ => {}
            }
            drop(message);
            if !self.hold() {
                return self.close_on_client(NO_MEMORY).await.map(Some);
            }
        }
        Ok(None)
    }

    /// Writes what there is for the client.
    async fn flush(&mut self) -> Result<(), SocketEnd> {
        if self.codec.out_bytes() > 0 {
            let bytes = self.codec.take_out();
            self.stream.write(&bytes).await?;
            drop(bytes);
            self.hold();
        }
        let uncredited = std::mem::take(&mut self.uncredited);
        if uncredited > 0 {
            self.handler.consumed(uncredited);
        }
        Ok(())
    }

    fn client_is_here(&mut self) {
        self.last_heard = Instant::now();
        self.awaits_pong = false;
    }

    /// How long nothing of the client may be heard before something is done about it.
    fn until_idle(&self) -> Duration {
        let limit = if self.awaits_pong { self.idle } else { self.idle / 2 };
        limit.saturating_sub(self.last_heard.elapsed())
    }

    /// Sends a ping to a client of which nothing was heard.
    ///
    /// # Errors
    /// When it was asked before.
    fn ping_client(&mut self) -> Result<(), SocketEnd> {
        if self.awaits_pong {
            let idle = self.idle.as_millis();
            return Err(SocketEnd::Gone(format!("the client has answered no ping for {idle} ms").into()));
        }
        self.codec.add_ping(Bytes::from_static(PING));
        self.awaits_pong = true;
        Ok(())
    }

    /// The handler ends the socket, with the payload of its close if it has sent one.
    async fn end_by_handler(&mut self, close: Option<&[u8]>) -> Result<SocketEnd, SocketEnd> {
        let (code, reason) = match close {
            Some([high, low, reason @ ..]) => (u16::from_be_bytes([*high, *low]), String::from_utf8_lossy(reason)),
            _ => (1000, "".into()),
        };
        self.codec.add_close(Some((code, &reason)));
        self.await_close().await?;
        Ok(SocketEnd::Closed)
    }

    /// The handler has done what it may not.
    async fn end_failed_handler(&mut self, reason: &'static str) -> Result<SocketEnd, SocketEnd> {
        self.close_and_wait(&FAILED).await?;
        Ok(SocketEnd::Handler(reason.into()))
    }

    /// Ends a socket whose client has done what it may not.
    async fn close_on_client(&mut self, closing: SocketClose) -> Result<SocketEnd, SocketEnd> {
        self.send_close_to_handler(Some((closing.code, closing.reason.as_bytes())));
        self.codec.add_close(Some((closing.code, closing.reason)));
        // What it sends is not read any more: it may not be understood.
        self.flush().await?;
        self.stream.end().await?;
        Ok(SocketEnd::Ended(closing.reason.into()))
    }

    /// Tells the handler that the socket is closed.
    fn send_close_to_handler(&self, frame: Option<(u16, &[u8])>) {
        let payload = frame.map_or(Vec::new(), |(code, reason)| [&code.to_be_bytes()[..], reason].concat());
        self.handler.send(Kind::Close, &payload);
    }

    async fn close_and_wait(&mut self, closing: &SocketClose) -> Result<(), SocketEnd> {
        self.codec.add_close(Some((closing.code, closing.reason)));
        self.await_close().await
    }

    /// Writes a close, and waits for a while for the answer; what else comes before that is dropped.
    async fn await_close(&mut self) -> Result<(), SocketEnd> {
        self.flush().await?;
        let answered = async {
            loop {
                match self.codec.read(&mut self.stream.buffered) {
                    Ok(Some(ClientMessage::Close(_))) | Err(_) => return,
                    Ok(Some(_)) => {}
                    Ok(None) if !matches!(self.stream.fill().await, Ok(1..)) => return,
                    Ok(None) => {}
                }
            }
        };
        // One that does not answer is cut off all the same.
        let _ = timeout(CLOSE_WAIT, answered).await;
        self.stream.end().await?;
        Ok(())
    }
}

/// Waits for more of the client. Returns how many bytes, 0 when it has left. While it is held back, nothing is read.
async fn arrival(stream: &mut ClientStream, is_held_back: bool) -> Result<usize, StreamError> {
    if is_held_back {
        stream.closed_by_client().await;
        return Ok(0);
    }
    stream.fill().await
}
