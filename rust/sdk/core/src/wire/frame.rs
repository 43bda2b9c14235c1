//! The frame format, versions 1 and 2.
//!
//! A frame is a header of 16 bytes, a head (UTF-8 JSON) and a body (any bytes). Numbers are big-endian.
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 1 | version: 1 for kinds 1 and 2, 2 for all others |
//! | 1 | 1 | kind, see below |
//! | 2 | 2 | reserved, 0 |
//! | 4 | 4 | request number: chosen by the gateway, unique among the requests in flight on a connection, echoed |
//! | 8 | 4 | length of the head in bytes, at most [`MAX_HEAD_BYTES`] |
//! | 12 | 4 | length of the body in bytes, at most [`MAX_BODY_BYTES`] |
//!
//! | kind | sent by | what it is |
//! |---|---|---|
//! | 1 request | gateway | a whole request |
//! | 2 response | handler | a whole response |
//! | 3 stream | handler | the head of a response whose body follows as data, at most [`MAX_STREAM_HEAD_BYTES`]; no body |
//! | 4 data | either | a piece of a body or of a message, at most [`MAX_DATA_BYTES`]; no head |
//! | 5 end | either | the body is complete; neither head nor body |
//! | 6 reset | either | the stream is over before its end; the body says why, at most [`MAX_REASON_BYTES`] of text |
//! | 7 credit | either | so many more bytes may be sent: a number of 4 bytes in the body |
//! | 8 open | gateway | the head of a request whose body follows as data, or of a WebSocket; no body |
//! | 9 text | either | the last piece of a text message of a WebSocket, at most [`MAX_DATA_BYTES`]; no head |
//! | 10 binary | either | the last piece of a binary message, at most [`MAX_DATA_BYTES`]; no head |
//! | 11 ping | either | a ping of a WebSocket, at most [`MAX_CONTROL_BYTES`]; no head |
//! | 12 pong | either | a pong, at most [`MAX_CONTROL_BYTES`]; no head |
//! | 13 close | either | the end of a WebSocket: nothing, or a code of 2 bytes and a reason, at most [`MAX_CONTROL_BYTES`]; no head |
//! | 14 memory | gateway | memory for what follows of a stream: which one, and its size in bytes, 4 bytes each; its descriptor when it is given first |
//! | 15 shared | handler | the next bytes of a stream are in its memory: where they begin, and how many they are, 4 bytes each |
//!
//! Each side may send [`INITIAL_CREDIT`] bytes of each body, and what credit frames of the other add. So what a slow
//! client, or a slow handler, has not taken holds back its own stream and no other. The bodies of a request and of its
//! response have credit of their own. A stream that the gateway resets is over for it at once, in both directions; the
//! handler confirms that with a reset, an end or a response of its own, and until then the number is not used again. A
//! handler that has answered wants no more of the request's body: it drops what still comes, and the gateway ends that
//! body, with a reset if it is not complete, before it uses the number again.
//!
//! The gateway answers an upgrade itself once the handler accepts it with a stream of status 101. Then both sides send
//! messages until one has sent a close, which says why; the handler sends an end behind its own, and the gateway a
//! reset. What counts against the credit is in [`cost`].
//!
//! A large body need not go through the socket. A handler whose head of a stream has `"memory": true` may be given
//! memory for it: a memfd of Linux, whose descriptor comes by SCM_RIGHTS with the first byte of the frame. A connection
//! has few of these, which are used again for later streams, without a descriptor. The handler puts bytes there, at
//! least [`MIN_SHARED_BYTES`] at a time, and says so. They count against the credit as if they were data, and stay as
//! they are until there is credit for as many again: the gateway sends them to the client from there. A handler need
//! not use the memory, and may send data in between.
//!
//! A handler says what it takes besides whole requests when it becomes ready, see `takes.rs`: it
//! never gets a kind that it does not know. Only handlers that stream send kinds 3 to 7 and 15, and a gateway sends
//! them, and 14, only about streams.

