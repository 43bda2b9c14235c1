//! The connection of a client: its requests, one after the other, unless it begins as one of HTTP/2.
use std::future::poll_fn;
use std::net::IpAddr;
use std::rc::Rc;
use std::task::Poll;

use super::client::{Link, Next};
use super::exchange::Exchange;
use super::http1::Http1Client;
use super::http2;
use super::received_request::read_request;
use super::response::Persistence;
use super::stream::{ClientStream, StreamError};
use super::unparsable::UnparsableRequestResponse;
use crate::guard::Phase;
use crate::request::{HeadEnd, MAX_HEAD_BYTES, Refusal, check_beginning};
use crate::thread::Thread;
use crate::tls::Transport;
use crate::upstream::Reply;

/// Serves a connection until it is closed.
pub async fn serve(transport: Transport, peer: IpAddr, thread: Rc<Thread>) {
    let waker = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
    let reply = Reply::new(waker.clone());
    let mut stream = ClientStream::new(transport, thread.guard.watch(waker));
    stream.watch().begin(Phase::Head);
    let served = match http2::begins(&mut stream).await {
        // Apart, so that a connection of HTTP/1 has no memory for it.
        Ok(true) => return Box::pin(http2::serve(stream, peer, thread)).await,
        Ok(false) => serve_requests(&mut stream, peer, &thread, &reply).await,
        Err(broken) => Err(broken),
    };
    match served {
        Ok(()) => stream.close().await,
        Err(StreamError::Gone) => {}
        Err(StreamError::Refused(refusal)) => refuse(stream, &thread, refusal).await,
    }
}

/// Ends when the connection is to be closed.
async fn serve_requests(
    stream: &mut ClientStream,
    peer: IpAddr,
    thread: &Rc<Thread>,
    reply: &Rc<Reply>,
) -> Result<(), StreamError> {
    loop {
        let length = next_head(stream).await?;
        let request = read_request(stream, &stream.buffered[..length], peer, thread).await?;
        stream.buffered.drain(..length);
        stream.watch().begin(Phase::Unwatched);
        let client = &mut Http1Client::new(stream, &thread.dates, &request);
        if (Exchange { thread, client, reply }).answer(request).await? == Next::Close {
            return Ok(());
        }
        stream.watch().begin(Phase::Idle);
    }
}

/// Waits until a head is buffered; returns its length.
async fn next_head(stream: &mut ClientStream) -> Result<usize, StreamError> {
    let mut end = HeadEnd::default();
    let mut checked = 0;
    loop {
        if checked == 0 {
            skip_empty_lines(&mut stream.buffered);
        }
        // It may be half of an empty line.
        if checked > 0 || stream.buffered != b"\r" {
            if stream.watch().phase() == Phase::Idle && !stream.buffered.is_empty() {
                stream.watch().begin(Phase::Head);
            }
            if let Some(length) = end.find(&stream.buffered)? {
                return Ok(length);
            }
            // Not each time when it comes byte by byte.
            let arrived = stream.buffered.len();
            let has_line = || checked == 0 || stream.buffered[checked..].contains(&b'\n');
            if arrived > MAX_HEAD_BYTES || (arrived > 0 && has_line()) {
                check_beginning(&stream.buffered)?;
                checked = arrived;
            }
        }
        if stream.fill().await? == 0 {
            return Err(if stream.buffered.is_empty() { StreamError::Gone } else { Refusal::not_http().into() });
        }
    }
}

/// Old clients send one behind a body (RFC 9112, section 2.2).
fn skip_empty_lines(bytes: &mut Vec<u8>) {
    let lines = bytes.chunks_exact(2).take_while(|line| line == b"\r\n").count();
    bytes.drain(..2 * lines);
}

/// Answers what cannot be read, and closes the connection: where the next request would begin is not certain.
async fn refuse(mut stream: ClientStream, thread: &Thread, refusal: Refusal) {
    let response = UnparsableRequestResponse::new(&refusal, thread);
    let mut bytes = response.head(Persistence::Close).bytes(&thread.dates, response.body.len());
    bytes.extend_from_slice(&response.body);
    if stream.write(&bytes).await.is_ok() {
        stream.close().await;
    }
}
