//! A body that a handler sends piece by piece, or a WebSocket, as its reader has it.
use std::future::{pending, poll_fn};
use std::rc::Rc;

use bytes::Bytes;
use edge_wire::{Kind, cost};

use super::stream_buffer::{End, StreamBuffer};
use super::stream_handle::StreamHandle;
use super::upload::SendCredit;

/// Pieces that are taken together.
const MAX_PIECES: usize = 16;

/// The handler is told when this is dropped before its end.
pub struct BodyStream {
    pub buffer: Rc<StreamBuffer>,
    pub handle: StreamHandle,
    /// How much may be sent to the handler of a WebSocket.
    pub send_credit: Option<Rc<SendCredit>>,
}

impl BodyStream {
    /// The next piece; the end when there is none.
    pub async fn next(&mut self) -> Result<Bytes, End> {
        self.next_frame().await.map(|(_, piece)| piece)
    }

    /// All pieces that are there, at least one; the end when there is none.
    pub async fn next_pieces(&mut self) -> Result<Vec<Bytes>, End> {
        let mut pieces = vec![self.next().await?];
        let more = std::iter::from_fn(|| self.buffer.next_piece());
        pieces.extend(more.take(MAX_PIECES - 1).map(|(_, piece)| piece));
        Ok(pieces)
    }

    /// Resolves when the stream is to end, whatever its client has not taken yet; why.
    pub async fn drained(&self) -> &'static str {
        self.buffer.drained().await
    }

    /// The next frame of a WebSocket; the end when there is none.
    pub async fn next_frame(&self) -> Result<(Kind, Bytes), End> {
        poll_fn(|cx| self.buffer.poll_next(cx)).await
    }

    /// The same, if it is there.
    pub fn next_frame_at_once(&self) -> Option<Result<(Kind, Bytes), End>> {
        self.buffer.next()
    }

    /// How many bytes of messages may be sent to the handler.
    pub fn sendable(&self) -> usize {
        self.send_credit.as_ref().map_or(0, |send_credit| send_credit.bytes())
    }

    /// Waits until more may be sent than so many bytes.
    pub async fn more_sendable(&self, bytes: usize) {
        match &self.send_credit {
            Some(send_credit) => send_credit.exceeds(bytes).await,
            None => pending().await,
        }
    }

    /// Sends a frame of a WebSocket to the handler, which may be no longer than `sendable`.
    pub fn send(&self, kind: Kind, payload: &[u8]) {
        if let Some(send_credit) = &self.send_credit {
            send_credit.spend(cost(kind, payload.len()));
        }
        self.handle.carrier.send_frame(self.handle.number, kind, payload);
    }

    /// Its handler may be given memory that the kernel sends large pieces from. They may change at any time: nothing
    /// else may be done with them than to send them.
    pub fn may_have_memory(&self) {
        self.buffer.may_have_memory();
    }

    /// Gives the handler memory, if that is worth it by now.
    pub fn give_memory(&self) {
        if !self.buffer.is_worth_memory() || !self.handle.carrier.is_streaming(self.handle.number) {
            return;
        }
        if let Some(given) = self.buffer.take_memory(self.handle.carrier.memories()) {
            self.handle.carrier.give_memory(self.handle.number, given);
        }
    }

    /// So many bytes are not needed any more: the handler may send as many.
    pub fn consumed(&self, bytes: usize) {
        self.handle.carrier.give_credit(self.handle.number, self.buffer.consumed(bytes) as u32);
    }
}

impl Drop for BodyStream {
    fn drop(&mut self) {
        self.handle.carrier.drop_stream(self.handle.number);
    }
}