use std::fmt;

/// The version of requests and responses that are one frame.
pub const VERSION: u8 = 1;
/// The version of the frames of streams.
pub const STREAM_VERSION: u8 = 2;
/// Length of the fixed header, in bytes.
pub const HEADER_BYTES: usize = 16;
/// Longest head, in bytes (1 MiB).
pub const MAX_HEAD_BYTES: usize = 1 << 20;
/// Longest body, in bytes (64 MiB).
pub const MAX_BODY_BYTES: usize = 64 << 20;
/// Longest head of a stream, in bytes (32 KiB).
pub const MAX_STREAM_HEAD_BYTES: usize = 32 << 10;
/// Longest piece of a stream, in bytes (32 KiB).
pub const MAX_DATA_BYTES: usize = 32 << 10;
/// Longest reason of a reset, in bytes (1 KiB).
pub const MAX_REASON_BYTES: usize = 1 << 10;
/// Longest payload of a ping, a pong or a close, in bytes: that of a control frame of a WebSocket (RFC 6455, 5.5).
pub const MAX_CONTROL_BYTES: usize = 125;
/// Bytes of a body that may be sent before any credit has come (256 KiB).
pub const INITIAL_CREDIT: usize = 256 << 10;
/// Most bytes of a response that may be under way, whatever credit has come (1 MiB). It may not grow for handlers that
/// were built before: they know by it how much of their memory is free.
pub const MAX_CREDIT: usize = 4 * INITIAL_CREDIT;
/// Memory that a stream is given (1.25 MiB): more than may be under way, so that a piece which does not fit behind the
/// last one fits at the beginning.
pub const MEMORY_BYTES: usize = MAX_CREDIT + (256 << 10);
/// Fewer bytes are sent as data: to know of many small pieces takes more memory than they have.
pub const MIN_SHARED_BYTES: usize = 16 << 10;
/// Length of the body of a frame that is a number.
const NUMBER_BYTES: usize = 4;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Gateway to handler.
    Request = 1,
    /// Handler to gateway.
    Response = 2,
    /// Handler to gateway: the head of a response whose body follows.
    Stream = 3,
    /// Either way: a piece of a body, or of a message.
    Data = 4,
    /// Either way: the end of a body.
    End = 5,
    /// Either way: the stream is over before its end.
    Reset = 6,
    /// Either way: more may be sent.
    Credit = 7,
    /// Gateway to handler: the head of a request whose body follows, or of a WebSocket.
    Open = 8,
    /// Either way: the last piece of a text message.
    Text = 9,
    /// Either way: the last piece of a binary message.
    Binary = 10,
    /// Either way: a ping of a WebSocket.
    Ping = 11,
    /// Either way: a pong of a WebSocket.
    Pong = 12,
    /// Either way: the end of a WebSocket.
    Close = 13,
    /// Gateway to handler: memory for what follows of a stream.
    Memory = 14,
    /// Handler to gateway: the next bytes of a stream are in that memory.
    Shared = 15,
}

impl Kind {
    fn of(version: u8, kind: u8) -> Option<Self> {
        Some(match (version, kind) {
            (VERSION, 1) => Kind::Request,
            (VERSION, 2) => Kind::Response,
            (STREAM_VERSION, 3) => Kind::Stream,
            (STREAM_VERSION, 4) => Kind::Data,
            (STREAM_VERSION, 5) => Kind::End,
            (STREAM_VERSION, 6) => Kind::Reset,
            (STREAM_VERSION, 7) => Kind::Credit,
            (STREAM_VERSION, 8) => Kind::Open,
            (STREAM_VERSION, 9) => Kind::Text,
            (STREAM_VERSION, 10) => Kind::Binary,
            (STREAM_VERSION, 11) => Kind::Ping,
            (STREAM_VERSION, 12) => Kind::Pong,
            (STREAM_VERSION, 13) => Kind::Close,
            (STREAM_VERSION, 14) => Kind::Memory,
            (STREAM_VERSION, 15) => Kind::Shared,
            _ => return None,
        })
    }

