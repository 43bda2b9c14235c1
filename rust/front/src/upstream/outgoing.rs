//! Frames that wait to be written to a handler. All frames of one turn of the thread are one write.
use std::cell::RefCell;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use edge_wire::{HEADER_BYTES, Kind, MAX_BODY_BYTES, MAX_HEAD_BYTES, header};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::OwnedWriteHalf;

use super::shared_memory::send_with;
use crate::memory::MemoryShare;

/// A body above this is written from where it is instead of being copied.
const COPIED_BODY_BYTES: usize = 16 * 1024;
/// A buffer up to this size is kept for the next frames of the connection.
const KEPT_BYTES: usize = 32 * 1024;
/// A buffer up to this size is kept for the next frames of any connection of the thread.
const SHARED_BYTES: usize = 2 * 1024 * 1024;

thread_local! {
    static SHARED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Heads and small bodies that wait to be written: those of 1,000 large requests. A handler that takes no more does not
/// read. Larger bodies have a share of the memory for bodies.
const FULL_BYTES: usize = 16 * 1024 * 1024;

/// The body of a request, with the memory that it takes: until it is written, also if nobody waits for it any more.
#[derive(Default)]
pub struct RequestBody {
    pub bytes: Vec<u8>,
    _share: Option<MemoryShare>,
}

impl RequestBody {
    pub fn new(bytes: Vec<u8>, share: Option<MemoryShare>) -> Self {
        Self { bytes, _share: share }
    }
}

impl AsRef<[u8]> for RequestBody {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Bytes to write.
pub enum Piece {
    Buffer(Vec<u8>),
    Body(Arc<RequestBody>),
    /// A whole frame, with the descriptor that it is about.
    WithFile(Vec<u8>, OwnedFd),
}

impl Piece {
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Buffer(bytes) | Self::WithFile(bytes, _) => bytes,
            Self::Body(body) => &body.bytes,
        }
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// How many bytes were written before it failed.
    pub async fn write_to(&self, writer: &mut OwnedWriteHalf) -> Result<(), usize> {
        let bytes = self.as_slice();
        let mut written = match self {
            // Too many descriptors may be on their way to handlers that do not read: it goes without then.
            Self::WithFile(_, file) => send_with(writer.as_ref(), bytes, file).await.unwrap_or(0),
            _ => 0,
        };
        while written < bytes.len() {
            match writer.write(&bytes[written..]).await {
                Ok(more @ 1..) => written += more,
                _ => return Err(written),
            }
        }
        Ok(())
    }
}

#[derive(Default)]
pub struct Outgoing {
    pieces: VecDeque<Piece>,
    /// What comes after the pieces.
    buffer: Vec<u8>,
    spare: Vec<u8>,
    /// Bytes of all that is not a body.
    copied: usize,
    /// Numbers of the requests of which nothing has been written.
    pub unsent: Vec<u32>,
    /// Numbers of those that begin in the piece that was taken last, or behind it.
    in_last_piece: Vec<u32>,
}

impl Outgoing {
    /// Whether so much waits that nothing is to be added.
    pub fn is_full(&self) -> bool {
        self.copied >= FULL_BYTES
    }

    /// Adds a request.
    pub fn add(&mut self, number: u32, head: &[u8], body: &Arc<RequestBody>) {
        let before = self.buffer.len();
        let is_copied = body.bytes.len() <= COPIED_BODY_BYTES;
        let needed = before + HEADER_BYTES + head.len() + if is_copied { body.bytes.len() } else { 0 };
        if needed > self.buffer.capacity() {
            self.grow(needed);
        }
        self.buffer.extend_from_slice(&header(Kind::Request, number, head.len(), body.bytes.len()));
        self.buffer.extend_from_slice(head);
        if is_copied {
            self.buffer.extend_from_slice(&body.bytes);
        }
        self.copied += self.buffer.len() - before;
        if !is_copied {
            self.pieces.push_back(Piece::Buffer(std::mem::take(&mut self.buffer)));
            self.pieces.push_back(Piece::Body(body.clone()));
        }
        self.unsent.push(number);
    }

    /// Adds the head of a request whose body follows.
    pub fn add_head(&mut self, number: u32, head: &[u8]) {
        self.buffer.extend_from_slice(&header(Kind::Open, number, head.len(), 0));
        self.buffer.extend_from_slice(head);
        self.copied += HEADER_BYTES + head.len();
        self.unsent.push(number);
    }

    /// Adds a piece of a body that follows; a whole frame.
    pub fn add_piece(&mut self, frame: RequestBody) {
        self.push(Piece::Body(Arc::new(frame)));
    }

    /// Adds a whole frame, with the descriptor that it is about.
    pub fn add_with_file(&mut self, frame: &[u8], file: OwnedFd) {
        self.push(Piece::WithFile(frame.to_vec(), file));
    }

    /// Adds a piece behind what is in the buffer.
    fn push(&mut self, piece: Piece) {
        if !self.buffer.is_empty() {
            self.pieces.push_back(Piece::Buffer(std::mem::take(&mut self.buffer)));
        }
        self.pieces.push_back(piece);
    }

    /// Adds a whole frame about a stream.
    pub fn add_frame(&mut self, frame: &[u8]) {
        self.buffer.extend_from_slice(frame);
        self.copied += frame.len();
    }

    /// The next bytes to write.
    pub fn take(&mut self) -> Option<Piece> {
        self.in_last_piece.clear();
        std::mem::swap(&mut self.in_last_piece, &mut self.unsent);
        let piece = match self.pieces.pop_front() {
            Some(piece) => piece,
            None if self.buffer.is_empty() => return None,
            None => Piece::Buffer(std::mem::replace(&mut self.buffer, std::mem::take(&mut self.spare))),
        };
        if let Piece::Buffer(bytes) = &piece {
            self.copied -= bytes.len();
        }
        Some(piece)
    }

    /// Nothing of the piece that was taken last has been written.
    pub fn put_back(&mut self) {
        self.unsent.append(&mut self.in_last_piece);
    }

    /// Takes memory back that has been written.
    pub fn recycle(&mut self, piece: Piece) {
        match piece {
            Piece::Buffer(mut bytes) if bytes.capacity() <= KEPT_BYTES => {
                bytes.clear();
                self.spare = bytes;
            }
            Piece::Buffer(mut bytes) if bytes.capacity() <= SHARED_BYTES => {
                bytes.clear();
                SHARED.with_borrow_mut(|shared| {
                    if bytes.capacity() > shared.capacity() {
                        *shared = bytes;
                    }
                });
            }
            _ => {}
        }
    }

    /// A large buffer, of many frames at once, is new only when nobody has left one.
    fn grow(&mut self, needed: usize) {
        let mut larger = if needed > KEPT_BYTES { SHARED.take() } else { Vec::new() };
        if larger.capacity() < needed {
            self.buffer.reserve(needed - self.buffer.len());
        } else {
            larger.extend_from_slice(&self.buffer);
            self.buffer = larger;
        }
    }
}

/// What is wrong with a request that fits into no frame.
pub fn problem(head: &[u8], body: &[u8]) -> Option<String> {
    let too_long = |part, length, limit| format!("{part} length {length} is over the limit of {limit}");
    if head.len() > MAX_HEAD_BYTES {
        Some(too_long("Head", head.len(), MAX_HEAD_BYTES))
    } else if body.len() > MAX_BODY_BYTES {
        Some(too_long("Body", body.len(), MAX_BODY_BYTES))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::memory::MemoryBudget;

    #[test]
    fn a_body_has_its_memory_until_it_is_written() {
        let memory = Arc::new(MemoryBudget::new(100_000));
        let is_free = || MemoryShare::new(memory.clone(), None).set(100_000);
        let mut share = MemoryShare::new(memory.clone(), None);
        assert!(share.set(100_000));
        let mut outgoing = Outgoing::default();
        outgoing.add(1, b"{}", &Arc::new(RequestBody::new(vec![7; 100_000], Some(share))));
        assert!(!is_free());
        while let Some(piece) = outgoing.take() {
            outgoing.recycle(piece);
        }
        assert!(is_free());
    }

    #[test]
    fn no_more_than_a_limit_waits_besides_bodies() {
        let body = |bytes| Arc::new(RequestBody::new(vec![7; bytes], None));
        let mut outgoing = Outgoing::default();
        outgoing.add(0, b"{}", &body(FULL_BYTES));
        assert!(!outgoing.is_full());
        let limit = FULL_BYTES / COPIED_BODY_BYTES;
        let added = (1..=limit as u32).take_while(|&number| {
            outgoing.add(number, b"{}", &body(COPIED_BODY_BYTES));
            !outgoing.is_full()
        });
        assert!(added.count() < limit);
        assert!(outgoing.is_full());
        while outgoing.take().is_some() {}
        assert!(!outgoing.is_full());
    }
}
