//! The trace that a request belongs to, as W3C Trace Context has it (<https://www.w3.org/TR/trace-context/>). The header
//! `traceparent` of a client is passed on; a request without a valid one gets its own, which is not sampled.
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};

/// Version, trace, parent and flags: `00-` 32 digits `-` 16 digits `-` 2 digits.
const LENGTH: usize = 55;
const TRACE: std::ops::Range<usize> = 3..35;
const PARENT: std::ops::Range<usize> = 36..52;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent([u8; LENGTH]);

impl TraceParent {
    /// Of a client; `None` when it is none. Versions to come may have more behind the flags.
    pub fn read(value: &[u8]) -> Option<Self> {
        let beginning: [u8; LENGTH] = value.get(..LENGTH)?.try_into().ok()?;
        let is_hex = |&byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_dash = |at: usize| beginning[at] == b'-';
        let is_zero = |range: std::ops::Range<usize>| beginning[range].iter().all(|&byte: &u8| byte == b'0');
        let fits = beginning.iter().enumerate().all(|(at, byte)| matches!(at, 2 | 35 | 52) || is_hex(byte))
            && [2, 35, 52].into_iter().all(is_dash)
            && match &beginning[..2] {
                b"00" => value.len() == LENGTH,
                version => version != b"ff" && value.get(LENGTH).is_none_or(|&byte| byte == b'-'),
            };
        (fits && !is_zero(TRACE) && !is_zero(PARENT)).then_some(Self(beginning))
    }

    pub fn as_str(&self) -> &str {
        // It has been checked, or written, digit by digit.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    pub fn trace_id(&self) -> &str {
        &self.as_str()[TRACE]
    }
}

/// Makes traces. Their numbers are those of SplitMix64 (Steele, Lea, Flood, 2014) from a random beginning on: they must
/// differ, and need not be secret.
pub struct TraceIds(Cell<u64>);

impl TraceIds {
    /// # Errors
    /// When the system has no random numbers.
    pub fn new() -> io::Result<Self> {
        let mut random = [0; 8];
        File::open("/dev/urandom")?.read_exact(&mut random)?;
        Ok(Self(Cell::new(u64::from_ne_bytes(random))))
    }

    pub fn next(&self) -> TraceParent {
        let mut text = *b"00-00000000000000000000000000000000-0000000000000000-00";
        for place in [TRACE.start, TRACE.start + 16, PARENT.start] {
            // Zeros alone are no id.
            let number = self.number().max(1);
            for (at, digit) in text[place..place + 16].iter_mut().enumerate() {
                *digit = b"0123456789abcdef"[(number >> (60 - 4 * at) & 15) as usize];
            }
        }
        TraceParent(text)
    }

    fn number(&self) -> u64 {
        let state = self.0.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        self.0.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn those_of_clients_are_read() {
        let read = TraceParent::read(VALID.as_bytes()).unwrap();
        assert_eq!((read.as_str(), read.trace_id()), (VALID, "0af7651916cd43dd8448eb211c80319c"));
        let newer = format!("cc{}-more", &VALID[2..]);
        assert_eq!(TraceParent::read(newer.as_bytes()).unwrap().trace_id(), read.trace_id());
    }

    #[test]
    fn what_is_none_is_not() {
        let replaced = |range: std::ops::Range<usize>, with: &str| {
            let mut text = VALID.to_owned();
            text.replace_range(range, with);
            text
        };
        for text in [
            String::new(),
            VALID[..54].to_owned(),
            format!("{VALID}-more"),
            replaced(0..2, "ff"),
            replaced(2..3, "0"),
            replaced(3..4, "A"),
            replaced(TRACE, &"0".repeat(32)),
            replaced(PARENT, &"0".repeat(16)),
            replaced(53..54, "x"),
            format!("cc{}x", &VALID[2..]),
        ] {
            assert_eq!(TraceParent::read(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn new_ones_differ_and_are_valid() {
        let ids = TraceIds::new().unwrap();
        let [one, other] = [ids.next(), ids.next()];
        assert_eq!(TraceParent::read(one.as_str().as_bytes()), Some(one));
        assert!(one.trace_id() != other.trace_id() && one.as_str().ends_with("-00"));
    }
}
