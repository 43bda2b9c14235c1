//! Reads answers from a connection: small ones into a buffer that is reused, the rest of a large one into memory of its
//! own.

use super::failure::ConnectionError;
use crate::wire::frame::{self, Header, Kind, HEADER_BYTES};
use std::io::{ErrorKind, Read};
use std::ops::Range;
use std::os::unix::net::UnixStream;

/// Room for most answers.
const BUFFER_BYTES: usize = 16 * 1024;

/// What has been read and not been used yet.
pub struct AnswerReader {
    bytes: Vec<u8>,
    /// Valid bytes are `start..end` of `bytes`.
    start: usize,
    end: usize,
}

/// An answer. Its head, and its body unless that is large, lie in the buffer.
pub struct ReceivedAnswer {
    pub number: u32,
    head: Range<usize>,
    body: BodyPlace,
}

enum BodyPlace {
    InBuffer(Range<usize>),
    Apart(Vec<u8>),
}

/// The bytes of a body.
pub enum AnswerBody<'a> {
    Small(&'a [u8]),
    Large(Vec<u8>),
}

impl AnswerBody<'_> {
    pub fn as_slice(&self) -> &[u8] {
        match self {
            AnswerBody::Small(bytes) => bytes,
            AnswerBody::Large(bytes) => bytes,
        }
    }

    pub fn into_vec(self) -> Vec<u8> {
        match self {
            AnswerBody::Small(bytes) => bytes.to_vec(),
            AnswerBody::Large(bytes) => bytes,
        }
    }
}

impl AnswerReader {
    pub fn new() -> Self {
        AnswerReader { bytes: vec![0; BUFFER_BYTES], start: 0, end: 0 }
    }

    /// Whether all that came has been used.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Reads the next answer.
    ///
    /// # Errors
    /// [`ConnectionError`].
    pub fn next(&mut self, stream: &UnixStream) -> Result<ReceivedAnswer, ConnectionError> {
        let header = self.read_head(stream)?;
        let head = self.start + HEADER_BYTES..self.start + HEADER_BYTES + header.head_len;
        let body_end = head.end + header.body_len;
        let body = if body_end <= self.end {
            self.start = body_end;
            BodyPlace::InBuffer(head.end..body_end)
        } else {
            let mut body = self.bytes[head.end..self.end].to_vec();
            read_rest(stream, header.body_len, &mut body)?;
            self.start = self.end;
            BodyPlace::Apart(body)
        };
        Ok(ReceivedAnswer { number: header.number, head, body })
    }

    /// The head of an answer, and its body.
    pub fn open(&self, received: ReceivedAnswer) -> (&[u8], AnswerBody<'_>) {
        let body = match received.body {
            BodyPlace::InBuffer(range) => AnswerBody::Small(&self.bytes[range]),
            BodyPlace::Apart(bytes) => AnswerBody::Large(bytes),
        };
        (&self.bytes[received.head], body)
    }

    /// Reads until header and head are in the buffer.
    fn read_head(&mut self, stream: &UnixStream) -> Result<Header, ConnectionError> {
        loop {
            let header = frame::parse_header(&self.bytes[self.start..self.end])
                .map_err(|error| ConnectionError::ProtocolViolation(error.to_string()))?;
            let needed = match header {
                Some(Header { kind: Kind::Request, .. }) => {
                    return Err(ConnectionError::ProtocolViolation("a request where an answer is expected".to_owned()));
                }
                Some(header) if self.end - self.start >= HEADER_BYTES + header.head_len => return Ok(header),
                Some(header) => HEADER_BYTES + header.head_len,
                None => HEADER_BYTES,
            };
            self.make_room(needed);
            match (&mut &*stream).read(&mut self.bytes[self.end..]) {
                Ok(0) => return Err(ConnectionError::Closed),
                Ok(n) => self.end += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(ConnectionError::reading(error)),
            }
        }
    }

    /// Makes room for a frame's first `needed` bytes.
    fn make_room(&mut self, needed: usize) {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        // Back to the usual size after an answer with a large head; bounded by the limit for heads.
        let size = needed.max(BUFFER_BYTES).max(self.end);
        if self.bytes.len() != size {
            self.bytes.resize(size, 0);
            self.bytes.shrink_to_fit();
        }
    }
}

fn read_rest(stream: &UnixStream, length: usize, body: &mut Vec<u8>) -> Result<(), ConnectionError> {
    body.reserve_exact(length - body.len());
    let missing = length - body.len();
    let read = (&mut &*stream).take(missing as u64).read_to_end(body).map_err(ConnectionError::reading)?;
    match read == missing {
        true => Ok(()),
        false => Err(ConnectionError::Closed),
    }
}
