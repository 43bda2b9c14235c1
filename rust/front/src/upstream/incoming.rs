//! Cuts what arrives from a handler into frames. Most frames are small and arrive whole: they are read into memory that
//! all connections of a thread share. A frame that has arrived in part has memory of its own, which grows with what is
//! received, not by the length that its header claims.
use edge_wire::{Decoded, Frame, FrameError, HEADER_BYTES, decode, parse_header};

/// Read at a time when a frame is large, so that other connections have their turn in between.
const READ_BYTES: usize = 256 * 1024;
/// That part of a frame has to have arrived before there is memory for all of it.
const EARNEST: usize = 16;

#[derive(Default)]
pub struct Incoming {
    /// The beginning of a frame.
    held: Vec<u8>,
}

impl Incoming {
    /// Bytes of a frame that has arrived in part.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Takes bytes when none are held. `frame` gets all that are whole frames.
    pub fn read(&mut self, mut bytes: &[u8], mut frame: impl FnMut(Frame<'_>)) -> Result<(), FrameError> {
        while let Decoded::Frame(whole, taken) = decode(bytes)? {
            frame(whole);
            bytes = &bytes[taken..];
        }
        self.held.extend_from_slice(bytes);
        Ok(())
    }

    /// Where the next bytes belong when some are held: room for no more than the frame has.
    pub fn room(&mut self) -> Result<(&mut Vec<u8>, usize), FrameError> {
        let held = self.held.len();
        let missing = self.frame_bytes()? - held;
        let whole = held + missing;
        if held >= whole / EARNEST {
            self.held.reserve_exact(missing);
        }
        Ok((&mut self.held, missing.min(READ_BYTES)))
    }

    /// The frame that is held, once it is whole.
    pub fn whole(&mut self) -> Result<Option<Vec<u8>>, FrameError> {
        let is_whole = self.held.len() >= HEADER_BYTES && self.held.len() == self.frame_bytes()?;
        Ok(is_whole.then(|| std::mem::take(&mut self.held)))
    }

    /// The length of the frame that is held; that of a header while it is not known.
    fn frame_bytes(&self) -> Result<usize, FrameError> {
        Ok(parse_header(&self.held)?.map_or(HEADER_BYTES, |header| HEADER_BYTES + header.head_len + header.body_len))
    }
}
