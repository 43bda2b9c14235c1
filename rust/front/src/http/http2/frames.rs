//! The frames of a connection, as they pass by: how long a head has been coming, and how much there is to do for a
//! client that asks for nothing. What is in them is the business of `h2`.
use std::time::Instant;

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// RFC 9113, section 4.1: length, kind, flags and stream.
const HEADER_BYTES: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;

/// Frames that are neither requests nor their bodies, at once and a second. What is sent to the client earns it more:
/// it may acknowledge that.
const MAX_IDLE_FRAMES: f64 = 1_000.0;
const IDLE_FRAMES_PER_SECOND: f64 = 100.0;
/// So many bytes sent earn one more.
const BYTES_PER_FRAME: f64 = 4_096.0;

/// Reads the headers of the frames that a client sends.
pub struct Frames {
    header: [u8; HEADER_BYTES],
    /// Bytes of the header that have come.
    filled: usize,
    /// Bytes of the payload, or of the preface, that have not come.
    left: usize,
    /// Whether a head has begun, and its end not come.
    is_in_head: bool,
    heads: u64,
    /// Frames that it may send, and since when.
    idle: f64,
    since: Instant,
}

impl Frames {
    /// Begins before the preface, which it skips.
    pub fn new() -> Self {
        Self {
            header: [0; HEADER_BYTES],
            filled: 0,
            left: PREFACE.len(),
            is_in_head: false,
            heads: 0,
            idle: MAX_IDLE_FRAMES,
            since: Instant::now(),
        }
    }

    /// Whether the client has begun a head, or its trailers, and not ended it.
    pub fn is_in_head(&self) -> bool {
        self.is_in_head
    }

    /// Heads that have come.
    pub fn heads(&self) -> u64 {
        self.heads
    }

    /// Whether the client has sent too many frames that ask for nothing.
    pub fn are_too_many(&self) -> bool {
        self.idle < 0.0
    }

    pub fn sent(&mut self, bytes: usize) {
        self.idle = (self.idle + bytes as f64 / BYTES_PER_FRAME).min(MAX_IDLE_FRAMES);
    }

    /// Takes what has come.
    pub fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() || self.is_whole() {
            if self.left > 0 {
                let taken = self.left.min(bytes.len());
                self.left -= taken;
                bytes = &bytes[taken..];
            } else if self.filled < HEADER_BYTES {
                let taken = (HEADER_BYTES - self.filled).min(bytes.len());
                self.header[self.filled..self.filled + taken].copy_from_slice(&bytes[..taken]);
                self.filled += taken;
                bytes = &bytes[taken..];
                if self.filled == HEADER_BYTES {
                    self.begin();
                }
            } else {
                self.end();
            }
        }
    }

    /// Whether a frame has come to its end.
    fn is_whole(&self) -> bool {
        self.filled == HEADER_BYTES && self.left == 0
    }

    fn begin(&mut self) {
        let [a, b, c, kind, ..] = self.header;
        self.left = u32::from_be_bytes([0, a, b, c]) as usize;
        match kind {
            HEADERS | CONTINUATION => self.is_in_head = true,
            DATA if self.left > 0 => {}
            _ => self.spend(kind),
        }
    }

    fn end(&mut self) {
        let [_, _, _, kind, flags, ..] = self.header;
        self.filled = 0;
        if matches!(kind, HEADERS | CONTINUATION) && flags & END_HEADERS != 0 {
            self.is_in_head = false;
            self.heads += 1;
        }
    }

    fn spend(&mut self, kind: u8) {
        let now = Instant::now();
        let passed = now.duration_since(self.since).as_secs_f64();
        self.since = now;
        self.idle = (self.idle + passed * IDLE_FRAMES_PER_SECOND).min(MAX_IDLE_FRAMES);
        // A request that is reset at once has cost more than the frame.
        self.idle -= match kind {
            RST_STREAM => 2.0,
            WINDOW_UPDATE => 0.5,
            _ => 1.0,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() as u32).to_be_bytes();
        [&length[1..], &[kind, flags, 0, 0, 0, 1], payload].concat()
    }

    #[test]
    fn heads_begin_and_end_however_they_are_cut() {
        let bytes = [
            PREFACE.to_vec(),
            frame(4, 0, &[]),
            frame(HEADERS, 0, b"abc"),
            frame(CONTINUATION, END_HEADERS, b"de"),
            frame(DATA, 0, b"body"),
            frame(HEADERS, END_HEADERS, b""),
        ]
        .concat();
        for size in 1..bytes.len() {
            let mut frames = Frames::new();
            let mut was_in_head = false;
            for piece in bytes.chunks(size) {
                frames.take(piece);
                was_in_head |= frames.is_in_head();
            }
            assert_eq!((frames.heads(), frames.is_in_head()), (2, false), "{size}");
            assert!(was_in_head || size > 12, "{size}");
        }
        let mut frames = Frames::new();
        frames.take(&[PREFACE, &frame(HEADERS, END_HEADERS, b"abc")[..11]].concat());
        assert!(frames.is_in_head() && frames.heads() == 0);
        frames.take(b"c");
        assert!(!frames.is_in_head() && frames.heads() == 1);
    }

    #[test]
    fn frames_that_ask_for_nothing_are_limited() {
        for (kind, flags, payload, is_limited) in [
            (6, 0, &[0; 8][..], true),
            (4, 0, &[], true),
            (2, 0, &[0; 5], true),
            (200, 0, &[], true),
            (DATA, 0, &[], true),
            (RST_STREAM, 0, &[0; 4], true),
            (DATA, 0, b"x", false),
            (HEADERS, END_HEADERS, b"x", false),
        ] {
            let mut frames = Frames::new();
            frames.take(PREFACE);
            let bytes = frame(kind, flags, payload);
            (0..2 * MAX_IDLE_FRAMES as usize).for_each(|_| frames.take(&bytes));
            assert_eq!(frames.are_too_many(), is_limited, "{kind}");
        }
    }

    #[test]
    fn what_is_sent_earns_frames() {
        let mut frames = Frames::new();
        frames.take(PREFACE);
        let update = frame(WINDOW_UPDATE, 0, &[0; 4]);
        for _ in 0..20_000 {
            frames.sent(16 * 1024);
            frames.take(&update);
            frames.take(&update);
        }
        assert!(!frames.are_too_many());
    }
}
