//! A stream: one request, and its response.
use std::cell::RefCell;
use std::future::poll_fn;
use std::net::IpAddr;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{Request, Response, StatusCode};

use super::super::client::{Client, Link, Next};
use super::super::exchange::Exchange;
use super::super::received_request::read_request;
use super::super::response::{Persistence, ResponseHead};
use super::super::stream::{ClientStream, StreamError};
use super::super::unparsable::UnparsableRequestResponse;
use super::head;
use super::wire::OpenStream;
use crate::guard::{Phase, Watch, WatchedConnection};
use crate::request::{Framing, Refusal};
use crate::thread::Thread;
use crate::upstream::Reply;

/// What is copied of a response before the connection takes it.
pub const SEND_BYTES: usize = 32 * 1024;

/// Answers a request.
pub async fn answer(
    request: Request<RecvStream>,
    respond: SendResponse<Bytes>,
    peer: IpAddr,
    is_secure: bool,
    thread: Rc<Thread>,
    _open: OpenStream,
) {
    let waker = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
    let reply = Reply::new(waker.clone());
    let (parts, body) = request.into_parts();
    let is_complete = body.is_end_stream();
    let mut client = Http2Client {
        thread: &thread,
        watched: thread.guard.watch(waker),
        respond: RefCell::new(respond),
        body,
        is_complete,
        expects_continue: !is_complete && head::expects_continue(&parts),
        is_secure,
        sending: None,
    };
    let head = head::write(&parts);
    drop(parts);
    let answered = client.answer(head, peer, &thread, &reply).await;
    let answered = match answered {
        Err(StreamError::Refused(refusal)) => client.refuse(&refusal).await,
        answered => answered,
    };
    if answered.is_err() {
        client.respond.borrow_mut().send_reset(Reason::CANCEL);
    }
}

/// The client of one stream.
struct Http2Client<'a> {
    thread: &'a Thread,
    watched: WatchedConnection,
    respond: RefCell<SendResponse<Bytes>>,
    body: RecvStream,
    is_complete: bool,
    expects_continue: bool,
    is_secure: bool,
    /// The body of a response that is streamed.
    sending: Option<SendStream<Bytes>>,
}

