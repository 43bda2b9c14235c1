//! The frame format, version 1.
//!
//! A frame is a header of 16 bytes, a head (UTF-8 JSON) and a body (any bytes). Numbers are big-endian.
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 1 | version, 1 |
//! | 1 | 1 | kind: 1 request (gateway to handler), 2 response (handler to gateway) |
//! | 2 | 2 | reserved, 0 |
//! | 4 | 4 | request number: chosen by the gateway, unique among the requests in flight on a connection, echoed |
//! | 8 | 4 | length of the head in bytes, at most [`MAX_HEAD_BYTES`] |
//! | 12 | 4 | length of the body in bytes, at most [`MAX_BODY_BYTES`] |

use std::fmt;

/// The only protocol version there is.
pub const VERSION: u8 = 1;
/// Length of the fixed header, in bytes.
pub const HEADER_BYTES: usize = 16;
/// Longest head, in bytes (1 MiB).
pub const MAX_HEAD_BYTES: usize = 1 << 20;
/// Longest body, in bytes (64 MiB).
pub const MAX_BODY_BYTES: usize = 64 << 20;

/// Which way a frame travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Gateway to handler.
    Request = 1,
    /// Handler to gateway.
    Response = 2,
}

/// One frame, borrowed from the bytes it was decoded from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Request or response.
    pub kind: Kind,
    /// The number that pairs a response with its request.
    pub number: u32,
    /// UTF-8 JSON; not looked at here.
    pub head: &'a [u8],
    /// Any bytes.
    pub body: &'a [u8],
}

/// Why bytes can never become a frame. The connection that carried them has to be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    /// The first byte is not [`VERSION`].
    Version(u8),
    /// The second byte is neither request nor response.
    Kind(u8),
    /// Bytes 2 and 3 are not zero.
    Reserved(u16),
    /// The head would be longer than [`MAX_HEAD_BYTES`].
    HeadTooLong(u32),
    /// The body would be longer than [`MAX_BODY_BYTES`].
    BodyTooLong(u32),
}

impl FrameError {
    /// A short stable name, the same as in the golden frames.
    pub fn code(&self) -> &'static str {
        match self {
            FrameError::Version(_) => "version",
            FrameError::Kind(_) => "kind",
            FrameError::Reserved(_) => "reserved",
            FrameError::HeadTooLong(_) => "head_too_long",
            FrameError::BodyTooLong(_) => "body_too_long",
        }
    }
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::Version(v) => write!(f, "protocol version {v}, expected {VERSION}"),
            FrameError::Kind(k) => write!(f, "frame kind {k}, expected 1 (request) or 2 (response)"),
            FrameError::Reserved(r) => write!(f, "reserved bytes are {r:#06x}, expected 0"),
            FrameError::HeadTooLong(n) => write!(f, "head of {n} bytes, the limit is {MAX_HEAD_BYTES}"),
            FrameError::BodyTooLong(n) => write!(f, "body of {n} bytes, the limit is {MAX_BODY_BYTES}"),
        }
    }
}

impl std::error::Error for FrameError {}

/// What the front of a byte stream holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoded<'a> {
    /// A whole frame, and how many bytes it took.
    Frame(Frame<'a>, usize),
    /// More bytes are needed: at least as many as make the given total, counted from the start of the frame.
    Incomplete(usize),
}

/// The fixed header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Request or response.
    pub kind: Kind,
    /// The number that pairs a response with its request.
    pub number: u32,
    /// Length of the head in bytes, within its limit.
    pub head_len: usize,
    /// Length of the body in bytes, within its limit.
    pub body_len: usize,
}

/// Reads the header at the front of `bytes`; `None` if more bytes are needed.
///
/// # Errors
/// [`FrameError`] as soon as a field that is already there is wrong, however few bytes have arrived.
pub fn parse_header(bytes: &[u8]) -> Result<Option<Header>, FrameError> {
    if let Some(&version) = bytes.first() {
        if version != VERSION {
            return Err(FrameError::Version(version));
        }
    }
    let kind = match bytes.get(1) {
        Some(1) | None => Kind::Request,
        Some(2) => Kind::Response,
        Some(&other) => return Err(FrameError::Kind(other)),
    };
    if let Some(reserved) = bytes.get(2..4) {
        if reserved != [0, 0] {
            return Err(FrameError::Reserved(u16::from_be_bytes([reserved[0], reserved[1]])));
        }
    }
    // Checked before any length is used, so that no buffer is ever sized by an unchecked number.
    let head_len = u32_at(bytes, 8);
    if let Some(n) = head_len.filter(|&n| n as usize > MAX_HEAD_BYTES) {
        return Err(FrameError::HeadTooLong(n));
    }
    let body_len = u32_at(bytes, 12);
    if let Some(n) = body_len.filter(|&n| n as usize > MAX_BODY_BYTES) {
        return Err(FrameError::BodyTooLong(n));
    }
    let (Some(number), Some(head_len), Some(body_len)) = (u32_at(bytes, 4), head_len, body_len) else {
        return Ok(None);
    };
    Ok(Some(Header { kind, number, head_len: head_len as usize, body_len: body_len as usize }))
}

/// Reads the frame at the front of `bytes`, looking at nothing behind it.
///
/// # Errors
/// [`FrameError`] as soon as a field that is already there is wrong, however few bytes have arrived.
pub fn decode(bytes: &[u8]) -> Result<Decoded<'_>, FrameError> {
    let Some(Header { kind, number, head_len, body_len }) = parse_header(bytes)? else {
        return Ok(Decoded::Incomplete(HEADER_BYTES));
    };
    let body_at = HEADER_BYTES + head_len;
    let end = body_at + body_len;
    if bytes.len() < end {
        return Ok(Decoded::Incomplete(end));
    }
    let frame = Frame { kind, number, head: &bytes[HEADER_BYTES..body_at], body: &bytes[body_at..end] };
    Ok(Decoded::Frame(frame, end))
}

/// The 16 header bytes of a frame whose head and body have these lengths in bytes.
///
/// # Panics
/// If a length is over its limit: the caller checks first, because only it knows what to send instead.
pub fn header(kind: Kind, number: u32, head_len: usize, body_len: usize) -> [u8; HEADER_BYTES] {
    assert!(
        head_len <= MAX_HEAD_BYTES && body_len <= MAX_BODY_BYTES,
        "frame over its limits: head {head_len}, body {body_len} bytes"
    );
    let mut bytes = [0; HEADER_BYTES];
    bytes[0] = VERSION;
    bytes[1] = kind as u8;
    bytes[4..8].copy_from_slice(&number.to_be_bytes());
    bytes[8..12].copy_from_slice(&(head_len as u32).to_be_bytes());
    bytes[12..16].copy_from_slice(&(body_len as u32).to_be_bytes());
    bytes
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let field = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(field.try_into().expect("a slice of 4 is 4 bytes")))
}
