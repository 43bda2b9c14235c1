//! What a connection sends to the gateway: frames of streams are written at once, answers are collected and written
//! together.

use super::threads::lock;
use super::vectored;
use crate::response::Response;
use crate::wire::frame::{header, Kind, MAX_DATA_BYTES};
use crate::wire::head;
use std::io::{self, IoSlice};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;

/// Answers are written when this many bytes are buffered, or earlier when there is nothing else to do.
const FLUSH_BYTES: usize = 64 * 1024;
/// A body up to this size is copied behind its head; a larger one is written from where it is.
const COPY_BYTES: usize = 16 * 1024;
/// A buffer grown beyond this is freed.
const KEEP_BYTES: usize = 2 * FLUSH_BYTES;

/// Answers not yet written. What fails here, fails because the gateway has closed the connection.
#[derive(Default)]
pub struct Outgoing {
    /// Held while writing.
    buffered: Mutex<Vec<u8>>,
}

impl Outgoing {
    /// Writes the buffered answers.
    pub fn flush(&self, stream: &UnixStream) -> io::Result<()> {
        let mut buffered = lock(&self.buffered);
        if buffered.is_empty() {
            return Ok(());
        }
        write_out(stream, &mut buffered, b"")
    }

    /// Buffers the answer to a request, and writes the buffer if `now` or if it is large enough.
    pub fn answer(&self, stream: &UnixStream, number: u32, response: Response, now: bool) -> io::Result<()> {
        let mut buffered = lock(&self.buffered);
        let body = head::response(&mut buffered, number, response);
        if body.len() > COPY_BYTES || now || buffered.len() + body.len() > FLUSH_BYTES {
            return write_out(stream, &mut buffered, &body);
        }
        buffered.extend_from_slice(&body);
        Ok(())
    }

    /// Writes at once what `add` puts behind the buffered answers. Nothing else is written before it has been called.
    pub fn write(&self, stream: &UnixStream, add: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let mut buffered = lock(&self.buffered);
        add(&mut buffered);
        write_out(stream, &mut buffered, b"")
    }

    /// Writes a frame at once.
    pub fn write_frame(&self, stream: &UnixStream, header: &[u8], body: &[u8]) -> io::Result<()> {
        let mut buffered = lock(&self.buffered);
        buffered.extend_from_slice(header);
        write_out(stream, &mut buffered, body)
    }

    /// Writes a part of a stream at once, in as many frames as it takes.
    pub fn write_data(&self, stream: &UnixStream, number: u32, bytes: &[u8]) -> io::Result<()> {
        let mut buffered = lock(&self.buffered);
        let pieces = || bytes.chunks(MAX_DATA_BYTES);
        let headers: Vec<_> = pieces().map(|piece| header(Kind::Data, number, 0, piece.len())).collect();
        let frames = headers.iter().zip(pieces()).flat_map(|(header, piece)| [&header[..], piece]);
        let mut slices: Vec<_> = [&buffered[..]].into_iter().chain(frames).map(IoSlice::new).collect();
        let result = vectored::write_all(stream, &mut slices);
        clear(&mut buffered);
        result
    }

    /// Whether a thread is writing.
    #[cfg(test)]
    pub fn is_writing(&self) -> bool {
        self.buffered.try_lock().is_err()
    }
}

/// Writes the buffered answers and, behind them, a body.
fn write_out(stream: &UnixStream, buffered: &mut Vec<u8>, body: &[u8]) -> io::Result<()> {
    let result = if body.len() <= COPY_BYTES {
        buffered.extend_from_slice(body);
        vectored::write_all(stream, &mut [IoSlice::new(buffered)])
    } else {
        vectored::write_all(stream, &mut [IoSlice::new(buffered), IoSlice::new(body)])
    };
    clear(buffered);
    result
}

/// They are written. A buffer that has grown is freed.
fn clear(buffered: &mut Vec<u8>) {
    if buffered.capacity() > KEEP_BYTES {
        *buffered = Vec::new();
    } else {
        buffered.clear();
    }
}
