//! Answers that are not sent yet: all of one wakeup are one write.
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite;
use tokio::net::UnixStream;

use crate::memory::MemoryBudget;
use edge_wire::{Kind, header};

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
    /// Bytes taken from the memory budget, of those that are not sent.
    counted: usize,
    /// There was no memory for an answer: the connection cannot be used any more.
    is_overflowed: bool,
}

impl Outgoing {
    /// Adds a response. The body is counted against the memory budget already; it and the head are within the limits of
    /// a frame.
    pub fn add(&mut self, number: u32, head: &[u8], body: Vec<u8>, memory: &MemoryBudget) {
        let header = header(Kind::Response, number, head.len(), body.len());
        if !memory.take(header.len() + head.len()) {
            memory.release(body.len());
            self.is_overflowed = true;
            return;
        }
        self.last.extend_from_slice(&header);
        self.last.extend_from_slice(head);
        self.length += header.len() + head.len() + body.len();
        self.counted += header.len() + head.len() + body.len();
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

    pub fn is_overflowed(&self) -> bool {
        self.is_overflowed
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
        // Who always leaves something unread must not make it grow by what was read.
        if self.written > KEPT_BYTES && self.written >= self.last.len() / 2 {
            self.last.drain(..self.written);
            self.written = 0;
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

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;
    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn what_was_sent_is_not_kept() {
        let runtime = Builder::new_current_thread().enable_io().build_local(Default::default()).unwrap();
        runtime.block_on(async {
            let (mut ours, mut theirs) = UnixStream::pair().unwrap();
            let memory = MemoryBudget::new(64 * 1024 * 1024);
            let mut outgoing = Outgoing::default();
            let head = [b'a'; 1024];
            let mut read = vec![0; 256 * 1024];
            // Never all of it is read.
            for number in 0..16 * 1024 {
                outgoing.add(number, &head, Vec::new(), &memory);
                let mut context = Context::from_waker(std::task::Waker::noop());
                let _ = outgoing.poll_write(&mut context, &mut ours, &memory);
                if outgoing.len() > 512 * 1024 {
                    theirs.readable().await.unwrap();
                    let _ = theirs.read(&mut read).await.unwrap();
                    ours.writable().await.unwrap();
                }
            }
            assert!(outgoing.last.capacity() < 4 * 1024 * 1024, "{}", outgoing.last.capacity());
            assert!(!outgoing.is_overflowed());
            outgoing.clear(&memory);
            assert!(memory.take(64 * 1024 * 1024));
        });
    }

    #[test]
    fn heads_are_counted() {
        let memory = MemoryBudget::new(1024);
        let mut outgoing = Outgoing::default();
        outgoing.add(1, &[b'a'; 900], Vec::new(), &memory);
        assert!(!outgoing.is_overflowed());
        outgoing.add(2, &[b'a'; 900], Vec::new(), &memory);
        assert!(outgoing.is_overflowed());
    }
}
