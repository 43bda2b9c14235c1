//! The trace that a request belongs to, as W3C Trace Context has it (<https://www.w3.org/TR/trace-context/>). What the
//! gateway does for a request is a part of that of the client's header `traceparent`; a request without a valid one
//! gets its own. The handler gets it with the gateway's part as parent.
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};

use crate::messages::Sampling;

/// Version, trace, parent and flags: `00-` 32 digits `-` 16 digits `-` 2 digits.
const LENGTH: usize = 55;
const TRACE: std::ops::Range<usize> = 3..35;
const PARENT: std::ops::Range<usize> = 36..52;
/// What of a trace is random, also where its first digits are a time: 56 bits.
const RANDOM: std::ops::Range<usize> = 21..35;
const RANDOM_BITS: i32 = 56;
/// The last digit of the flags.
const FLAGS_END: usize = 54;
const SAMPLED: u8 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent([u8; LENGTH]);

impl TraceParent {
    /// Reads the header of a client; `None` when it is not valid. Versions to come may have more behind the flags.
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

    /// What is done for the request, or for what it is done.
    pub fn parent_id(&self) -> &str {
        &self.as_str()[PARENT]
    }

    fn last_flags(&self) -> u8 {
        char::from(self.0[FLAGS_END]).to_digit(16).unwrap_or_default() as u8
    }

    fn is_sampled(&self) -> bool {
        self.last_flags() & SAMPLED != 0
    }

    fn set_sampled(&mut self, is_sampled: bool) {
        let others = self.last_flags() & !SAMPLED;
        self.0[FLAGS_END] = DIGITS[usize::from(others | u8::from(is_sampled))];
    }

    /// Whether the trace is among this part of all traces: every gateway samples the same ones.
    fn is_within(&self, ratio: f64) -> bool {
        let random = u64::from_str_radix(&self.as_str()[RANDOM], 16).unwrap_or_default();
        random as f64 >= (1.0 - ratio) * 2_f64.powi(RANDOM_BITS)
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// What the gateway does for a request, as a part of a trace.
#[derive(Clone, Copy, Debug)]
pub struct RequestSpan {
    /// The part of the gateway, as the handler gets it.
    pub own: TraceParent,
    /// The part of the client, if it has sent one.
    pub client: Option<TraceParent>,
    /// Whether it is exported.
    pub is_recorded: bool,
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

    /// Begins with a request. Without `sampling` nothing is exported, and the client's flags are passed on.
    pub fn begin(&self, client: Option<TraceParent>, sampling: Option<&Sampling>) -> RequestSpan {
        let mut own = TraceParent(*b"00-00000000000000000000000000000000-0000000000000000-00");
        match &client {
            // The flags of a version to come may mean something else.
            Some(client) => own.0[TRACE.start..].copy_from_slice(&client.0[TRACE.start..]),
            None => [TRACE.start, TRACE.start + 16].into_iter().for_each(|place| self.write_id(&mut own, place)),
        }
        self.write_id(&mut own, PARENT.start);
        let is_recorded = sampling.is_some_and(|sampling| match &client {
            Some(client) if sampling.parent_based => client.is_sampled(),
            _ => own.is_within(sampling.ratio),
        });
        if sampling.is_some() {
            own.set_sampled(is_recorded);
        }
        RequestSpan { own, client, is_recorded }
    }

    /// Writes 16 digits.
    fn write_id(&self, to: &mut TraceParent, place: usize) {
        // Zeros alone are no id.
        let number = self.number().max(1);
        for (at, digit) in to.0[place..place + 16].iter_mut().enumerate() {
            *digit = DIGITS[(number >> (60 - 4 * at) & 15) as usize];
        }
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
    fn reads_traceparent_of_clients() {
        let read = TraceParent::read(VALID.as_bytes()).unwrap();
        assert_eq!((read.as_str(), read.trace_id()), (VALID, "0af7651916cd43dd8448eb211c80319c"));
        let newer = format!("cc{}-more", &VALID[2..]);
        assert_eq!(TraceParent::read(newer.as_bytes()).unwrap().trace_id(), read.trace_id());
    }

    #[test]
    fn rejects_invalid_traceparent() {
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
        let [one, other] = [ids.begin(None, None).own, ids.begin(None, None).own];
        assert_eq!(TraceParent::read(one.as_str().as_bytes()), Some(one));
        assert!(one.trace_id() != other.trace_id() && one.as_str().ends_with("-00"));
    }

    #[test]
    fn the_gateway_is_a_part_of_the_trace_of_its_client() {
        let ids = TraceIds::new().unwrap();
        let client = TraceParent::read(format!("cc{}-more", &VALID[2..]).as_bytes());
        let span = ids.begin(client, None);
        assert_eq!((span.own.trace_id(), span.client, span.is_recorded), (&VALID[TRACE], client, false));
        assert!(span.own.as_str().starts_with("00-") && span.own.as_str().ends_with("-01"));
        assert_ne!(span.own.parent_id(), &VALID[PARENT]);
    }

    #[test]
    fn sampled_is_what_the_client_says_or_else_a_part() {
        let ids = TraceIds::new().unwrap();
        let flags = |client: Option<&str>, parent_based: bool, ratio: f64| {
            let client = client.and_then(|text| TraceParent::read(text.as_bytes()));
            let span = ids.begin(client, Some(&Sampling { parent_based, ratio }));
            (span.is_recorded, span.own.as_str()[53..].to_owned())
        };
        let (yes, no) = ((true, "01".to_owned()), (false, "00".to_owned()));
        let unsampled = format!("{}0", &VALID[..54]);
        let with_others = format!("{}2", &VALID[..54]);
        assert_eq!(flags(Some(VALID), true, 0.0), yes);
        assert_eq!(flags(Some(VALID), false, 0.0), no);
        assert_eq!(flags(Some(&unsampled), true, 1.0), no);
        assert_eq!(flags(Some(&unsampled), false, 1.0), yes);
        assert_eq!(flags(Some(&with_others), false, 1.0), (true, "03".to_owned()));
        assert_eq!((flags(None, true, 1.0), flags(None, true, 0.0)), (yes, no));
        let taken = (0..10_000).filter(|_| flags(None, true, 0.25).0).count();
        assert!((2_200..2_800).contains(&taken), "{taken}");
    }
}