    /// The version of its frames.
    pub fn version(self) -> u8 {
        match self {
            Kind::Request | Kind::Response => VERSION,
            _ => STREAM_VERSION,
        }
    }

    /// The longest head and body that it may have, in bytes.
    fn limits(self) -> (usize, usize) {
        match self {
            Kind::Request | Kind::Response => (MAX_HEAD_BYTES, MAX_BODY_BYTES),
            Kind::Stream => (MAX_STREAM_HEAD_BYTES, 0),
            Kind::Open => (MAX_HEAD_BYTES, 0),
            Kind::Data | Kind::Text | Kind::Binary => (0, MAX_DATA_BYTES),
            Kind::Ping | Kind::Pong | Kind::Close => (0, MAX_CONTROL_BYTES),
            Kind::End => (0, 0),
            Kind::Reset => (0, MAX_REASON_BYTES),
            Kind::Credit => (0, NUMBER_BYTES),
            Kind::Memory | Kind::Shared => (0, 2 * NUMBER_BYTES),
        }
    }
}

/// One frame, borrowed from the bytes it was decoded from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What it is.
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
    /// The first byte is neither [`VERSION`] nor [`STREAM_VERSION`].
    Version(u8),
    /// The second byte is no kind of that version.
    Kind(u8),
    /// Bytes 2 and 3 are not zero.
    Reserved(u16),
    /// The head would be of a length above its limit.
    HeadTooLong(u32, usize),
    /// The body would be of a length above its limit.
    BodyTooLong(u32, usize),
}

impl FrameError {
    /// A short stable name, the same as in the golden frames.
    pub fn code(&self) -> &'static str {
        match self {
            FrameError::Version(_) => "version",
            FrameError::Kind(_) => "kind",
            FrameError::Reserved(_) => "reserved",
            FrameError::HeadTooLong(..) => "head_too_long",
            FrameError::BodyTooLong(..) => "body_too_long",
        }
    }
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::Version(v) => write!(f, "protocol version {v}, expected {VERSION} or {STREAM_VERSION}"),
            FrameError::Kind(k) => write!(f, "frame kind {k}, which its version does not have"),
            FrameError::Reserved(r) => write!(f, "reserved bytes are {r:#06x}, expected 0"),
            FrameError::HeadTooLong(n, limit) => write!(f, "head of {n} bytes, the limit is {limit}"),
            FrameError::BodyTooLong(n, limit) => write!(f, "body of {n} bytes, the limit is {limit}"),
        }
    }
}

impl std::error::Error for FrameError {}

/// What the front of a byte stream holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeResult<'a> {
    /// A whole frame, and how many bytes it took.
    Frame(Frame<'a>, usize),
    /// More bytes are needed: at least as many as make the given total, counted from the start of the frame.
    Incomplete(usize),
}

/// The fixed header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What it is.
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
    let Some(&version) = bytes.first() else { return Ok(None) };
    if version != VERSION && version != STREAM_VERSION {
        return Err(FrameError::Version(version));
    }
    let Some(&kind) = bytes.get(1) else { return Ok(None) };
    let kind = Kind::of(version, kind).ok_or(FrameError::Kind(kind))?;
    let (max_head, max_body) = kind.limits();
    if let Some(reserved) = bytes.get(2..4) {
        if reserved != [0, 0] {
            return Err(FrameError::Reserved(u16::from_be_bytes([reserved[0], reserved[1]])));
        }
    }
    // Checked before any length is used, so that no buffer is ever sized by an unchecked number.
    let head_len = u32_at(bytes, 8);
    if let Some(n) = head_len.filter(|&n| n as usize > max_head) {
        return Err(FrameError::HeadTooLong(n, max_head));
    }
    let body_len = u32_at(bytes, 12);
    if let Some(n) = body_len.filter(|&n| n as usize > max_body) {
        return Err(FrameError::BodyTooLong(n, max_body));
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
pub fn decode(bytes: &[u8]) -> Result<DecodeResult<'_>, FrameError> {
    let Some(Header { kind, number, head_len, body_len }) = parse_header(bytes)? else {
        return Ok(DecodeResult::Incomplete(HEADER_BYTES));
    };
    let body_at = HEADER_BYTES + head_len;
    let end = body_at + body_len;
    if bytes.len() < end {
        return Ok(DecodeResult::Incomplete(end));
    }
    let frame = Frame { kind, number, head: &bytes[HEADER_BYTES..body_at], body: &bytes[body_at..end] };
    Ok(DecodeResult::Frame(frame, end))
}

