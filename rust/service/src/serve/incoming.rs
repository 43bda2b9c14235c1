//! What has arrived on a connection. Small, because there are many connections and most frames are small; it grows with
//! what is received, never by a length that a header claims.
use edge_wire::{DecodeResult, Frame, FrameError, HEADER_BYTES, decode, parse_header};

/// Room that every connection has.
pub const BUFFER_BYTES: usize = 4 * 1024;

#[derive(Default)]
pub struct Incoming {
    bytes: Vec<u8>,
    /// Where the bytes begin that are not part of a frame handed out yet.
    start: usize,
}

impl Incoming {
    /// Where to read into; has room.
    pub fn room(&mut self) -> &mut Vec<u8> {
        let size = self.room_bytes();
        self.bytes.drain(..self.start);
        self.start = 0;
        if size < self.bytes.capacity() {
            self.bytes.shrink_to(size);
        } else {
            self.bytes.reserve_exact(size - self.bytes.len());
        }
        &mut self.bytes
    }

    /// Bytes that it holds when there is room: no more than twice what has arrived, and no more than the frame has.
    pub fn room_bytes(&self) -> usize {
        let held = self.buffered();
        if held < self.bytes.capacity() && held > self.bytes.capacity() / 4 {
            return self.bytes.capacity();
        }
        let doubled = (2 * held).max(BUFFER_BYTES);
        match self.frame_bytes() {
            frame if frame > held => doubled.min(frame.max(BUFFER_BYTES)),
            _ => doubled,
        }
    }

    /// The next whole frame.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, FrameError> {
        match decode(&self.bytes[self.start..])? {
            DecodeResult::Incomplete(_) => Ok(None),
            DecodeResult::Frame(frame, taken) => {
                self.start += taken;
                Ok(Some(frame))
            }
        }
    }

    /// Bytes that have arrived and are not part of a frame handed out yet.
    pub fn buffered(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// The length of the frame that is arriving; 0 while it is not known.
    fn frame_bytes(&self) -> usize {
        match parse_header(&self.bytes[self.start..]) {
            Ok(Some(header)) => HEADER_BYTES + header.head_len + header.body_len,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use edge_wire::{Kind, header};

    /// Adds bytes as a socket does.
    fn arrive(incoming: &mut Incoming, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = incoming.room();
            let count = bytes.len().min(room.capacity() - room.len());
            room.extend_from_slice(&bytes[..count]);
            bytes = &bytes[count..];
        }
    }

    fn frame(number: u32, body: &[u8]) -> Vec<u8> {
        [&header(Kind::Request, number, 2, body.len()), b"{}".as_slice(), body].concat()
    }

    #[test]
    fn frames_come_out_as_they_were() {
        let mut incoming = Incoming::default();
        let bytes = [frame(1, b"one"), frame(2, &[7; 10_000]), frame(3, b"")].concat();
        let mut lengths = Vec::new();
        for piece in bytes.chunks(100) {
            arrive(&mut incoming, piece);
            while let Some(frame) = incoming.next_frame().unwrap() {
                lengths.push((frame.number, frame.body.len()));
            }
        }
        assert_eq!(lengths, [(1, 3), (2, 10_000), (3, 0)]);
        assert_eq!(incoming.room().capacity(), BUFFER_BYTES);
    }

    #[test]
    fn memory_grows_with_what_arrives() {
        let mut incoming = Incoming::default();
        let bytes = frame(1, &vec![0; 32 * 1024 * 1024]);
        arrive(&mut incoming, &bytes[..20_000]);
        assert!(incoming.room_bytes() < 50_000);
        arrive(&mut incoming, &bytes[20_000..]);
        assert_eq!(incoming.bytes.capacity(), bytes.len());
        assert!(incoming.next_frame().unwrap().is_some());
        assert_eq!((incoming.buffered(), incoming.room_bytes()), (0, BUFFER_BYTES));
        // What follows is little.
        arrive(&mut incoming, &bytes[..100]);
        assert_eq!(incoming.bytes.capacity(), BUFFER_BYTES);
    }
}
