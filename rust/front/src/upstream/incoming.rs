//! Cuts what arrives from a handler into frames. Most frames are small and arrive whole: they are read into memory that
//! all connections of a thread share. A frame that has arrived in part has memory of its own, which grows with what is
//! received, not by the length that its header claims.
use edge_wire::{DecodeResult, Frame, FrameError, HEADER_BYTES, Kind, decode, parse_header};

use crate::memory::RESERVE_AFTER;

/// Read at a time when a frame is large, so that other connections have their turn in between.
const READ_BYTES: usize = 256 * 1024;
/// Pieces of streams from this size on are read into memory of their own at once, or they would be copied.
const LARGE_PIECE_BYTES: usize = 16 * 1024;

#[derive(Default)]
pub struct Incoming {
    /// The beginning of a frame; when that is large, also the header of the next one.
    held: Vec<u8>,
    /// Bytes to come of a frame that is dropped.
    to_drop: usize,
}

impl Incoming {
    /// Bytes of a frame that has arrived in part.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Bytes that the frame that is held needs for the next read: all that it has, once a part of it has arrived. If it
    /// took memory little by little, several could wait for that of each other without end.
    pub fn needed(&self) -> Result<usize, FrameError> {
        let whole = self.frame_bytes()?;
        let may_reserve = self.held.len() >= whole / RESERVE_AFTER;
        Ok(if may_reserve { whole } else { whole.min(self.held.len() + READ_BYTES) })
    }

    /// Whether the next bytes belong behind those that are held, rather than into shared memory.
    pub fn has_own_memory(&self) -> Result<bool, FrameError> {
        Ok(self.held.len() > HEADER_BYTES || self.is_large_piece()?)
    }

    /// Moves what is held to the beginning of `bytes`, for `read`.
    pub fn unhold(&mut self, bytes: &mut [u8]) {
        bytes[..self.held.len()].copy_from_slice(&self.held);
        self.held.clear();
    }

    /// Takes bytes when none are held. `frame` gets all that are whole frames.
    pub fn read(&mut self, mut bytes: &[u8], mut frame: impl FnMut(Frame<'_>)) -> Result<(), FrameError> {
        let dropped = self.to_drop.min(bytes.len());
        self.to_drop -= dropped;
        bytes = &bytes[dropped..];
        while let DecodeResult::Frame(whole, taken) = decode(bytes)? {
            frame(whole);
            bytes = &bytes[taken..];
        }
        self.held.extend_from_slice(bytes);
        Ok(())
    }

    /// The number of the frame that is held, if its header is there.
    pub fn number(&self) -> Option<u32> {
        parse_header(&self.held).ok().flatten().map(|header| header.number)
    }

    /// Drops the frame that is held, and the rest of it when it comes.
    pub fn drop_frame(&mut self) -> Result<(), FrameError> {
        self.to_drop = self.frame_bytes()? - self.held.len();
        self.held = Vec::new();
        Ok(())
    }

    /// Where the next bytes belong when some are held: room for no more than the frame has, and for the header of the
    /// next one where that may be as large.
    pub fn room(&mut self) -> Result<(&mut Vec<u8>, usize), FrameError> {
        let held = self.held.len();
        let missing = self.frame_bytes()? - held;
        let whole = held + missing;
        let ahead = if self.is_large_piece()? { HEADER_BYTES } else { 0 };
        if held >= whole / RESERVE_AFTER || ahead > 0 {
            self.held.reserve_exact(missing + ahead);
        }
        Ok((&mut self.held, (missing + ahead).min(READ_BYTES)))
    }

    /// The frame that is held, once it is whole.
    pub fn whole(&mut self) -> Result<Option<Vec<u8>>, FrameError> {
        let whole = self.frame_bytes()?;
        if self.held.len() < whole.max(HEADER_BYTES) {
            return Ok(None);
        }
        let next = self.held.split_off(whole);
        Ok(Some(std::mem::replace(&mut self.held, next)))
    }

    fn is_large_piece(&self) -> Result<bool, FrameError> {
        let header = parse_header(&self.held)?;
        Ok(header.is_some_and(|header| header.kind == Kind::Data && header.body_len >= LARGE_PIECE_BYTES))
    }

    /// The length of the frame that is held; that of a header while it is not known.
    fn frame_bytes(&self) -> Result<usize, FrameError> {
        Ok(parse_header(&self.held)?.map_or(HEADER_BYTES, |header| HEADER_BYTES + header.head_len + header.body_len))
    }
}

#[cfg(test)]
mod tests {
    use edge_wire::{MAX_DATA_BYTES, header};