/// The 16 header bytes of a frame whose head and body have these lengths in bytes.
///
/// # Panics
/// If a length is over its limit: the caller checks first, because only it knows what to send instead.
pub fn header(kind: Kind, number: u32, head_len: usize, body_len: usize) -> [u8; HEADER_BYTES] {
    let (max_head, max_body) = kind.limits();
    assert!(
        head_len <= max_head && body_len <= max_body,
        "frame over its limits: head {head_len}, body {body_len} bytes"
    );
    let mut bytes = [0; HEADER_BYTES];
    bytes[0] = kind.version();
    bytes[1] = kind as u8;
    bytes[4..8].copy_from_slice(&number.to_be_bytes());
    bytes[8..12].copy_from_slice(&(head_len as u32).to_be_bytes());
    bytes[12..16].copy_from_slice(&(body_len as u32).to_be_bytes());
    bytes
}

/// What a frame counts against the credit of its stream, in bytes. Messages count their header, too: without it, any
/// number of empty ones would be allowed.
pub fn cost(kind: Kind, body_len: usize) -> usize {
    match kind {
        Kind::Data => body_len,
        Kind::Text | Kind::Binary | Kind::Ping | Kind::Pong => HEADER_BYTES + body_len,
        _ => 0,
    }
}

/// A whole credit frame: `bytes` more of a stream may be sent.
pub fn credit(number: u32, bytes: u32) -> [u8; HEADER_BYTES + NUMBER_BYTES] {
    numbers(Kind::Credit, number, [bytes])
}

/// The frame with which a stream is given memory of so many bytes; `which` of those of the connection.
pub fn memory(number: u32, which: u32, bytes: u32) -> [u8; HEADER_BYTES + 2 * NUMBER_BYTES] {
    numbers(Kind::Memory, number, [which, bytes])
}

/// The frame that says where the next bytes of a stream are in its memory, and how many they are.
pub fn shared(number: u32, start: u32, bytes: u32) -> [u8; HEADER_BYTES + 2 * NUMBER_BYTES] {
    numbers(Kind::Shared, number, [start, bytes])
}

/// A whole frame whose body are numbers.
fn numbers<const COUNT: usize, const BYTES: usize>(kind: Kind, number: u32, values: [u32; COUNT]) -> [u8; BYTES] {
    let mut frame = [0; BYTES];
    frame[..HEADER_BYTES].copy_from_slice(&header(kind, number, 0, BYTES - HEADER_BYTES));
    for (field, value) in frame[HEADER_BYTES..].chunks_exact_mut(NUMBER_BYTES).zip(values) {
        field.copy_from_slice(&value.to_be_bytes());
    }
    frame
}

/// What the body of a credit frame says; `None` if it is none.
pub fn credited(body: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(body.try_into().ok()?))
}

/// What the body of a frame about memory says; `None` if it is none.
pub fn two_numbers(body: &[u8]) -> Option<(u32, u32)> {
    let (first, second) = body.split_at_checked(NUMBER_BYTES)?;
    Some((credited(first)?, credited(second)?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let field = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(field.try_into().expect("a slice of 4 is 4 bytes")))
}
