//! The client of one request of HTTP/1.
use super::body::Body;
use super::client::{Client, Link};
use super::exchange::Next;
use super::guard::{Phase, Watch};
use super::head::Framing;
use super::refusal::Refusal;
use super::request::Request;
use super::response::{Dates, Persistence, ResponseHead};
use super::stream::{Broken, ClientStream};

/// Up to this size a body is written together with the head of the response.
const SMALL_BODY_BYTES: usize = 16 * 1024;
/// That part of a body has to have arrived before there is memory for all of it.
const EARNEST: usize = 16;
/// A rejected body up to this size is read at once, if it is there, so that the connection can stay open.
const DROPPED_BYTES: usize = 256 * 1024;
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

pub struct Http1<'a> {
    stream: &'a mut ClientStream,
    dates: &'a Dates,
    body: Body,
    /// Of the body, if the head says it.
    length: usize,
    expects_continue: bool,
}

impl<'a> Http1<'a> {
    /// The client of a request whose head has been read from the stream.
    pub fn new(stream: &'a mut ClientStream, dates: &'a Dates, request: &Request) -> Self {
        let length = match request.framing {
            Framing::Length(length) => length as usize,
            Framing::None | Framing::Chunked => 0,
        };
        let body = Body::new(request.framing);
        Self { stream, dates, body, length, expects_continue: request.expects_continue }
    }

    fn take_buffered(&mut self, bytes: &mut Vec<u8>) -> Result<(), Broken> {
        let taken = self.body.take(&self.stream.buffered, |data| bytes.extend_from_slice(data))?;
        self.stream.buffered.drain(..taken);
        Ok(())
    }
}

impl Link for Http1<'_> {
    fn is_secure(&self) -> bool {
        self.stream.is_secure()
    }

    fn watch(&self) -> &Watch {
        self.stream.watch()
    }

    async fn unless_reset<T>(&self, work: impl Future<Output = T>) -> Result<T, Broken> {
        self.stream.unless_reset(work).await
    }
}

impl Client for Http1<'_> {
    fn is_complete(&self) -> bool {
        self.body.is_complete()
    }

    async fn begin_body(&mut self) -> Result<(), Broken> {
        if self.expects_continue {
            self.stream.write(CONTINUE).await?;
        }
        self.stream.watch().begin(Phase::Body);
        Ok(())
    }

    async fn read_body(&mut self, bytes: &mut Vec<u8>) -> Result<(), Broken> {
        match &mut self.body {
            _ if !self.stream.buffered.is_empty() => self.take_buffered(bytes)?,
            Body::Length(missing) => {
                // The rest of a long body goes where it belongs.
                if bytes.len() >= self.length / EARNEST {
                    bytes.reserve_exact(*missing as usize);
                }
                let read = self.stream.read_into(bytes, *missing as usize).await?;
                if read == 0 {
                    return Err(Refusal::no_http().into());
                }
                *missing -= read as u64;
            }
            Body::Chunked(_) => {
                if self.stream.fill().await? == 0 {
                    return Err(Refusal::no_http().into());
                }
                self.take_buffered(bytes)?;
            }
        }
        if self.body.is_complete() {
            self.stream.watch().begin(Phase::Unwatched);
        }
        Ok(())
    }

    fn give_back(&mut self) {
        self.stream.give_back();
    }

    async fn send(&mut self, head: ResponseHead<'_>, body: &[u8]) -> Result<Next, Broken> {
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

    /// A client that waits for `100 Continue` does not send its body.
    async fn drop_at_once(&mut self) -> Result<bool, Broken> {
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

    async fn drop_rest(&mut self) {
        let buffered = std::mem::take(&mut self.stream.buffered);
        let body = &mut self.body;
        let mut is_over = |bytes: &[u8]| body.take(bytes, |_| {}).is_err() || body.is_complete();
        if !is_over(&buffered) {
            self.stream.drop_arriving(is_over).await;
        }
    }
}
