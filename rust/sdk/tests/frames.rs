//! The codec: golden frames, streams cut everywhere, and bytes at random.

use rust_edge_gateway_sdk::wire::buffer::Buffer;
use rust_edge_gateway_sdk::wire::frame::{
    credit, credited, decode, header, DecodeResult, FrameError, Kind, HEADER_BYTES, MAX_BODY_BYTES,
};
use serde::Deserialize;

/// `test/golden/frames.json`, which the TypeScript tests read too.
#[derive(Deserialize)]
struct Golden {
    name: String,
    hex: String,
    frame: Option<GoldenFrame>,
    error: Option<String>,
}

#[derive(Deserialize, Clone)]
struct GoldenFrame {
    kind: u8,
    number: u32,
    head: String,
    body_hex: String,
}

const KINDS: [Kind; 15] = [
    Kind::Request,
    Kind::Response,
    Kind::Stream,
    Kind::Data,
    Kind::End,
    Kind::Reset,
    Kind::Credit,
    Kind::Open,
    Kind::Text,
    Kind::Binary,
    Kind::Ping,
    Kind::Pong,
    Kind::Close,
    Kind::Memory,
    Kind::Shared,
];

fn golden() -> Vec<Golden> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../test/golden/frames.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// The bytes of all golden frames that are whole, and what they hold.
fn stream() -> (Vec<u8>, Vec<GoldenFrame>) {
    let whole = golden().into_iter().filter_map(|g| Some((bytes(&g.hex), g.frame?)));
    let (bytes, frames): (Vec<_>, Vec<_>) = whole.unzip();
    (bytes.concat(), frames)
}

fn drain(buffer: &mut Buffer, into: &mut Vec<GoldenFrame>) {
    while let Some(frame) = buffer.next_frame().unwrap() {
        into.push(GoldenFrame {
            kind: frame.kind as u8,
            number: frame.number,
            head: String::from_utf8(frame.head.to_vec()).unwrap(),
            body_hex: frame.body.iter().map(|byte| format!("{byte:02x}")).collect(),
        });
    }
}

fn assert_same(found: &[GoldenFrame], expected: &[GoldenFrame]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found.number, expected.number);
        assert_eq!(found.kind, expected.kind);
        assert_eq!(found.head, expected.head);
        assert_eq!(found.body_hex, expected.body_hex);
    }
}

#[test]
fn golden_frames_decode_as_written() {
    for g in golden() {
        let raw = bytes(&g.hex);
        let outcome = match decode(&raw) {
            Ok(DecodeResult::Incomplete(total)) => {
                assert!(total > raw.len(), "{}", g.name);
                "incomplete"
            }
            Err(error) => error.code(),
            Ok(DecodeResult::Frame(frame, taken)) => {
                let expected = g.frame.as_ref().unwrap_or_else(|| panic!("{} decoded", g.name));
                assert_eq!(taken, raw.len(), "{}", g.name);
                assert_eq!(frame.kind as u8, expected.kind, "{}", g.name);
                assert_eq!(frame.number, expected.number, "{}", g.name);
                assert_eq!(frame.head, expected.head.as_bytes(), "{}", g.name);
                assert_eq!(frame.body, bytes(&expected.body_hex), "{}", g.name);
                "ok"
            }
        };
        assert_eq!(outcome, g.error.as_deref().unwrap_or("ok"), "{}", g.name);
    }
}

#[test]
fn golden_frames_encode_as_written() {
    for g in golden() {
        let Some(frame) = g.frame else { continue };
        let kind = KINDS[usize::from(frame.kind) - 1];
        let (head, body) = (frame.head.as_bytes(), bytes(&frame.body_hex));
        let encoded = [&header(kind, frame.number, head.len(), body.len()), head, &body].concat();
        assert_eq!(encoded, bytes(&g.hex), "{}", g.name);
    }
}

#[test]
fn a_credit_frame_says_how_many_bytes() {
    let raw = credit(7, 65_536);
    let Ok(DecodeResult::Frame(frame, taken)) = decode(&raw) else { panic!("it is whole") };
    assert_eq!((frame.kind, frame.number, credited(frame.body), taken), (Kind::Credit, 7, Some(65_536), raw.len()));
    assert_eq!(credited(b"123"), None);
}

