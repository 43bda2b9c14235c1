//! Sends answers piece by piece, and takes the bodies of requests so, in tasks.

use super::{Answers, Guarded, Outgoing};
use crate::runtime::bodies::{Arrived, BodyId, Taken};
use crate::runtime::streaming::{last_frame, outcome, written};
use crate::runtime::streams::{StreamId, Table};
use crate::stream::{Body, Sink, Start, StreamResponse, WriteBody, GATHERED_BYTES};
use crate::wire::frame::{header, Kind, MAX_DATA_BYTES};
use crate::wire::head;
use std::future::poll_fn;
use std::io;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::AsyncWrite;

use crate::runtime::{blocking, CurrentRequest};

/// Answers with a stream. Returns at its end.
pub async fn answer(answers: &Answers, number: u32, stream: StreamResponse) {
    let StreamResponse { head, body, request } = stream;
    let mut begin = Vec::new();
    let is_stream = {
        let _working = request.work_on();
        head::stream(&mut begin, number, &head)
    };
    let Some(id) = answers.begin(number, begin, is_stream) else { return };
    let outcome = match body {
        Body::Whole => Ok(()),
        Body::Written(write) => write_on_thread(answers, id, write, request).await,
        Body::Task(start) => write_as_task(answers, id, start, request).await,
    };
    answers.streams.remove(number);
    answers.send(Outgoing::Frames(last_frame(number, outcome)));
}

async fn write_on_thread(
    answers: &Answers,
    id: StreamId,
    write: WriteBody,
    request: CurrentRequest,
) -> Result<(), String> {
    let sink = Box::new(TaskSink { answers: answers.clone(), id });
    let writing = tokio::task::spawn_blocking(move || {
        let _working = request.work_on();
        written(write, sink)
    });
    // A panic is caught within.
    writing.await.unwrap_or_else(|error| Err(error.to_string()))
}

async fn write_as_task(answers: &Answers, id: StreamId, start: Start, request: CurrentRequest) -> Result<(), String> {
    let writer = AsyncBodyWriter { answers: answers.clone(), id };
    let started = {
        let _working = request.work_on();
        catch_unwind(AssertUnwindSafe(|| start(writer)))
    };
    let result = match started {
        Ok(future) => {
            let writing = Guarded { future, current: request.current() };
            tokio::select! {
                biased;
                result = writing => result,
                // What it does not do any more is dropped.
                () = answers.streams.over(id) => return Err(String::new()),
            }
        }
        Err(_) => None,
    };
    let _working = request.work_on();
    outcome(result, answers.streams.is_over(id))
}

/// The body of a request, which arrives on a connection.
pub struct TaskBody {
    pub(super) answers: Answers,
    pub(super) id: BodyId,
}

impl TaskBody {
    /// That of a request which has just come.
    pub(super) fn open(answers: &Answers, number: u32) -> Self {
        TaskBody { answers: answers.clone(), id: answers.streams.open_body(number) }
    }

    /// The next piece, which is waited for, and what it is; `None` at the end.
    ///
    /// # Errors
    /// `ConnectionAborted` when the body has no end.
    pub fn next(&mut self) -> io::Result<Arrived> {
        // The task that reads the connection may be one of this thread.
        blocking(|| self.answers.streams.take_of_body(self.id)).map(|taken| self.credited(taken))
    }

    /// The same for a task.
    pub fn poll_next(&mut self, context: &Context<'_>) -> Poll<io::Result<Arrived>> {
        self.answers.streams.poll_of_body(self.id, context).map_ok(|taken| self.credited(taken))
    }

    fn credited(&self, taken: Taken) -> Arrived {
        let Taken::Piece { kind, bytes, credit } = taken else { return None };
        self.answers.give_credit(self.id.number, credit);
        Some((kind, bytes))
    }
}

impl Drop for TaskBody {
    fn drop(&mut self) {
        let credit = self.answers.streams.close_body(self.id);
        self.answers.give_credit(self.id.number, credit);
    }
}

/// The pieces of one stream, from a thread that may be blocked.
struct TaskSink {
    answers: Answers,
    id: StreamId,
}

impl Sink for TaskSink {
    fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let allowed = self.answers.streams.take(self.id, bytes.len().min(GATHERED_BYTES))?;
            let (piece, rest) = bytes.split_at(allowed);
            let placed = self.answers.streams.lock().put(self.id, piece);
            self.answers.send(Outgoing::Frames(placed.unwrap_or_else(|| data(self.id.number, piece))));
            bytes = rest;
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.answers.streams.is_over(self.id)
    }
}

fn data(number: u32, bytes: &[u8]) -> Vec<u8> {
    let frame = |piece: &[u8]| [&header(Kind::Data, number, 0, piece.len())[..], piece].concat();
    bytes.chunks(MAX_DATA_BYTES).flat_map(frame).collect()
}

/// Writes the body of a [`StreamResponse`] from a task. What is written is sent at once; a write waits while the client
/// has not read what was written before. It is also a [`tokio::io::AsyncWrite`], for `tokio::io::copy` and the like.
pub struct AsyncBodyWriter {
    answers: Answers,
    id: StreamId,
}

impl AsyncBodyWriter {
    /// Sends bytes.
    ///
    /// # Errors
    /// `BrokenPipe` when the client has left, or the stream has ended.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.send_bytes(bytes.as_ref()).await
    }

    /// Whether the client has left, or the stream has ended: all further writes fail.
    pub fn is_closed(&self) -> bool {
        self.answers.streams.is_over(self.id)
    }

    /// Resolves when the client has left, or the stream has ended: for tasks that the stream has started. What it
    /// awaits itself is dropped then.
    pub async fn closed(&self) {
        self.answers.streams.over(self.id).await
    }

    async fn send_bytes(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let sent = poll_fn(|context| self.poll_send(context, bytes)).await?;
            bytes = &bytes[sent..];
        }
        Ok(())
    }

    fn poll_send(&self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let max = bytes.len().min(GATHERED_BYTES);
        let send = |table: &mut Table, allowed| {
            let piece = &bytes[..allowed];
            let placed = table.put(self.id, piece);
            self.answers.send(Outgoing::Frames(placed.unwrap_or_else(|| data(self.id.number, piece))));
        };
        self.answers.streams.poll_send(self.id, max, context, send)
    }
}

impl AsyncWrite for AsyncBodyWriter {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match bytes.is_empty() {
            true => Poll::Ready(Ok(0)),
            false => self.poll_send(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
