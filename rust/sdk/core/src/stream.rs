//! [`StreamResponse`]: an answer whose body is sent piece by piece, while the handler makes it.

use crate::error::HandlerError;
use crate::response::Response;
#[cfg(feature = "async")]
use crate::runtime::asynchronous::body_writer::AsyncBodyWriter;
use crate::runtime::current::CurrentRequest;
use crate::runtime::streams::MAX_PIECE_BYTES;
use std::io::{self, Write};
use std::time::{Duration, Instant};
#[cfg(feature = "async")]
use std::{fmt::Display, future::Future, pin::Pin};

/// Bytes that a writer gathers before it sends them by itself, as long as it takes no longer than `GATHERED_TIME`: each
/// time that it sends wakes the gateway, and the client.
const GATHERED_BYTES: usize = MAX_PIECE_BYTES;
/// The same of a slow one (32 KiB).
const SLOW_BYTES: usize = 32 << 10;
const GATHERED_TIME: Duration = Duration::from_millis(10);

/// An HTTP response whose body is written while the client reads it already. A handler returns it instead of a
/// [`Response`], also in a `Result`.
///
/// The client has the head as soon as the handler has returned, and each piece when the writer is flushed. What the
/// client has not read yet holds the writer back: at most 256 KiB of a stream are under way or wait in the gateway, or
/// 1 MiB while its client is quick. The deadline of the request (`timeout_ms`) is for the time until the handler
/// returns; after that, the time between two pieces counts (`idle_timeout_ms` of the endpoint, a minute unless told
/// otherwise).
///
/// ```no_run
/// use rust_edge_gateway_sdk_core::prelude::*;
/// use std::io::Write;
///
/// fn handle(_req: Request) -> StreamResponse {
///     StreamResponse::new(|out| {
///         for n in 0..1_000_000 {
///             writeln!(out, "{n}")?;
///         }
///         Ok(())
///     })
///     .with_header("Content-Type", "text/plain; charset=utf-8")
/// }
///
/// handler_loop!(handle);
/// ```
///
/// When the client leaves, the next write fails with `BrokenPipe`: return the error. An error of another kind, or a
/// panic, ends the stream in a way that the client sees, and is in the endpoint's log. A stream keeps its thread until
/// it ends: where many clients stay for long, use [`StreamResponse::new_async`].
///
/// A handler that sometimes streams makes one of an ordinary response:
///
/// ```
/// use rust_edge_gateway_sdk_core::prelude::*;
/// let response: StreamResponse = Response::not_found().into();
/// # let _ = response;
/// ```
pub struct StreamResponse {
    pub(crate) head: Response,
    pub(crate) body: StreamBody,
    /// The request that it answers.
    pub(crate) request: CurrentRequest,
}

/// What writes a body.
pub(crate) type WriteBody = Box<dyn FnOnce(&mut BodyWriter) -> io::Result<()> + Send>;
/// What begins to write one, as a task.
#[cfg(feature = "async")]
pub(crate) type StartTask = Box<dyn FnOnce(AsyncBodyWriter) -> Writing + Send>;
/// A task that writes a body.
#[cfg(feature = "async")]
pub(crate) type Writing = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

pub(crate) enum StreamBody {
    /// That of the head.
    Whole,
    Written(WriteBody),
    #[cfg(feature = "async")]
    Task(StartTask),
}

impl StreamResponse {
    /// 200, with a body that `write` writes. It runs when the handler has returned. See [`StreamResponse`].
    pub fn new(write: impl FnOnce(&mut BodyWriter) -> io::Result<()> + Send + 'static) -> Self {
        Self::of(Response::new(200), StreamBody::Written(Box::new(write)))
    }

