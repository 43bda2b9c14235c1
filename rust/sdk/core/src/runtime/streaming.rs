//! Sends an answer piece by piece, on the thread that has made the call.

use super::answer::OutgoingAnswer;
use super::gateway_connection::GatewayConnection;
use super::streams::{StreamId, MAX_PIECE_BYTES};
use super::waiting::Waiter;
use super::workers::Workers;
use super::{panics, records};
use crate::stream::{BodyWriter, Sink, StreamBody, StreamResponse, WriteBody};
use crate::wire::frame::{header, Kind, MAX_REASON_BYTES};
use std::io::{self, Write};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;

/// Why a stream ends before its end, for the gateway.
const PANICKED: &str = "the handler panicked while it wrote its response";

/// The pieces of one stream on a connection of [`GatewayConnection`].
struct ConnectionSink {
    waiter: Waiter,
    id: StreamId,
}

impl Sink for ConnectionSink {
    fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.waiter.look();
        while !bytes.is_empty() {
            let (allowed, rest) = bytes.split_at(self.take(bytes.len().min(MAX_PIECE_BYTES))?);
            self.waiter.connection.write_data(self.id, allowed);
            bytes = rest;
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.waiter.look();
        self.waiter.connection.streams.is_over(self.id)
    }
}

impl ConnectionSink {
    /// Waits until bytes may be sent, at most `max`.
    fn take(&self, max: usize) -> io::Result<usize> {
        self.waiter.wait_for(|table| Ok(Some(table.take(self.id, max)?).filter(|&bytes| bytes > 0)))
    }
}

/// Answers with a stream, and returns at its end.
pub fn answer(workers: &'static Workers, connection: &Arc<GatewayConnection>, number: u32, stream: StreamResponse) {
    let StreamResponse { head, body, request } = stream;
    let _working = request.work_on();
    let StreamBody::Written(write) = body else {
        let text = "an async stream is an answer for handler_loop_async! only";
        records::error(text, serde_json::Map::new());
        if let OutgoingAnswer::Whole(response) = panics::answer() {
            connection.answer(number, response, true);
        }
        return;
    };
    let Some(id) = connection.begin_stream(number, &head) else { return };
    // It takes as long as its client likes.
    workers.request_thread(connection);
    let sink = ConnectionSink { waiter: Waiter { workers, connection: connection.clone() }, id };
    connection.end_stream(number, &last_frame(number, written(write, Box::new(sink))));
}

/// Writes a body to its end. An error is in the log, unless nobody wants the body any more: then the error has no text.
///
/// # Errors
/// Why there is no end, for the gateway.
pub fn written(write: WriteBody, sink: Box<dyn Sink>) -> Result<(), String> {
    let mut writer = BodyWriter::new(sink);
    let result = catch_unwind(AssertUnwindSafe(|| {
        write(&mut writer)?;
        writer.flush()
    }));
    outcome(result.ok(), writer.is_closed())
}

/// What became of a body; `None` if it panicked. See [`written`].
///
/// # Errors
/// Why there is no end, for the gateway.
pub fn outcome(result: Option<io::Result<()>>, is_over: bool) -> Result<(), String> {
    match result {
        Some(Ok(())) => Ok(()),
        _ if is_over => Err(String::new()),
        Some(Err(error)) => {
            records::error(&format!("a streamed response has failed: {error}"), serde_json::Map::new());
            Err(format!("its stream has failed: {error}"))
        }
        None => Err(PANICKED.to_owned()),
    }
}

/// The last frame of a stream: its end, or a reset that says why there is none.
pub fn last_frame(number: u32, outcome: Result<(), String>) -> Vec<u8> {
    let Err(reason) = outcome else { return header(Kind::End, number, 0, 0).to_vec() };
    let mut length = reason.len().min(MAX_REASON_BYTES);
    while !reason.is_char_boundary(length) {
        length -= 1;
    }
    [&header(Kind::Reset, number, 0, length)[..], &reason.as_bytes()[..length]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::frame::HEADER_BYTES;

    #[test]
    fn a_long_reason_is_cut_between_two_characters() {
        let frame = last_frame(1, Err("ä".repeat(MAX_REASON_BYTES)));
        assert_eq!(frame.len(), HEADER_BYTES + MAX_REASON_BYTES);
        let frame = last_frame(1, Err(format!("a{}", "ä".repeat(MAX_REASON_BYTES))));
        assert_eq!(frame.len(), HEADER_BYTES + MAX_REASON_BYTES - 1);
        assert!(std::str::from_utf8(&frame[HEADER_BYTES..]).is_ok());
    }
}
