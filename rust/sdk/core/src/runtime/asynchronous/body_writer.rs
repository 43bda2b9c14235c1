//! [`AsyncBodyWriter`]: the pieces of a stream, from a task.

use super::connection::{TaskConnection, WriterMessage};
use crate::runtime::streams::{StreamId, StreamTable, MAX_PIECE_BYTES};
use crate::wire::frame::{header, Kind, MAX_DATA_BYTES};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::AsyncWrite;

/// Writes the body of a [`StreamResponse`](crate::StreamResponse) from a task. What is written is sent at once; a write
/// waits while the client has not read what was written before. It is also a [`tokio::io::AsyncWrite`], for
/// `tokio::io::copy` and the like.
pub struct AsyncBodyWriter {
    pub(super) connection: TaskConnection,
    pub(super) id: StreamId,
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
        self.connection.streams.is_over(self.id)
    }

    /// Resolves when the client has left, or the stream has ended: for tasks that the stream has started. What it
    /// awaits itself is dropped then.
    pub async fn closed(&self) {
        self.connection.streams.over(self.id).await
    }

    async fn send_bytes(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let sent = poll_fn(|context| self.poll_send(context, bytes)).await?;
            bytes = &bytes[sent..];
        }
        Ok(())
    }

    fn poll_send(&self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let max = bytes.len().min(MAX_PIECE_BYTES);
        let send = |table: &mut StreamTable, allowed| {
            let piece = &bytes[..allowed];
            let placed = table.put(self.id, piece);
            self.connection.send(WriterMessage::Frames(placed.unwrap_or_else(|| data(self.id.number, piece))));
        };
        self.connection.streams.poll_send(self.id, max, context, send)
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

/// A piece of a stream, in as many frames as it takes.
pub fn data(number: u32, bytes: &[u8]) -> Vec<u8> {
    let frame = |piece: &[u8]| [&header(Kind::Data, number, 0, piece.len())[..], piece].concat();
    bytes.chunks(MAX_DATA_BYTES).flat_map(frame).collect()
}