#[test]
fn every_golden_request_becomes_a_request() {
    for g in golden() {
        let raw = bytes(&g.hex);
        let Ok(DecodeResult::Frame(frame, _)) = decode(&raw) else { continue };
        let request = rust_edge_gateway_sdk::wire::head::request(&frame);
        let valid = matches!(frame.kind, Kind::Request | Kind::Open) && !frame.head.is_empty();
        assert_eq!(request.is_ok(), valid, "{}: {request:?}", g.name);
        let Ok(request) = request else { continue };
        assert_eq!(request.body_bytes(), frame.body, "{}", g.name);
        match g.name.as_str() {
            "request without a body" => {
                assert_eq!((request.path.as_str(), request.query["y"].as_str()), ("/items/1", "a b"));
                assert_eq!((request.headers["host"].as_str(), request.headers["x-a"].as_str()), ("a.b", "1"));
                assert_eq!((request.params["id"].as_str(), request.client_ip.as_deref()), ("1", Some("127.0.0.1")));
                assert_eq!((request.method.as_str(), request.request_id.as_str()), ("GET", "r-1"));
                assert_eq!(request.body, None);
            }
            "request with a UTF-8 head" => {
                assert_eq!(request.path, "/gr%C3%BC%C3%9Fe/%F0%9F%A6%80");
                assert_eq!((request.params["wort"].as_str(), request.params["tier"].as_str()), ("grüße", "🦀"));
            }
            "request with every byte value in its body" => assert_eq!(request.body, None),
            "request with repeated headers" => {
                assert_eq!(request.headers["accept"], "text/html, text/plain");
                assert_eq!(request.headers["cookie"], "a=1; b=2");
            }
            _ => {}
        }
    }
}

#[test]
fn a_stream_cut_in_two_anywhere_decodes_the_same() {
    let (stream, expected) = stream();
    for cut in 0..=stream.len() {
        let (mut buffer, mut found) = (Buffer::new(), Vec::new());
        for part in [&stream[..cut], &stream[cut..]] {
            buffer.extend(part);
            drain(&mut buffer, &mut found);
        }
        assert_same(&found, &expected);
        assert!(!buffer.is_mid_frame());
    }
}

#[test]
fn a_stream_in_pieces_of_any_size_decodes_the_same() {
    let (stream, expected) = stream();
    for size in 1..64 {
        let (mut buffer, mut found) = (Buffer::new(), Vec::new());
        for piece in stream.chunks(size) {
            buffer.extend(piece);
            drain(&mut buffer, &mut found);
        }
        assert_same(&found, &expected);
    }
}

#[test]
fn a_frame_far_larger_than_its_pieces_arrives_whole() {
    let body: Vec<u8> = (0..5_000_000u32).map(|n| (n % 251) as u8).collect();
    let mut stream = header(Kind::Request, 9, 2, body.len()).to_vec();
    stream.extend_from_slice(b"{}");
    stream.extend_from_slice(&body);
    stream.extend_from_slice(&header(Kind::Request, 10, 0, 0));
    let mut buffer = Buffer::new();
    let mut numbers = Vec::new();
    for piece in stream.chunks(1000) {
        buffer.extend(piece);
        while let Some(frame) = buffer.next_frame().unwrap() {
            assert!(frame.number != 9 || frame.body == body);
            numbers.push(frame.number);
        }
    }
    assert_eq!(numbers, [9, 10]);
}

#[test]
fn the_buffer_grows_by_what_arrives_and_not_by_what_is_promised() {
    let mut buffer = Buffer::new();
    buffer.extend(&header(Kind::Request, 1, 0, MAX_BODY_BYTES));
    assert!(buffer.next_frame().unwrap().is_none());
    assert!(buffer.room().len() < 100_000);
}

#[test]
fn an_error_stays_an_error_however_the_bytes_arrive() {
    for g in golden() {
        let Some(code) = g.error.filter(|code| code != "incomplete") else { continue };
        let raw = bytes(&g.hex);
        let mut first = None;
        for cut in 0..=raw.len() {
            match decode(&raw[..cut]) {
                Err(error) => assert_eq!(error.code(), *first.get_or_insert(error.code()), "{}", g.name),
                Ok(DecodeResult::Incomplete(_)) => assert!(first.is_none(), "{}: the error went away", g.name),
                Ok(DecodeResult::Frame(..)) => panic!("{}: decoded", g.name),
            }
        }
        assert_eq!(first, Some(code.as_str()), "{}", g.name);
    }
}

/// A small generator (xorshift64), so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

