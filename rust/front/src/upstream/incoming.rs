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
    /// Bytes to come of a frame that nobody wants.
    unwanted: usize,
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
        let is_earnest = self.held.len() >= whole / EARNEST;
        Ok(if is_earnest { whole } else { whole.min(self.held.len() + READ_BYTES) })
    }

    /// Takes bytes when none are held. `frame` gets all that are whole frames.
    pub fn read(&mut self, mut bytes: &[u8], mut frame: impl FnMut(Frame<'_>)) -> Result<(), FrameError> {
        let unwanted = self.unwanted.min(bytes.len());
        self.unwanted -= unwanted;
        bytes = &bytes[unwanted..];
        while let Decoded::Frame(whole, taken) = decode(bytes)? {
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
        self.unwanted = self.frame_bytes()? - self.held.len();
        self.held = Vec::new();
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

#[cfg(test)]
mod tests {
    use edge_wire::{Kind, header};

    use super::*;

    fn frame(number: u32, body: usize) -> Vec<u8> {
        [&header(Kind::Response, number, 2, body)[..], b"{}", &vec![7; body]].concat()
    }

    #[test]
    fn frames_come_out_of_any_pieces() {
        let bytes = [frame(1, 0), frame(2, 100_000), frame(3, 10)].concat();
        for piece in [1, 15, 17, 5_000, bytes.len()] {
            let mut incoming = Incoming::default();
            let mut numbers = Vec::new();
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                if incoming.held() == 0 {
                    let (now, later) = rest.split_at(piece.min(rest.len()));
                    incoming.read(now, |frame| numbers.push((frame.number, frame.body.len()))).unwrap();
                    rest = later;
                } else {
                    let (held, room) = incoming.room().unwrap();
                    let (now, later) = rest.split_at(piece.min(room));
                    held.extend_from_slice(now);
                    rest = later;
                    if let Some(whole) = incoming.whole().unwrap() {
                        let Ok(Decoded::Frame(frame, _)) = decode(&whole) else { panic!("it is whole") };
                        numbers.push((frame.number, frame.body.len()));
                    }
                }
            }
            assert_eq!(numbers, [(1, 0), (2, 100_000), (3, 10)], "{piece}");
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
