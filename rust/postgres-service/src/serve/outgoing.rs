//! Answers that are not sent yet: all of one wakeup are one write.
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite;
use tokio::net::UnixStream;

use super::memory::MemoryBudget;
use crate::wire::{Kind, header};

/// A body above this is handed on as it is instead of being copied.
const COPIED_BODY_BYTES: usize = 16 * 1024;
/// A buffer that has grown beyond this is not kept.
const KEPT_BYTES: usize = 16 * 1024;
/// Pieces in one write.
const PIECES: usize = 8;

#[derive(Default)]
pub struct Outgoing {
    /// Large bodies, and what comes before them.
    parts: VecDeque<Vec<u8>>,
    /// What comes after them.
    last: Vec<u8>,
    /// Bytes of the first of these that are written.
    written: usize,
    length: usize,
    /// Bytes taken from the memory budget: no more than the length.
    counted: usize,
}

impl Outgoing {
    /// Adds a response. The body is counted against the memory budget already; it and the head are within the limits of
    /// a frame.
    pub fn add(&mut self, number: u32, head: &[u8], body: Vec<u8>) {
        let header = header(Kind::Response, number, head.len(), body.len());
        self.last.extend_from_slice(&header);
        self.last.extend_from_slice(head);
        self.length += header.len() + head.len() + body.len();
        self.counted += body.len();
        if body.len() <= COPIED_BODY_BYTES {
            self.last.extend_from_slice(&body);
        } else {
            self.parts.push_back(std::mem::take(&mut self.last));
            self.parts.push_back(body);
        }
    }

    pub fn len(&self) -> usize {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Writes as much as the client takes; ready when that is all, or when the connection is broken.
    pub fn poll_write(
        &mut self,
        context: &mut Context,
        stream: &mut UnixStream,
        memory: &MemoryBudget,
    ) -> Poll<io::Result<()>> {
        while self.length > 0 {
            let stream = Pin::new(&mut *stream);
            let count = if self.parts.is_empty() {
                ready!(stream.poll_write(context, &self.last[self.written..]))?
            } else {
                let mut slices = [IoSlice::new(&[]); PIECES];
                let mut skipped = self.written;
                for (slice, part) in slices.iter_mut().zip(self.parts.iter().chain([&self.last])) {
                    *slice = IoSlice::new(&part[skipped..]);
                    skipped = 0;
                }
                ready!(stream.poll_write_vectored(context, &slices))?
            };
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.advance(count, memory);
        }
        Poll::Ready(Ok(()))
    }

    /// Forgets everything.
    pub fn clear(&mut self, memory: &MemoryBudget) {
        memory.release(self.counted);
        *self = Self::default();
    }

    fn advance(&mut self, count: usize, memory: &MemoryBudget) {
        self.length -= count;
        self.written += count;
        let released = count.min(self.counted);
        self.counted -= released;
        memory.release(released);
        while let Some(first) = self.parts.front() {
            if self.written < first.len() {
                return;
            }
            self.written -= first.len();
            self.parts.pop_front();
        }
        if self.length == 0 {
            self.written = 0;
            self.last.clear();
            if self.last.capacity() > KEPT_BYTES {
                self.last = Vec::new();
            }
        }
    }
}