#[test]
fn random_bytes_never_panic_and_never_decode_beyond_their_end() {
    let mut random = Random(0x5eed);
    for _ in 0..200_000 {
        let mut raw: Vec<u8> = (0..random.below(40)).map(|_| random.next() as u8).collect();
        // Mostly a plausible beginning, so that the later checks are reached.
        for (at, byte) in [1 + (random.next() % 2) as u8, 1 + (random.next() % 7) as u8, 0, 0].into_iter().enumerate() {
            if at < raw.len() && random.below(10) > 0 {
                raw[at] = byte;
            }
        }
        for at in [8, 9, 10, 12, 13, 14] {
            if at < raw.len() && random.below(4) > 0 {
                raw[at] = 0;
            }
        }
        match decode(&raw) {
            Ok(DecodeResult::Frame(frame, taken)) => {
                assert!(taken <= raw.len());
                assert_eq!(taken, HEADER_BYTES + frame.head.len() + frame.body.len());
            }
            Ok(DecodeResult::Incomplete(total)) => assert!(total > raw.len()),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

#[test]
fn random_frames_survive_random_cuts() {
    let mut random = Random(0xfeed);
    for _ in 0..300 {
        let frames: Vec<(u32, Vec<u8>, Vec<u8>)> = (0..random.below(20))
            .map(|_| {
                let head = (0..random.below(200)).map(|_| random.next() as u8).collect();
                let body = (0..random.below(2000)).map(|_| random.next() as u8).collect();
                (random.next() as u32, head, body)
            })
            .collect();
        let stream: Vec<u8> = frames
            .iter()
            .flat_map(|(number, head, body)| {
                [&header(Kind::Response, *number, head.len(), body.len())[..], head, body].concat()
            })
            .collect();
        let (mut buffer, mut found, mut rest) = (Buffer::new(), Vec::new(), &stream[..]);
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(1 + random.below(rest.len()).min(700));
            rest = after;
            buffer.extend(piece);
            while let Some(frame) = buffer.next_frame().unwrap() {
                found.push((frame.number, frame.head.to_vec(), frame.body.to_vec()));
            }
        }
        assert!(found == frames);
    }
}

/// Numbers, heads and bodies.
type Parts = Vec<(u32, Vec<u8>, Vec<u8>)>;

/// Reads a stream in pieces, to its end or its error. What the buffer offers never exceeds what has arrived by much.
fn read_in_pieces(stream: &[u8], piece: usize) -> (Parts, Result<bool, &'static str>) {
    const SLACK: usize = 256 * 1024;
    let (mut buffer, mut found, mut arrived) = (Buffer::new(), Vec::new(), 0);
    for bytes in stream.chunks(piece) {
        buffer.extend(bytes);
        arrived += bytes.len();
        loop {
            match buffer.next_frame() {
                Ok(Some(frame)) => found.push((frame.number, frame.head.to_vec(), frame.body.to_vec())),
                Ok(None) => break,
                Err(error) => return (found, Err(error.code())),
            }
        }
        assert!(buffer.room().len() <= 2 * arrived + SLACK);
    }
    (found, Ok(buffer.is_mid_frame()))
}

#[test]
fn damaged_streams_end_the_same_however_they_are_cut() {
    let mut random = Random(0xbad);
    for _ in 0..2_000 {
        let mut stream = Vec::new();
        for _ in 0..random.below(5) {
            let body: Vec<u8> = (0..random.below(300)).map(|_| random.next() as u8).collect();
            stream.extend_from_slice(&header(Kind::Request, random.next() as u32, 2, body.len()));
            stream.extend_from_slice(b"{}");
            stream.extend_from_slice(&body);
        }
        for _ in 0..random.below(4) {
            let at = random.below(stream.len() + 1);
            match random.below(3) {
                0 => stream.truncate(at),
                1 => stream.insert(at, random.next() as u8),
                _ => stream.iter_mut().skip(at).take(1).for_each(|byte| *byte = random.next() as u8),
            }
        }
        let expected = read_in_pieces(&stream, 1);
        for piece in [2, 3, 17, 1_000_000] {
            assert_eq!(read_in_pieces(&stream, piece), expected);
        }
    }
}

#[test]
fn damaged_heads_are_refused_and_never_panic() {
    const SPECIAL: &[u8] = b"{}[]\",:0-e\\\0\xff";
    let (mut random, mut read) = (Random(0x4ead), 0);
    let whole: Vec<Vec<u8>> = golden()
        .into_iter()
        .filter_map(|g| g.frame)
        .filter(|frame| frame.kind <= 2)
        .map(|frame| frame.head.into_bytes())
        .collect();
    for _ in 0..20_000 {
        let mut head = whole[random.below(whole.len())].clone();
        for _ in 0..random.below(4) {
            let at = random.below(head.len() + 1);
            match random.below(4) {
                0 => head.truncate(at),
                1 => head.insert(at, SPECIAL[random.below(SPECIAL.len())]),
                2 => drop(head.drain(at..(at + random.below(9)).min(head.len()))),
                _ => head.iter_mut().skip(at).take(1).for_each(|byte| *byte = random.next() as u8),
            }
        }
        let raw = [&header(Kind::Request, 1, head.len(), 0)[..], &head].concat();
        let Ok(DecodeResult::Frame(frame, _)) = decode(&raw) else { panic!("a whole frame") };
        match rust_edge_gateway_sdk::wire::head::request(&frame) {
            Ok(request) => {
                assert!(request.body_bytes().is_empty());
                read += 1;
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    assert!(read > 0 && read < 20_000, "{read} were read: neither all nor none");
}

#[test]
fn errors_say_what_was_expected() {
    let text = |raw: &[u8]| decode(raw).unwrap_err().to_string();
    assert_eq!(text(&[3]), "protocol version 3, expected 1 or 2");
    assert_eq!(text(&[2, 1]), "frame kind 1, which its version does not have");
    assert_eq!(
        FrameError::BodyTooLong(70_000_000, MAX_BODY_BYTES).to_string(),
        "body of 70000000 bytes, the limit is 67108864"
    );
}
