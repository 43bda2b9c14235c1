//! HTTP/2: a connection whose requests come side by side. Each is read, checked and answered as one of HTTP/1 is. `h2`
//! has the protocol; what it does not limit is limited here.
mod frames;
mod head;
mod stream;
mod wire;

use std::cell::RefCell;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::server::{self, Builder, Handshake, SendResponse};
use h2::{Reason, RecvStream};
use http::Request;
use tokio::task::spawn_local;
use tokio::time::timeout;

use super::stream::{ClientStream, StreamError};
use crate::guard::CloseReason;
use crate::thread::Thread;
use frames::PREFACE;
use wire::{Connection, Wire};

/// Requests of a connection at a time, those included that the client has reset and that a handler still works for.
const MAX_STREAMS: usize = 100;
/// What a client may send of a body, and of all bodies of a connection, before it is taken.
const STREAM_WINDOW: u32 = 128 * 1024;
const CONNECTION_WINDOW: u32 = 256 * 1024;
/// The longest head, counted as in RFC 9113: 32 bytes more for each header than in HTTP/1. Larger heads have an answer
/// without a body, and those of four times the size end the connection.
const MAX_HEADER_LIST_BYTES: u32 = 24 * 1024;
/// Streams that the client has ended and `h2` remembers.
const MAX_RESET_STREAMS: usize = 20;
/// Requests of a connection that violate the protocol, before it is closed.
const MAX_VIOLATIONS: usize = 100;
/// How long it takes at most to tell a client that its connection ends.
const GOODBYE: Duration = Duration::from_secs(1);

/// Whether a connection is one of HTTP/2: client and server have agreed on it, or it begins as one.
///
/// # Errors
/// When the client is too slow, or gone.
pub async fn begins(stream: &mut ClientStream) -> Result<bool, StreamError> {
    if stream.is_http2() {
        return Ok(true);
    }
    while PREFACE.starts_with(&stream.buffered) {
        if stream.buffered.len() == PREFACE.len() {
            return Ok(true);
        }
        if stream.fill().await? == 0 {
            break;
        }
    }
    Ok(stream.buffered.starts_with(PREFACE))
}

/// Serves a connection until it is closed.
pub async fn serve(stream: ClientStream, peer: IpAddr, thread: Rc<Thread>) {
    let waker = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
    let (transport, reading, buffered) = stream.into_parts();
    let is_secure = transport.is_secure();
    let transport = Rc::new(RefCell::new(transport));
    let connection = Connection::new(reading, thread.guard.watch(waker));
    let wire = Wire::new(transport.clone(), connection.clone(), buffered);
    let serving = Http2Server { connection: connection.clone(), peer, is_secure, thread: thread.clone() };
    serving.run(builder().handshake(wire)).await;
    drop(serving);
    if let Some(transport) = Rc::into_inner(transport) {
        let waker = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
        ClientStream::new(transport.into_inner(), thread.guard.watch(waker)).close().await;
    }
}

fn builder() -> Builder {
    let mut builder = server::Builder::new();
    builder
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(MAX_STREAMS as u32)
        .max_header_list_size(MAX_HEADER_LIST_BYTES)
        .max_send_buffer_size(stream::SEND_BYTES)
        .max_concurrent_reset_streams(MAX_RESET_STREAMS)
        .max_pending_accept_reset_streams(MAX_RESET_STREAMS)
        .max_local_error_reset_streams(Some(MAX_VIOLATIONS));
    builder
}

type H2Connection = server::Connection<Wire, Bytes>;

type AcceptedStream = (Request<RecvStream>, SendResponse<Bytes>);

/// What a client is to be told when its connection ends; none when it has ended.
type Ending = Option<Reason>;

struct Http2Server {
    connection: Rc<Connection>,
    peer: IpAddr,
    is_secure: bool,
    thread: Rc<Thread>,
}

impl Http2Server {
    /// Ends when the connection has ended, or is to be closed.
    async fn run(&self, handshake: Handshake<Wire, Bytes>) {
        let Some(mut http2) = self.begin(handshake).await else { return };
        let mut is_going_away = false;
        loop {
            let next = poll_fn(|cx| {
                if !is_going_away && self.thread.guard.is_draining() {
                    // Streams that are open go on, and new ones are taken until the client knows.
                    http2.graceful_shutdown();
                    is_going_away = true;
                }
                self.poll_next(&mut http2, cx)
            });
            match next.await {
                Ok((request, respond)) => self.answer(request, respond),
                Err(Some(reason)) => {
                    http2.abrupt_shutdown(reason);
                    let _ = timeout(GOODBYE, poll_fn(|cx| http2.poll_closed(cx))).await;
                    return;
                }
                Err(None) => return,
            }
        }
    }

    /// The preface, and settings; none when the client does not send them.
    async fn begin(&self, handshake: Handshake<Wire, Bytes>) -> Option<H2Connection> {
        let mut handshake = pin!(handshake);
        poll_fn(|cx| match handshake.as_mut().poll(cx) {
            Poll::Ready(connected) => Poll::Ready(connected.ok()),
            Poll::Pending if self.connection.watch().close_reason().is_some() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    fn poll_next(&self, http2: &mut H2Connection, cx: &mut Context<'_>) -> Poll<Result<AcceptedStream, Ending>> {
        let polled = http2.poll_accept(cx);
        if self.connection.is_flooded() {
            return Poll::Ready(Err(Some(Reason::ENHANCE_YOUR_CALM)));
        }
        match polled {
            Poll::Ready(Some(Ok(stream))) => Poll::Ready(Ok(stream)),
            Poll::Ready(Some(Err(_)) | None) => Poll::Ready(Err(None)),
            Poll::Pending => match self.connection.watch().close_reason() {
                None => Poll::Pending,
                Some(CloseReason::Idle) => Poll::Ready(Err(Some(Reason::NO_ERROR))),
                Some(_) => Poll::Ready(Err(Some(Reason::ENHANCE_YOUR_CALM))),
            },
        }
    }

    fn answer(&self, request: Request<RecvStream>, mut respond: SendResponse<Bytes>) {
        if self.connection.open() >= MAX_STREAMS {
            // For `h2` those are over that the client has reset.
            respond.send_reset(Reason::REFUSED_STREAM);
            return;
        }
        let open = self.connection.open_stream();
        spawn_local(stream::answer(request, respond, self.peer, self.is_secure, self.thread.clone(), open));
    }
}
