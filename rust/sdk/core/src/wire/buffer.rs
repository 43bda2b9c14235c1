//! Bytes received and not yet decoded. Grows with what is received, never by a length that a header claims.

use super::frame::{decode, DecodeResult, Frame, FrameError};

/// Room offered to one read, in bytes. Large enough for hundreds of small requests at once.
const READ_BYTES: usize = 32 * 1024;
/// A buffer that one large request has grown beyond this is freed once it is empty.
const KEEP_BYTES: usize = 128 * 1024;

/// A receive buffer that yields frames.
#[derive(Debug, Default)]
pub struct Buffer {
    bytes: Vec<u8>,
    /// Valid bytes are `start..end` of `bytes`; the rest is room, zeroed once and reused.
    start: usize,
    end: usize,
}

impl Buffer {
    /// An empty buffer. Allocates at the first read.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next whole frame, or `None` if more bytes are needed.
    ///
    /// # Errors
    /// [`FrameError`]: the stream cannot be understood any more.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, FrameError> {
        // A whole frame is decoded twice on purpose: the first time decides, the second borrows for the caller.
        match decode(&self.bytes[self.start..self.end])? {
            DecodeResult::Incomplete(_) => Ok(None),
            DecodeResult::Frame(_, taken) => {
                let at = self.start;
                self.start += taken;
                match decode(&self.bytes[at..self.start])? {
                    DecodeResult::Frame(frame, _) => Ok(Some(frame)),
                    DecodeResult::Incomplete(_) => Ok(None),
                }
            }
        }
    }

    /// Whether [`Buffer::next_frame`] returns a frame or an error.
    pub fn has_frame(&self) -> bool {
        !matches!(decode(&self.bytes[self.start..self.end]), Ok(DecodeResult::Incomplete(_)))
    }

    /// Whether the buffer ends inside a frame.
    pub fn is_mid_frame(&self) -> bool {
        self.start != self.end
    }

    /// Room to read into. Say how much was filled with [`Buffer::filled`].
    ///
    /// Doubles while one frame keeps growing, so a body of n bytes costs O(n) copying, and never exceeds twice what has
    /// really arrived plus one read.
    pub fn room(&mut self) -> &mut [u8] {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
            if self.bytes.len() > KEEP_BYTES {
                self.bytes = Vec::new();
            }
        } else if self.start > 0 && self.bytes.len() - self.end < READ_BYTES {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.bytes.len() - self.end < READ_BYTES {
            let size = (self.bytes.len() * 2).max(self.end + READ_BYTES);
            self.bytes.resize(size, 0);
        }
        &mut self.bytes[self.end..]
    }

    /// Says that the first `n` bytes of the last [`Buffer::room`] now hold data.
    pub fn filled(&mut self, n: usize) {
        self.end += n;
        debug_assert!(self.end <= self.bytes.len());
    }

    /// Appends bytes that are already in memory.
    pub fn extend(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = self.room();
            let n = room.len().min(bytes.len());
            room[..n].copy_from_slice(&bytes[..n]);
            self.filled(n);
            bytes = &bytes[n..];
        }
    }
}
