//! The client of one request of HTTP/1.
use std::io::IoSlice;
use std::pin::pin;

use bytes::Bytes;

use super::chunks::Chunks;
use super::client::{Client, Link, Next};
use super::received_request::ReceivedRequest;
use super::response::{Persistence, ResponseHead};
use super::stream::{ClientStream, StreamError};
use crate::dates::Dates;
use crate::guard::{Phase, Watch};
use crate::memory::RESERVE_AFTER;
use crate::request::{Framing, Refusal};

/// Up to this size a body is written together with the head of the response.
const SMALL_BODY_BYTES: usize = 16 * 1024;
/// A rejected body up to this size is read at once, if it is there, so that the connection can stay open.
const DROPPED_BYTES: usize = 256 * 1024;
/// What a client may send while a response is streamed to it: beyond that, it waits for its end.
const AHEAD_BYTES: usize = 16 * 1024;
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
const CHUNKED: &[u8] = b"Transfer-Encoding: chunked\r\n\r\n";
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

pub struct Http1Client<'a> {
    stream: &'a mut ClientStream,
    dates: &'a Dates,
    body: Body,
    /// The length of the body, if the head says it.
    length: usize,
    expects_continue: bool,
    /// The client speaks HTTP/1.0, which has no chunks.
    is_old: bool,
    streams: Streams,
}

/// How a client sees where the body of a streamed response ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delimited {
    Length,
    Chunks,
    Close,
}

/// The response that is being streamed, if there is one.
struct Streams {
    delimited: Delimited,
    next: Next,
}

impl<'a> Http1Client<'a> {
    /// The client of a request whose head has been read from the stream.
    pub fn new(stream: &'a mut ClientStream, dates: &'a Dates, request: &ReceivedRequest) -> Self {
        let length = match request.framing {
            Framing::Length(length) => length as usize,
            Framing::None | Framing::Chunked => 0,
        };
        let body = Body::new(request.framing);
        let streams = Streams { delimited: Delimited::Length, next: Next::Close };
        let ReceivedRequest { expects_continue, is_old, .. } = *request;
        Self { stream, dates, body, length, expects_continue, is_old, streams }
    }

    fn take_buffered(&mut self, bytes: &mut Vec<u8>) -> Result<(), StreamError> {
        let buffered = &mut self.stream.buffered;
        if let Body::Length(missing) = &mut self.body
            && bytes.is_empty()
            && buffered.len() as u64 <= *missing
            && buffered.capacity() - buffered.len() <= buffered.len() / 4
        {
            // All of it is of the body, and it takes little more memory than its length: it need not be copied.
            *missing -= buffered.len() as u64;
            *bytes = std::mem::take(buffered);
            return Ok(());
        }
        let taken = self.body.take(buffered, |data| bytes.extend_from_slice(data))?;
        buffered.drain(..taken);
        Ok(())
    }
}

impl Link for Http1Client<'_> {
    fn is_secure(&self) -> bool {
        self.stream.is_secure()
    }

    fn watch(&self) -> &Watch {
        self.stream.watch()
    }

    async fn until_client_resets<T>(&self, work: impl Future<Output = T>) -> Result<T, StreamError> {
        self.stream.until_client_resets(work).await
    }
}