impl Http2Client<'_> {
    async fn answer(
        &mut self,
        head: Result<Vec<u8>, Refusal>,
        peer: IpAddr,
        thread: &Rc<Thread>,
        reply: &Rc<Reply>,
    ) -> Result<Next, StreamError> {
        let mut request = read_request(self, &head?, peer, thread).await?;
        self.watch().begin(Phase::Unwatched);
        if request.framing == Framing::None && !self.is_complete {
            // Its length is not known.
            request.framing = Framing::Chunked;
        }
        Exchange { thread, client: self, reply }.answer(request).await
    }

    /// Answers what cannot be read. Other streams go on.
    async fn refuse(&mut self, refusal: &Refusal) -> Result<Next, StreamError> {
        let response = UnparsableRequestResponse::new(refusal, self.thread);
        self.send(response.head(Persistence::Default), &response.body).await
    }

    /// What has arrived counts before what the guard says.
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamError>> {
        match self.body.poll_data(cx) {
            Poll::Ready(Some(Ok(data))) => {
                self.watch().transferred(data.len());
                Poll::Ready(Ok(Some(data)))
            }
            Poll::Ready(None) => Poll::Ready(Ok(None)),
            Poll::Ready(Some(Err(_))) => Poll::Ready(Err(StreamError::Gone)),
            Poll::Pending => match self.watch().close_reason() {
                None => Poll::Pending,
                Some(_) => Poll::Ready(Err(Refusal::too_slow().into())),
            },
        }
    }

    /// Sends so many bytes, which `next` has; the client has to take them fast enough.
    async fn send_bytes(
        &self,
        stream: &mut SendStream<Bytes>,
        mut length: usize,
        is_last: bool,
        mut next: impl FnMut(usize) -> Bytes,
    ) -> Result<(), StreamError> {
        self.watch().begin(Phase::Response);
        while length > 0 {
            let room = self.room(stream, length.min(SEND_BYTES)).await?;
            length -= room;
            stream.send_data(next(room), is_last && length == 0).map_err(|_| StreamError::Gone)?;
            self.watch().transferred(room);
        }
        self.watch().begin(Phase::Unwatched);
        Ok(())
    }

    /// Waits until the client, and the connection, take more of a response. Returns how many bytes.
    async fn room(&self, stream: &mut SendStream<Bytes>, at_most: usize) -> Result<usize, StreamError> {
        stream.reserve_capacity(at_most);
        poll_fn(|cx| {
            // Nobody is woken for what there is already.
            if stream.capacity() > 0 {
                return Poll::Ready(Ok(stream.capacity().min(at_most)));
            }
            match stream.poll_capacity(cx) {
                Poll::Ready(Some(Ok(bytes))) => Poll::Ready(Ok(bytes.min(at_most))),
                Poll::Ready(Some(Err(_)) | None) => Poll::Ready(Err(StreamError::Gone)),
                Poll::Pending if self.watch().close_reason().is_some() => Poll::Ready(Err(StreamError::Gone)),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }
}

impl Link for Http2Client<'_> {
    fn is_secure(&self) -> bool {
        self.is_secure
    }

    fn watch(&self) -> &Watch {
        &self.watched.watch
    }

    async fn until_client_resets<T>(&self, work: impl Future<Output = T>) -> Result<T, StreamError> {
        tokio::select! {
            biased;
            outcome = work => Ok(outcome),
            _ = poll_fn(|cx| self.respond.borrow_mut().poll_reset(cx)) => Err(StreamError::Gone),
        }
    }
}

impl Client for Http2Client<'_> {
    fn is_complete(&self) -> bool {
        self.is_complete
    }

    async fn begin_body(&mut self) -> Result<(), StreamError> {
        if self.expects_continue {
            let mut response = Response::new(());
            *response.status_mut() = StatusCode::CONTINUE;
            self.respond.get_mut().send_informational(response).map_err(|_| StreamError::Gone)?;
        }
        self.watch().begin(Phase::Body);
        Ok(())
    }

    /// A frame at a time, which is small.
    async fn read_body(&mut self, bytes: &mut Vec<u8>, _limit: usize) -> Result<(), StreamError> {
        match poll_fn(|cx| self.poll_data(cx)).await? {
            Some(data) => {
                bytes.extend_from_slice(&data);
                // The client may send so much more. It fails for a stream that has ended.
                let _ = self.body.flow_control().release_capacity(data.len());
                self.is_complete = self.body.is_end_stream();
            }
            // Trailers, if there are any, are dropped.
            None => self.is_complete = true,
        }
        if self.is_complete {
            self.watch().begin(Phase::Unwatched);
        }
        Ok(())
    }

    /// It has nothing.
    fn release_memory(&mut self) {}

    async fn send(&mut self, head: ResponseHead<'_>, body: &[u8]) -> Result<Next, StreamError> {
        let response = head.response(&self.thread.dates);
        let stream = self.respond.get_mut().send_response(response, body.is_empty());
        let mut stream = stream.map_err(|_| StreamError::Gone)?;
        let mut rest = body;
        // Copied piece by piece: the client may take it slowly.
        let next = |length| {
            let (piece, behind) = rest.split_at(length);
            rest = behind;
            Bytes::copy_from_slice(piece)
        };
        self.send_bytes(&mut stream, body.len(), true, next).await?;
        Ok(Next::Request)
    }

    async fn begin_stream(&mut self, head: ResponseHead<'_>) -> Result<(), StreamError> {
        let response = head.response(&self.thread.dates);
        let stream = self.respond.get_mut().send_response(response, false);
        self.sending = Some(stream.map_err(|_| StreamError::Gone)?);
        Ok(())
    }

    async fn send_pieces(&mut self, pieces: Vec<Bytes>) -> Result<(), StreamError> {
        let mut stream = self.sending.take().ok_or(StreamError::Gone)?;
        for mut piece in pieces {
            self.send_bytes(&mut stream, piece.len(), false, |length| piece.split_to(length)).await?;
        }
        self.sending = Some(stream);
        Ok(())
    }

    fn can_send_file(&self) -> bool {
        false
    }

    async fn end_stream(&mut self) -> Result<Next, StreamError> {
        let mut stream = self.sending.take().ok_or(StreamError::Gone)?;
        stream.send_data(Bytes::new(), true).map_err(|_| StreamError::Gone)?;
        Ok(Next::Request)
    }

    fn cut_off(&mut self) {
        self.respond.get_mut().send_reset(Reason::INTERNAL_ERROR);
    }

    async fn until_client_closes<T>(&mut self, work: impl Future<Output = T>) -> Result<T, StreamError> {
        let Some(stream) = &mut self.sending else { return self.until_client_resets(work).await };
        tokio::select! {
            biased;
            outcome = work => Ok(outcome),
            _ = poll_fn(|cx| stream.poll_reset(cx)) => Err(StreamError::Gone),
        }
    }

    /// Extended CONNECT (RFC 8441) is not offered.
    fn raw(&mut self) -> Option<&mut ClientStream> {
        None
    }

    /// The stream ends with the answer. What is left of the body is not the next request.
    async fn drop_small_body(&mut self) -> Result<bool, StreamError> {
        Ok(true)
    }

    async fn drop_rest_of_body(&mut self) -> bool {
        true
    }
}