    /// 200, with a body that a task writes: for `handler_loop_async!`. When the client leaves, the task is dropped at
    /// its next `.await`, and the writer's next write fails with `BrokenPipe`.
    ///
    /// ```no_run
    /// use rust_edge_gateway_sdk_core::prelude::*;
    /// use rust_edge_gateway_sdk_core::tokio::time::{sleep, Duration};
    ///
    /// async fn handle(_req: Request) -> StreamResponse {
    ///     StreamResponse::new_async(|mut out| async move {
    ///         for n in 0..10 {
    ///             out.send(format!("{n}\n")).await?;
    ///             sleep(Duration::from_secs(1)).await;
    ///         }
    ///         Ok(())
    ///     })
    /// }
    ///
    /// handler_loop_async!(handle);
    /// ```
    #[cfg(feature = "async")]
    pub fn new_async<F, Fut>(write: F) -> Self
    where
        F: FnOnce(AsyncBodyWriter) -> Fut + Send + 'static,
        Fut: Future<Output = io::Result<()>> + Send + 'static,
    {
        Self::of(Response::new(200), StreamBody::Task(Box::new(|out| Box::pin(write(out)))))
    }

    /// 200, with a body of the pieces of a stream (`futures_core::Stream`), for `handler_loop_async!`. Its first error
    /// ends the body in a way that the client sees. When the client leaves, the stream is dropped.
    #[cfg(feature = "async")]
    pub fn from_stream<S, B, E>(pieces: S) -> Self
    where
        S: futures_core::Stream<Item = Result<B, E>> + Send + 'static,
        B: AsRef<[u8]> + Send + 'static,
        E: Display + Send + 'static,
    {
        Self::new_async(|mut out| async move {
            let mut pieces = Box::pin(pieces);
            loop {
                let piece = std::future::poll_fn(|context| pieces.as_mut().poll_next(context)).await;
                let Some(piece) = piece else { return Ok(()) };
                let piece = piece.map_err(|error| io::Error::other(error.to_string()));
                out.send(piece?).await?;
            }
        })
    }

    fn of(head: Response, body: StreamBody) -> Self {
        StreamResponse { head, body, request: CurrentRequest::default() }
    }

    /// Sets the status, 200 to 999.
    pub fn with_status(mut self, status: u16) -> Self {
        self.head.status = status;
        self
    }

    /// Sets a header, as [`Response::with_header`]. With `Content-Length`, the client knows how much is to come, and a
    /// body of another length is an error; without it, the length is open.
    pub fn with_header(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.head = self.head.with_header(key, value);
        self
    }

    /// Adds a header beside those of the same name, as [`Response::append_header`].
    pub fn append_header(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.head = self.head.append_header(key, value);
        self
    }
}

impl std::fmt::Debug for StreamResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamResponse").field("head", &self.head).finish_non_exhaustive()
    }
}

impl From<Response> for StreamResponse {
    /// A response that is sent whole.
    fn from(response: Response) -> Self {
        Self::of(response, StreamBody::Whole)
    }
}

impl From<HandlerError> for StreamResponse {
    fn from(error: HandlerError) -> Self {
        Response::from(error).into()
    }
}

/// Takes pieces of a body.
pub(crate) trait Sink {
    /// Sends bytes, once they may be sent.
    fn send(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Whether nobody wants them any more.
    fn is_over(&self) -> bool;
}

/// Writes the body of a [`StreamResponse`]. What is written is sent by `flush`, by itself when it has become 32 KiB (or
/// 128 KiB within a moment), and at the end.
pub struct BodyWriter {
    sink: Box<dyn Sink>,
    gathered: Vec<u8>,
    sent: Instant,
}

impl BodyWriter {
    pub(crate) fn new(sink: Box<dyn Sink>) -> Self {
        BodyWriter { sink, gathered: Vec::new(), sent: Instant::now() }
    }

    /// Whether the client has left: all further writes fail.
    pub fn is_closed(&self) -> bool {
        self.sink.is_over()
    }
}

impl Write for BodyWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.gathered.len() + bytes.len() > GATHERED_BYTES {
            self.flush()?;
        }
        if bytes.len() >= GATHERED_BYTES {
            return self.sink.send(bytes);
        }
        self.gathered.extend_from_slice(bytes);
        let is_much = self.gathered.len() >= GATHERED_BYTES
            || (self.gathered.len() >= SLOW_BYTES && self.sent.elapsed() >= GATHERED_TIME);
        if is_much {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.gathered.is_empty() {
            self.sink.send(&self.gathered)?;
            self.gathered.clear();
            self.sent = Instant::now();
        }
        Ok(())
    }
}