    use super::*;

    fn frame(number: u32, body: usize) -> Vec<u8> {
        [&header(Kind::Response, number, 2, body)[..], b"{}", &vec![7; body]].concat()
    }

    fn piece(number: u32, body: usize) -> Vec<u8> {
        [&header(Kind::Data, number, 0, body)[..], &vec![7; body]].concat()
    }

    /// Numbers and lengths of the frames in these bytes, of which no more than `at_once` arrive at a time.
    fn arrive(mut bytes: &[u8], at_once: usize) -> Vec<(u32, usize)> {
        let mut incoming = Incoming::default();
        let mut frames = Vec::new();
        let mut shared = vec![0; 64 * 1024];
        while !bytes.is_empty() {
            if incoming.has_own_memory().unwrap() {
                let (held, room) = incoming.room().unwrap();
                let (now, later) = bytes.split_at(at_once.min(room).min(bytes.len()));
                held.extend_from_slice(now);
                bytes = later;
                while let Some(whole) = incoming.whole().unwrap() {
                    let Ok(DecodeResult::Frame(frame, _)) = decode(&whole) else { panic!("it is whole") };
                    frames.push((frame.number, frame.body.len()));
                }
            } else {
                let held = incoming.held();
                let (now, later) = bytes.split_at(at_once.min(shared.len() - held).min(bytes.len()));
                shared[held..held + now.len()].copy_from_slice(now);
                bytes = later;
                incoming.unhold(&mut shared);
                let end = held + now.len();
                incoming.read(&shared[..end], |frame| frames.push((frame.number, frame.body.len()))).unwrap();
            }
        }
        assert_eq!(incoming.held(), 0);
        frames
    }

    #[test]
    fn frames_come_out_of_any_pieces() {
        let bytes = [frame(1, 0), frame(2, 100_000), frame(3, 10)].concat();
        for at_once in [1, 15, 17, 5_000, bytes.len()] {
            assert_eq!(arrive(&bytes, at_once), [(1, 0), (2, 100_000), (3, 10)], "{at_once}");
        }
    }

    #[test]
    fn large_pieces_are_followed_by_anything() {
        let end = header(Kind::End, 1, 0, 0).to_vec();
        let large = || piece(1, MAX_DATA_BYTES);
        let bytes = [large(), large(), piece(2, 3), large(), large(), large(), end, frame(4, 1)].concat();
        let lengths = [MAX_DATA_BYTES, MAX_DATA_BYTES, 3, MAX_DATA_BYTES, MAX_DATA_BYTES, MAX_DATA_BYTES, 0, 1];
        for at_once in [1, 15, 33_000, MAX_DATA_BYTES + HEADER_BYTES, bytes.len()] {
            let arrived: Vec<_> = arrive(&bytes, at_once).into_iter().map(|(_, length)| length).collect();
            assert_eq!(arrived, lengths, "{at_once}");
        }
    }

    #[test]
    fn a_dropped_frame_is_skipped_to_its_end() {
        let bytes = [frame(1, 100_000), frame(2, 1)].concat();
        let mut incoming = Incoming::default();
        incoming.read(&bytes[..1_000], |_| panic!("nothing is whole")).unwrap();
        assert_eq!(incoming.number(), Some(1));
        incoming.drop_frame().unwrap();
        assert_eq!(incoming.held(), 0);
        let mut numbers = Vec::new();
        for piece in bytes[1_000..].chunks(30_000) {
            incoming.read(piece, |frame| numbers.push(frame.number)).unwrap();
        }
        assert_eq!(numbers, [2]);
    }
}
