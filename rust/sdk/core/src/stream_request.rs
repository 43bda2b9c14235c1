//! [`StreamRequest`]: a request whose body a handler reads piece by piece, while the client still sends it.

use crate::request::Request;
use crate::runtime::body_source::BodySource;
use std::io::{self, BufRead, Read};
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

/// A request whose body is read while it arrives. A handler takes it instead of a [`Request`].
///
/// It has the members of a [`Request`]: `req.path`, `req.header("...")`. The body is not among them: `req.body` is
/// `None`, and [`StreamRequest::body_reader`] reads it, however short or long it is. What is not read yet holds the
/// client back: at most 256 KiB wait here, and some more in the gateway, so that a body may be larger than all memory.
///
/// ```no_run
/// use rust_edge_gateway_sdk_core::prelude::*;
///
/// fn handle(req: StreamRequest) -> Result<Response, HandlerError> {
///     let mut file = std::fs::File::create("/tmp/upload")?;
///     let bytes = std::io::copy(&mut req.body_reader(), &mut file)?;
///     Ok(Response::created(json!({"bytes": bytes})))
/// }
///
/// handler_loop_result!(handle);
/// ```
///
/// A handler may answer before the body has come to its end: the rest is dropped. Together with a
/// [`crate::StreamResponse`], both directions go on at the same time. The deadline of the request (`timeout_ms`) begins
/// at the end of the body; before that, the time between two pieces counts (`idle_timeout_ms` of the endpoint).
///
/// Bodies of up to 256 KiB whose length the client has said arrive whole, before the handler is called; so do all
/// others where a policy of the endpoint checks bodies, or while an older version of the handler serves beside it.
pub struct StreamRequest {
    head: Request,
    source: Mutex<Option<BodySource>>,
}

impl StreamRequest {
    pub(crate) fn new(head: Request, source: BodySource) -> Self {
        StreamRequest { head, source: Mutex::new(Some(source)) }
    }

    /// Reads the body, also in a thread of its own, or while a [`crate::StreamResponse`] is written. There is one
    /// reader: the next ones fail. In an async handler, use [`StreamRequest::async_body_reader`].
    pub fn body_reader(&self) -> BodyReader {
        BodyReader { source: self.take_source(), piece: Vec::new(), at: 0 }
    }

    /// The same for `handler_loop_async!`.
    #[cfg(feature = "async")]
    pub fn async_body_reader(&self) -> AsyncBodyReader {
        AsyncBodyReader { source: self.take_source(), piece: Vec::new(), at: 0 }
    }

    fn take_source(&self) -> BodySource {
        self.source.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or(BodySource::HasReader)
    }
}

impl Deref for StreamRequest {
    type Target = Request;

    fn deref(&self) -> &Request {
        &self.head
    }
}

impl From<Request> for StreamRequest {
    /// A request that has arrived whole: for the tests of a handler.
    fn from(mut head: Request) -> Self {
        let body = BodySource::Whole(head.take_body());
        Self::new(head, body)
    }
}

impl std::fmt::Debug for StreamRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamRequest").field("head", &self.head).finish_non_exhaustive()
    }
}

/// Reads the body of a [`StreamRequest`]. A read waits until a piece has arrived. It fails with `ConnectionAborted`
/// when no more comes though the body is not complete: the client has left, has sent nothing for too long, or more than
/// it may, as the text of the error says. It may be dropped before the end: what still comes is dropped, too.
pub struct BodyReader {
    source: BodySource,
    /// What is left of it begins at `at`.
    piece: Vec<u8>,
    at: usize,
}

impl BodyReader {
    /// The next piece, at most 32 KiB of a body that is still arriving; `None` at the end.
    ///
    /// # Errors
    /// See [`BodyReader`].
    pub fn next_piece(&mut self) -> io::Result<Option<Vec<u8>>> {
        match left_of(&mut self.piece, &mut self.at) {
            Some(left) => Ok(Some(left)),
            None => self.source.next(),
        }
    }
}

impl BufRead for BodyReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.piece.len() {
            self.at = 0;
            self.piece.clear();
            self.piece = self.source.next()?.unwrap_or_default();
        }
        Ok(&self.piece[self.at..])
    }

    fn consume(&mut self, bytes: usize) {
        self.at = self.piece.len().min(self.at + bytes);
    }
}

impl Read for BodyReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(into)?;
        self.consume(read);
        Ok(read)
    }
}

/// What is left of a piece, if anything is.
fn left_of(piece: &mut Vec<u8>, at: &mut usize) -> Option<Vec<u8>> {
    let at = std::mem::take(at);
    let mut left = std::mem::take(piece);
    left.drain(..at);
    (!left.is_empty()).then_some(left)
}

#[cfg(feature = "async")]
pub use asynchronous::AsyncBodyReader;

#[cfg(feature = "async")]
mod asynchronous {
    use super::{left_of, BodySource};
    use std::future::poll_fn;
    use std::io;
    use std::pin::Pin;
    use std::task::{ready, Context, Poll};
    use tokio::io::{AsyncRead, ReadBuf};

    /// Reads the body of a [`super::StreamRequest`] in a task. See [`super::BodyReader`] for how it fails. It is also a
    /// [`tokio::io::AsyncRead`], for `tokio::io::copy` and the like.
    pub struct AsyncBodyReader {
        pub(super) source: BodySource,
        pub(super) piece: Vec<u8>,
        pub(super) at: usize,
    }

    impl AsyncBodyReader {
        /// The next piece, at most 32 KiB of a body that is still arriving; `None` at the end. A future that is dropped
        /// has taken nothing.
        ///
        /// # Errors
        /// See [`super::BodyReader`].
        pub async fn next_piece(&mut self) -> io::Result<Option<Vec<u8>>> {
            match left_of(&mut self.piece, &mut self.at) {
                Some(left) => Ok(Some(left)),
                None => poll_fn(|context| self.source.poll_next(context)).await,
            }
        }
    }

    impl AsyncRead for AsyncBodyReader {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            into: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            if self.at == self.piece.len() {
                self.at = 0;
                self.piece.clear();
                self.piece = ready!(self.source.poll_next(context))?.unwrap_or_default();
            }
            let length = into.remaining().min(self.piece.len() - self.at);
            into.put_slice(&self.piece[self.at..self.at + length]);
            self.at += length;
            Poll::Ready(Ok(()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(body: &[u8]) -> StreamRequest {
        let mut request = Request { path: "/upload".to_owned(), ..Request::default() };
        request.set_body_bytes(body);
        request.into()
    }

    #[test]
    fn a_whole_body_comes_through_the_reader() {
        for body in [&b"text"[..], b"\xff\x00", b""] {
            let request = request(body);
            assert_eq!((&*request.path, &request.head.body), ("/upload", &None));
            let mut reader = request.body_reader();
            let mut first = [0; 1];
            let read = reader.read(&mut first).unwrap();
            let rest = reader.next_piece().unwrap().unwrap_or_default();
            assert_eq!([&first[..read], &rest].concat(), body);
            assert!(reader.next_piece().unwrap().is_none());
            assert!(reader.next_piece().unwrap().is_none());
        }
    }

    #[test]
    fn lines_are_read_and_a_second_reader_fails() {
        let request = request(b"a\nb");
        let lines: Vec<_> = request.body_reader().lines().map(Result::unwrap).collect();
        assert_eq!(lines, ["a", "b"]);
        assert!(request.body_reader().next_piece().unwrap_err().to_string().contains("already"));
    }
}
