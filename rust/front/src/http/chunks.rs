//! Bodies in chunks (RFC 9112, section 7.1). Extensions and trailers are dropped.
use crate::request::{HeadEnd, MAX_HEAD_BYTES, Refusal};

/// Extensions of one chunk.
const MAX_EXTENSION_BYTES: usize = 16 * 1024;
/// Digits of a length of 64 bits.
const MAX_DIGITS: u8 = 16;
const MAX_TRAILERS: usize = 100;

#[derive(Default)]
pub struct Chunks {
    state: ChunkState,
    /// What is left of the current chunk.
    length: u64,
}

#[derive(Default)]
enum ChunkState {
    #[default]
    BeforeLength,
    Length {
        digits: u8,
    },
    Extension {
        bytes: usize,
    },
    /// The CR at the end of the line of the length has come.
    LengthEnd,
    Data,
    DataCr,
    DataLf,
    Trailers {
        bytes: Vec<u8>,
        end: HeadEnd,
    },
    Done,
}

impl Chunks {
    pub fn is_done(&self) -> bool {
        matches!(self.state, ChunkState::Done)
    }

    /// Takes bytes, and passes on the data among them. Returns how many were taken: those behind the body are not.
    ///
    /// # Errors
    /// When they are not chunks, or trailers are too large.
    pub fn decode(&mut self, bytes: &[u8], mut data: impl FnMut(&[u8])) -> Result<usize, Refusal> {
        let mut at = 0;
        while at < bytes.len() && !self.is_done() {
            match &mut self.state {
                ChunkState::Data => {
                    let length = self.length.min((bytes.len() - at) as u64) as usize;
                    data(&bytes[at..at + length]);
                    at += length;
                    self.length -= length as u64;
                    if self.length == 0 {
                        self.state = ChunkState::DataCr;
                    }
                }
                ChunkState::Trailers { bytes: trailers, end } => {
                    let before = trailers.len();
                    trailers.extend_from_slice(&bytes[at..]);
                    match end.find(trailers)? {
                        Some(length) if length <= MAX_HEAD_BYTES => {
                            check_trailers(&trailers[..length])?;
                            at += length - before;
                            self.state = ChunkState::Done;
                        }
                        None if trailers.len() <= MAX_HEAD_BYTES => at = bytes.len(),
                        _ => return Err(Refusal::head_too_large(MAX_HEAD_BYTES)),
                    }
                }
                _ => {
                    self.step(bytes[at])?;
                    at += 1;
                }
            }
        }
        Ok(at)
    }

    /// Takes one byte of what is between the data.
    fn step(&mut self, byte: u8) -> Result<(), Refusal> {
        self.state = match (&self.state, byte) {
            (ChunkState::BeforeLength, _) if byte.is_ascii_hexdigit() => {
                self.length = value_of(byte);
                ChunkState::Length { digits: 1 }
            }
            (ChunkState::Length { digits }, _) if byte.is_ascii_hexdigit() && *digits < MAX_DIGITS => {
                self.length = self.length << 4 | value_of(byte);
                ChunkState::Length { digits: digits + 1 }
            }
            (ChunkState::Length { .. }, b';') => ChunkState::Extension { bytes: 0 },
            (ChunkState::Length { .. } | ChunkState::Extension { .. }, b'\r') => ChunkState::LengthEnd,
            (ChunkState::Extension { bytes }, _) if is_text(byte) && *bytes < MAX_EXTENSION_BYTES => {
                ChunkState::Extension { bytes: bytes + 1 }
            }
            (ChunkState::LengthEnd, b'\n') if self.length == 0 => {
                ChunkState::Trailers { bytes: Vec::new(), end: HeadEnd::default() }
            }
            (ChunkState::LengthEnd, b'\n') => ChunkState::Data,
            (ChunkState::DataCr, b'\r') => ChunkState::DataLf,
            (ChunkState::DataLf, b'\n') => ChunkState::BeforeLength,
            _ => return Err(Refusal::not_http()),
        };
        Ok(())
    }
}

fn value_of(digit: u8) -> u64 {
    char::from(digit).to_digit(16).map_or(0, u64::from)
}

fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

/// Trailers have the grammar of headers.
fn check_trailers(bytes: &[u8]) -> Result<(), Refusal> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_TRAILERS];
    match httparse::parse_headers(bytes, &mut headers) {
        Ok(httparse::Status::Complete((length, _))) if length == bytes.len() => Ok(()),
        Err(httparse::Error::TooManyHeaders) => Err(Refusal::too_many_headers(MAX_TRAILERS)),
        _ => Err(Refusal::not_http()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The data, what is behind the body, and whether the body has ended.
    fn decode(bytes: &[u8], piece: usize) -> Result<(Vec<u8>, usize, bool), Refusal> {
        let mut chunks = Chunks::default();
        let mut data = Vec::new();
        let mut taken = 0;
        for part in bytes.chunks(piece) {
            taken += chunks.decode(part, |more| data.extend_from_slice(more))?;
        }
        Ok((data, bytes.len() - taken, chunks.is_done()))
    }

    #[test]
    fn rejects_invalid_chunks() {
        for bytes in [
            "0x2\r\n{}\r\n0\r\n\r\n",
            "-2\r\n{}\r\n",
            " 2\r\n{}\r\n",
            "2 \r\n{}\r\n",
            "\r\n",
            "10000000000000002\r\n",
            "1\r\n{}\r\n",
            "2\n{}\r\n",
            "2;x\n{}\r\n",
            "2\r\n{}\n",
            "0\r\nX\r\n\r\n",
            "0\r\nX: 1\n\r\n",
        ] {
            assert_eq!(decode(bytes.as_bytes(), 1).unwrap_err().status, 400, "{bytes:?}");
        }
        let long = format!("2;{}", "x".repeat(MAX_EXTENSION_BYTES + 1));
        assert_eq!(decode(long.as_bytes(), 1000).unwrap_err().status, 400);
        let long = format!("0\r\nX: {}\r\n\r\n", "x".repeat(MAX_HEAD_BYTES));
        for piece in [1000, long.len()] {
            assert_eq!(decode(long.as_bytes(), piece).unwrap_err().status, 431);
        }
    }

    #[test]
    fn extensions_and_trailers_are_dropped() {
        let bytes = b"2;a=b;c=\"d\"\r\n{}\r\n0;x\r\nX-Trailer: 1\r\n\r\nrest";
        for piece in 1..bytes.len() {
            let (data, _, is_done) = decode(bytes, piece).unwrap();
            assert!(is_done && data == b"{}");
        }
        assert_eq!(decode(bytes, bytes.len()).unwrap(), (b"{}".to_vec(), 4, true));
    }

    proptest! {
        #[test]
        fn any_data_in_any_pieces_comes_out_again(
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..300), 0..8),
            piece in 1_usize..64,
        ) {
            let mut bytes = Vec::new();
            for part in &parts {
                bytes.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
                bytes.extend_from_slice(part);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
            prop_assert_eq!(decode(&bytes, piece).unwrap(), (parts.concat(), 0, true));
        }

        #[test]
        fn any_bytes_are_read_alike_in_one_and_in_pieces(bytes in "[0-9a-f;\r\n x]{0,40}", piece in 1_usize..8) {
            let whole = decode(bytes.as_bytes(), bytes.len().max(1));
            let pieces = decode(bytes.as_bytes(), piece);
            prop_assert_eq!(whole.map_err(|error| error.status), pieces.map_err(|error| error.status));
        }
    }
}
