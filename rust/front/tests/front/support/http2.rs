//! A client of HTTP/2 that sends frames which no client would send, and reads those that come back.
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};

use super::{PATIENCE, read_some};

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADER_BYTES: usize = 9;
/// Longest frame that the front takes.
const MAX_FRAME_BYTES: usize = 16_384;

/// Kinds of frames (RFC 9113, section 6).
pub mod kind {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RESET: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PING: u8 = 6;
    pub const GO_AWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

pub mod flag {
    pub const END_STREAM: u8 = 1;
    pub const ACK: u8 = 1;
    pub const END_HEADERS: u8 = 4;
}

/// Codes of errors (RFC 9113, section 7).
pub mod code {
    pub const NONE: u32 = 0;
    pub const PROTOCOL: u32 = 1;
    pub const INTERNAL: u32 = 2;
    pub const FRAME_SIZE: u32 = 6;
    pub const REFUSED: u32 = 7;
    pub const CANCEL: u32 = 8;
    pub const CALM: u32 = 11;
}

/// Settings (RFC 9113, section 6.5.2).
pub mod setting {
    pub const TABLE_SIZE: u16 = 1;
    pub const INITIAL_WINDOW: u16 = 4;
}

/// A name and a value, of any bytes.
pub type Field = (Vec<u8>, Vec<u8>);

#[derive(Debug)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

/// What has become of a stream.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct StreamEnd {
    /// None without a response.
    pub status: Option<u16>,
    pub body: Vec<u8>,
    /// The code with which it was reset.
    pub reset: Option<u32>,
    /// The code with which the connection ends.
    pub go_away: Option<u32>,
}

/// A connection that has sent its preface and settings.
pub struct Http2 {
    pub stream: TcpStream,
    /// All that have come.
    pub frames: Vec<Frame>,
    received: Vec<u8>,
    pub is_closed: bool,
    next_stream: u32,
}

impl Http2 {
    /// `settings` are numbers and values.
    pub fn connect(address: SocketAddr, settings: &[(u16, u32)]) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut client = Self { stream, frames: Vec::new(), received: Vec::new(), is_closed: false, next_stream: 1 };
        // A table of no size: heads that come back can be read on their own.
        let mut payload = Vec::new();
        for (number, value) in [(setting::TABLE_SIZE, 0)].iter().chain(settings) {
            payload.extend_from_slice(&number.to_be_bytes());
            payload.extend_from_slice(&value.to_be_bytes());
        }
        client.send(PREFACE).send(frame(kind::SETTINGS, 0, 0, &payload));
        client
    }

    /// The front may have closed the connection meanwhile, because of what came before.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let _ = self.stream.write_all(bytes.as_ref());
        self
    }

    /// Sends a request; returns the number of its stream.
    pub fn request(&mut self, fields: &[Field], body: Option<&[u8]>, trailers: Option<&[Field]>) -> u32 {
        let number = self.next_stream;
        self.next_stream += 2;
        self.head(number, fields, body.is_none());
        if let Some(body) = body {
            let ends = if trailers.is_some() { 0 } else { flag::END_STREAM };
            self.send(frame(kind::DATA, ends, number, body));
        }
        if let Some(trailers) = trailers {
            self.head(number, trailers, true);
        }
        number
    }

    /// Sends a head in as many frames as it takes.
    fn head(&mut self, number: u32, fields: &[Field], is_end: bool) {
        let block = block(fields);
        let count = block.len().div_ceil(MAX_FRAME_BYTES);
        for (at, piece) in block.chunks(MAX_FRAME_BYTES).enumerate() {
            let kind = if at == 0 { kind::HEADERS } else { kind::CONTINUATION };
            let ends_head = if at + 1 == count { flag::END_HEADERS } else { 0 };
            let ends_stream = if at == 0 && is_end { flag::END_STREAM } else { 0 };
            self.send(frame(kind, ends_head | ends_stream, number, piece));
        }
    }

    /// Waits until the stream, or the connection, has ended.
    pub fn end_of(&mut self, number: u32) -> StreamEnd {
        loop {
            let own = || self.frames.iter().filter(|frame| frame.stream == number);
            let first = |kind: u8| own().find(|frame| frame.kind == kind);
            let is_end =
                |frame: &Frame| matches!(frame.kind, kind::DATA | kind::HEADERS) && frame.flags & flag::END_STREAM != 0;
            let reset = first(kind::RESET).map(|frame| number_at(&frame.payload, 0));
            let go_away = self.go_away();
            if own().any(is_end) || reset.is_some() || go_away.is_some() || self.is_closed {
                let data = own().filter(|frame| frame.kind == kind::DATA);
                return StreamEnd {
                    status: first(kind::HEADERS).map(|frame| status_of(&frame.payload)),
                    body: data.flat_map(|frame| frame.payload.clone()).collect(),
                    reset,
                    go_away,
                };
            }
            self.read();
        }
    }

    /// The statuses of all heads of a stream, those before the final one included.
    pub fn statuses_of(&self, number: u32) -> Vec<u16> {
        let heads = self.frames.iter().filter(|frame| frame.stream == number && frame.kind == kind::HEADERS);
        heads.map(|frame| status_of(&frame.payload)).collect()
    }

    /// The code with which the connection ends, if the front has said so.
    pub fn go_away(&self) -> Option<u32> {
        let frame = self.frames.iter().find(|frame| frame.kind == kind::GO_AWAY)?;
        Some(number_at(&frame.payload, 4))
    }

    /// Waits until the front has closed the connection, and returns the code with which it ends.
    pub fn closed(&mut self) -> Option<u32> {
        while !self.is_closed {
            self.read();
        }
        self.go_away()
    }

    /// Waits for a frame of the kind, and returns how many there are then.
    pub fn receives(&mut self, kind: u8) -> usize {
        self.count_once_received(kind, |_| true)
    }

    /// Waits for a frame of the kind on this stream.
    pub fn receives_on(&mut self, stream: u32, kind: u8) {
        self.count_once_received(kind, |frame| frame.stream == stream);
    }

    fn count_once_received(&mut self, kind: u8, matches: impl Fn(&Frame) -> bool) -> usize {
        loop {
            let count = self.frames.iter().filter(|frame| frame.kind == kind && matches(frame)).count();
            if count > 0 {
                return count;
            }
            assert!(!self.is_closed, "no frame of kind {kind}, but {:?}", self.frames);
            self.read();
        }
    }

    /// Reads more.
    pub fn read(&mut self) {
        let mut piece = [0; 64 * 1024];
        match read_some(&mut self.stream, &mut piece) {
            Ok(0) => self.is_closed = true,
            Ok(length) => self.received.extend_from_slice(&piece[..length]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => self.is_closed = true,
            Err(error) => panic!("{error}; so far: {:?}", self.frames),
        }
        while let Some((frame, length)) = parse(&self.received) {
            self.frames.push(frame);
            self.received.drain(..length);
        }
    }
}

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

