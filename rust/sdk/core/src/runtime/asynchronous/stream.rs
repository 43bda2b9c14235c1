//! Sends answers piece by piece, in tasks.

use super::body_writer::{data, AsyncBodyWriter};
use super::connection::{TaskConnection, WriterMessage};
use crate::runtime::current::CurrentRequest;
use crate::runtime::panics::PanicGuard;
use crate::runtime::streaming::{last_frame, outcome, written};
use crate::runtime::streams::{StreamId, MAX_PIECE_BYTES};
use crate::stream::{Sink, StartTask, StreamBody, StreamResponse, WriteBody};
use crate::wire::head;
use std::io;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Answers with a stream. Returns at its end.
pub async fn answer(connection: &TaskConnection, number: u32, stream: StreamResponse) {
    let StreamResponse { head, body, request } = stream;
    let mut begin = Vec::new();
    let is_stream = {
        let _working = request.work_on();
        head::stream(&mut begin, number, &head)
    };
    let Some(id) = connection.begin(number, begin, is_stream) else { return };
    let outcome = match body {
        StreamBody::Whole => Ok(()),
        StreamBody::Written(write) => write_on_thread(connection, id, write, request).await,
        StreamBody::Task(start) => write_as_task(connection, id, start, request).await,
    };
    connection.streams.remove(number);
    connection.send(WriterMessage::Frames(last_frame(number, outcome)));
}

async fn write_on_thread(
    connection: &TaskConnection,
    id: StreamId,
    write: WriteBody,
    request: CurrentRequest,
) -> Result<(), String> {
    let sink = Box::new(TaskSink { connection: connection.clone(), id });
    let writing = tokio::task::spawn_blocking(move || {
        let _working = request.work_on();
        written(write, sink)
    });
    // A panic is caught within.
    writing.await.unwrap_or_else(|error| Err(error.to_string()))
}

async fn write_as_task(
    connection: &TaskConnection,
    id: StreamId,
    start: StartTask,
    request: CurrentRequest,
) -> Result<(), String> {
    let writer = AsyncBodyWriter { connection: connection.clone(), id };
    let started = {
        let _working = request.work_on();
        catch_unwind(AssertUnwindSafe(|| start(writer)))
    };
    let result = match started {
        Ok(future) => {
            let writing = PanicGuard { future, current: request.current() };
            tokio::select! {
                biased;
                result = writing => result,
                // What it does not do any more is dropped.
                () = connection.streams.over(id) => return Err(String::new()),
            }
        }
        Err(_) => None,
    };
    let _working = request.work_on();
    outcome(result, connection.streams.is_over(id))
}

/// The pieces of one stream, from a thread that may be blocked.
struct TaskSink {
    connection: TaskConnection,
    id: StreamId,
}

impl Sink for TaskSink {
    fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let allowed = self.connection.streams.take(self.id, bytes.len().min(MAX_PIECE_BYTES))?;
            let (piece, rest) = bytes.split_at(allowed);
            let placed = self.connection.streams.lock().put(self.id, piece);
            self.connection.send(WriterMessage::Frames(placed.unwrap_or_else(|| data(self.id.number, piece))));
            bytes = rest;
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.connection.streams.is_over(self.id)
    }
}