impl Client for Http1Client<'_> {
    fn is_complete(&self) -> bool {
        self.body.is_complete()
    }

    async fn begin_body(&mut self) -> Result<(), StreamError> {
        if self.expects_continue {
            self.stream.write(CONTINUE).await?;
        }
        self.stream.watch().begin(Phase::Body);
        Ok(())
    }

    async fn read_body(&mut self, bytes: &mut Vec<u8>, limit: usize) -> Result<(), StreamError> {
        match &mut self.body {
            _ if !self.stream.buffered.is_empty() => self.take_buffered(bytes)?,
            Body::Length(missing) => {
                let room = limit.min(*missing as usize);
                // The rest of a long body goes where it belongs.
                if bytes.len() >= self.length / RESERVE_AFTER {
                    bytes.reserve_exact(room);
                }
                let read = self.stream.read_into(bytes, room).await?;
                if read == 0 {
                    return Err(Refusal::not_http().into());
                }
                *missing -= read as u64;
            }
            Body::Chunked(_) => {
                if self.stream.fill().await? == 0 {
                    return Err(Refusal::not_http().into());
                }
                self.take_buffered(bytes)?;
            }
        }
        if self.body.is_complete() {
            self.stream.watch().begin(Phase::Unwatched);
        }
        Ok(())
    }

    fn release_memory(&mut self) {
        self.stream.release_memory();
    }

    async fn send(&mut self, head: ResponseHead<'_>, body: &[u8]) -> Result<Next, StreamError> {
        let next = if head.persistence == Persistence::Close { Next::Close } else { Next::Request };
        let is_small = body.len() <= SMALL_BODY_BYTES;
        let mut bytes = head.bytes(self.dates, if is_small { body.len() } else { 0 });
        if is_small {
            bytes.extend_from_slice(body);
        }
        self.stream.write(&bytes).await?;
        if !is_small {
            self.stream.write(body).await?;
        }
        Ok(next)
    }

    async fn begin_stream(&mut self, head: ResponseHead<'_>) -> Result<(), StreamError> {
        let delimited = match head.content_length {
            Some(_) => Delimited::Length,
            None if self.is_old => Delimited::Close,
            None => Delimited::Chunks,
        };
        let next = if head.persistence == Persistence::Close { Next::Close } else { Next::Request };
        self.streams = Streams { delimited, next };
        let mut bytes = head.bytes(self.dates, CHUNKED.len());
        if delimited == Delimited::Chunks {
            bytes.truncate(bytes.len() - 2);
            bytes.extend_from_slice(CHUNKED);
        }
        self.stream.write(&bytes).await
    }

    async fn send_pieces(&mut self, pieces: Vec<Bytes>) -> Result<(), StreamError> {
        let length: usize = pieces.iter().map(Bytes::len).sum();
        if length == 0 {
            // It would be the last chunk.
            return Ok(());
        }
        let chunk = format!("{length:x}\r\n");
        let mut slices = Vec::with_capacity(pieces.len() + 2);
        slices.extend(pieces.iter().map(|piece| IoSlice::new(piece)));
        if self.streams.delimited == Delimited::Chunks {
            slices.insert(0, IoSlice::new(chunk.as_bytes()));
            slices.push(IoSlice::new(b"\r\n"));
        }
        self.stream.write_vectored(&mut slices).await
    }

    fn can_send_file(&self) -> bool {
        !self.is_secure()
    }

    async fn end_stream(&mut self) -> Result<Next, StreamError> {
        if self.streams.delimited == Delimited::Chunks {
            self.stream.write(LAST_CHUNK).await?;
        }
        Ok(self.streams.next)
    }

    fn cut_off(&mut self) {
        // A connection that is just closed would be the end.
        if self.streams.delimited == Delimited::Close {
            self.stream.reset_on_close();
        }
    }

    async fn until_client_closes<T>(&mut self, work: impl Future<Output = T>) -> Result<T, StreamError> {
        let mut work = pin!(work);
        loop {
            if self.stream.buffered.len() > AHEAD_BYTES {
                return tokio::select! {
                    biased;
                    outcome = work => Ok(outcome),
                    () = self.stream.closed_by_client() => Err(StreamError::Gone),
                };
            }
            tokio::select! {
                biased;
                outcome = &mut work => return Ok(outcome),
                read = self.stream.fill() => if read? == 0 {
                    return Err(StreamError::Gone);
                },
            }
        }
    }

    fn raw(&mut self) -> Option<&mut ClientStream> {
        Some(self.stream)
    }

    /// A client that waits for `100 Continue` does not send its body.
    async fn drop_small_body(&mut self) -> Result<bool, StreamError> {
        let mut dropped = 0;
        while !self.body.is_complete() && !self.expects_continue && dropped < DROPPED_BYTES {
            let taken = self.body.take(&self.stream.buffered, |_| {})?;
            self.stream.buffered.drain(..taken);
            dropped += taken;
            if !self.body.is_complete() && self.stream.fill_at_once().await? == 0 {
                break;
            }
        }
        Ok(self.body.is_complete())
    }

    async fn drop_rest_of_body(&mut self) -> bool {
        let buffered = std::mem::take(&mut self.stream.buffered);
        let body = &mut self.body;
        let mut behind = Vec::new();
        let mut is_over = |bytes: &[u8]| {
            let Ok(taken) = body.take(bytes, |_| {}) else { return true };
            behind.extend_from_slice(&bytes[taken..]);
            body.is_complete()
        };
        if !is_over(&buffered) {
            self.stream.drop_arriving(is_over).await;
        }
        let is_complete = self.body.is_complete();
        if is_complete {
            self.stream.restart_linger();
            self.stream.buffered = behind;
        }
        is_complete
    }
}

/// What has not arrived yet of the body of a request.
enum Body {
    Length(u64),
    Chunked(Chunks),
}

impl Body {
    fn new(framing: Framing) -> Self {
        match framing {
            Framing::None => Self::Length(0),
            Framing::Length(length) => Self::Length(length),
            Framing::Chunked => Self::Chunked(Chunks::default()),
        }
    }

    fn is_complete(&self) -> bool {
        match self {
            Self::Length(length) => *length == 0,
            Self::Chunked(chunks) => chunks.is_done(),
        }
    }

    /// Takes bytes, and passes on the data among them. Returns how many were taken: those behind the body are not.
    ///
    /// # Errors
    /// When they are not chunks.
    fn take(&mut self, bytes: &[u8], mut data: impl FnMut(&[u8])) -> Result<usize, Refusal> {
        match self {
            Self::Length(missing) => {
                let taken = (*missing).min(bytes.len() as u64) as usize;
                *missing -= taken as u64;
                data(&bytes[..taken]);
                Ok(taken)
            }
            Self::Chunked(chunks) => chunks.decode(bytes, data),
        }
    }
}