fn parse(bytes: &[u8]) -> Option<(Frame, usize)> {
    let header = bytes.get(..HEADER_BYTES)?;
    let end = HEADER_BYTES + (number_at(header, 0) >> 8) as usize;
    let payload = bytes.get(HEADER_BYTES..end)?.to_vec();
    Some((Frame { kind: header[3], flags: header[4], stream: number_at(header, 5), payload }, end))
}

fn number_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// The head of a request.
pub fn fields(method: &str, path: &str) -> Vec<Field> {
    let pairs = [(":method", method), (":scheme", "http"), (":authority", "localhost"), (":path", path)];
    pairs.map(|(name, value)| (name.into(), value.into())).into()
}

/// A block of literal fields, which are neither indexed nor compressed (RFC 7541, section 6.2.2).
pub fn block(fields: &[Field]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            append_length(&mut block, text.len());
            block.extend_from_slice(text);
        }
    }
    block
}

/// RFC 7541, section 5.1, with a prefix of seven bits.
fn append_length(block: &mut Vec<u8>, length: usize) {
    const LIMIT: usize = 0x7f;
    if length < LIMIT {
        block.push(length as u8);
        return;
    }
    block.push(LIMIT as u8);
    let mut rest = length - LIMIT;
    while rest >= 0x80 {
        block.push((rest % 0x80 + 0x80) as u8);
        rest /= 0x80;
    }
    block.push(rest as u8);
}

/// The status of a head, which stands first in it.
fn status_of(head: &[u8]) -> u16 {
    /// Those of the static table (RFC 7541, appendix A), and where they begin there, as one byte.
    const STATIC: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];
    const FIRST_STATIC: u8 = 0x88;
    /// "The table has no size": the first head of a connection begins so.
    const SIZE_UPDATE: u8 = 0x20;
    let head = head.strip_prefix(&[SIZE_UPDATE]).unwrap_or(head);
    if let Some(&status) = head[0].checked_sub(FIRST_STATIC).and_then(|at| STATIC.get(usize::from(at))) {
        return status;
    }
    let (is_compressed, length) = (head[1] & 0x80 != 0, usize::from(head[1] & 0x7f));
    let value = &head[2..2 + length];
    if is_compressed { digits(value) } else { std::str::from_utf8(value).unwrap().parse().unwrap() }
}

/// Three digits in the code of Huffman (RFC 7541, appendix B): 0 to 2 have five bits, the others six.
fn digits(bytes: &[u8]) -> u16 {
    let mut bits = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| u16::from(byte >> bit & 1)));
    let mut number = 0;
    for _ in 0..3 {
        let five = bits.by_ref().take(5).fold(0, |sum, bit| 2 * sum + bit);
        let digit = if five < 3 { five } else { 2 * five + bits.next().unwrap() - 0x16 };
        number = 10 * number + digit;
    }
    number
}
