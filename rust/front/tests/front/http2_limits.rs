//! Clients of HTTP/2 that are too slow, or send too much: frame by frame.
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::http2::{Field, Frame, PREFACE, block, code, fields, flag, frame, kind, setting};
use crate::support::{Answer, Front, Gate, Http2, PATIENCE, Request, eventually, get, post};

const STREAMS: usize = 100;
/// How many bytes more the front may have when all is over. A flood would take more.
const MAX_GROWTH: usize = 64 << 20;
const LARGEST_WINDOW: u32 = (1 << 31) - 1;
/// The time between two pieces of what a slow client sends.
const PAUSE: Duration = Duration::from_millis(50);

/// Answers POST with how much it got, and GET with 6 MiB, or after the gate has been opened. Of the three timeouts, all
/// but those that are given are longer than a test waits: what ends a connection is what the test says.
fn front_with_gate(timeouts: &[(&str, u32)]) -> (Front, Gate) {
    let mut settings = json!({ "memoryBytes": 1 << 30 });
    for name in ["headTimeoutMs", "idleTimeoutMs", "stallTimeoutMs"] {
        settings[name] = (10 * PATIENCE.as_millis() as u64).into();
    }
    for &(name, milliseconds) in timeouts {
        settings[name] = milliseconds.into();
    }
    let front = Front::with(settings);
    let gate = Gate::default();
    let late = gate.clone();
    let handler = front.handler(move |request: &Request| {
        if request.method() == "POST" {
            return Answer::new(200, request.body.len().to_string());
        }
        if request.query("late").is_some() {
            late.wait();
            return Answer::new(200, "late");
        }
        Answer::new(200, vec![b'x'; 6 << 20])
    });
    front.serve(&handler, [get("/sizes").limit("concurrentRequests", 1_000), post("/sizes")]);
    (front, gate)
}

fn front() -> Front {
    front_with_gate(&[]).0
}

fn front_with(timeout: &str, milliseconds: u32) -> Front {
    front_with_gate(&[(timeout, milliseconds)]).0
}

fn get_of(path: &str) -> Vec<Field> {
    fields("GET", path)
}

fn post_of_sizes() -> Vec<Field> {
    fields("POST", "/sizes")
}

/// A head in one frame, which ends there.
fn head(flags: u8, stream: u32, fields: &[Field]) -> Vec<u8> {
    frame(kind::HEADERS, flag::END_HEADERS | flags, stream, &block(fields))
}

fn expect_alive(front: &Front) {
    assert_eq!(front.post("/sizes", "", "abc").text(), "3");
}

fn expect_end(client: &mut Http2, code: u32) {
    assert_eq!(client.closed(), Some(code));
}

fn expect_served(client: &mut Http2) {
    let stream = client.request(&post_of_sizes(), Some(b"abc"), None);
    let end = client.end_of(stream);
    assert_eq!((end.status, &end.body[..]), (Some(200), &b"3"[..]), "{end:?}");
}

#[test]
fn a_client_that_sends_half_a_preface_gets_408_of_http_1() {
    let front = front_with("headTimeoutMs", 3_000);
    let responses = front.connect().send(&PREFACE[..16]).rest();
    assert_eq!(responses.iter().map(|response| response.status).collect::<Vec<_>>(), [408]);
}

#[test]
fn a_connection_without_a_request_ends() {
    let front = front_with("headTimeoutMs", 3_000);
    expect_end(&mut front.connect_http2(), code::CALM);
    expect_alive(&front);
}

#[test]
fn a_connection_whose_head_stops_ends_also_when_it_had_other_requests() {
    let front = front_with("headTimeoutMs", 3_000);
    let mut client = front.connect_http2();
    expect_served(&mut client);
    client.send(frame(kind::HEADERS, flag::END_STREAM, 3, &block(&get_of("/sizes"))));
    expect_end(&mut client, code::CALM);
    expect_alive(&front);
}

#[test]
fn a_connection_that_is_idle_ends_however_often_it_is_pinged() {
    let front = front_with("idleTimeoutMs", 3_000);
    let mut client = front.connect_http2();
    expect_served(&mut client);
    eventually(
        || "the connection does not end".to_owned(),
        || {
            std::thread::sleep(PAUSE);
            client.send(frame(kind::PING, 0, 0, &[0; 8])).read();
            client.is_closed
        },
    );
    assert_eq!(client.go_away(), Some(code::NONE));
    expect_alive(&front);
}

#[test]
fn a_body_that_stops_or_trickles_in_gets_408_and_other_streams_go_on() {
    let front = front_with("stallTimeoutMs", 3_000);
    let mut client = front.connect_http2();
    let slow = [1, 3];
    for stream in slow {
        client.send(head(0, stream, &post_of_sizes()));
    }
    let has_ended = |client: &Http2, stream: u32| {
        client.frames.iter().any(|frame: &Frame| frame.stream == stream && frame.flags & flag::END_STREAM != 0)
    };
    let mut next = 5;
    let begin = Instant::now();
    while !slow.iter().all(|&stream| has_ended(&client, stream)) {
        assert!(begin.elapsed() < PATIENCE, "the slow streams do not end");
        client.send(frame(kind::DATA, 0, 3, b"x"));
        client.send(head(0, next, &post_of_sizes())).send(frame(kind::DATA, flag::END_STREAM, next, b"abc"));
        let end = client.end_of(next);
        assert_eq!((end.status, &end.body[..]), (Some(200), &b"3"[..]), "{end:?}");
        next += 2;
        std::thread::sleep(PAUSE);
    }
    for stream in slow {
        let end = client.end_of(stream);
        let error: Value = serde_json::from_slice(&end.body).unwrap();
        assert_eq!((end.status, &error["error"]), (Some(408), &json!("The request did not arrive in time.")));
    }
    expect_alive(&front);
}

#[test]
fn responses_for_which_the_client_has_no_window_are_reset_and_their_memory_is_free() {
    let front = front_with("stallTimeoutMs", 3_000);
    let mut client = Http2::connect(front.address, &[(setting::INITIAL_WINDOW, 0)]);
    let streams: Vec<u32> = (0..20).map(|_| client.request(&get_of("/sizes"), None, None)).collect();
    for stream in streams {
        let end = client.end_of(stream);
        assert_eq!((end.status, end.body.len(), end.reset), (Some(200), 0, Some(code::CANCEL)), "{end:?}");
    }
    front.memory_falls_below(MAX_GROWTH);
    expect_alive(&front);
}

#[test]
fn a_connection_that_takes_nothing_of_its_responses_is_reset() {
    let front = front_with("stallTimeoutMs", 3_000);
    let mut client = Http2::connect(front.address, &[(setting::INITIAL_WINDOW, LARGEST_WINDOW)]);
    client.send(frame(kind::WINDOW_UPDATE, 0, 0, &(LARGEST_WINDOW - 65_535).to_be_bytes()));
    for _ in 0..10 {
        client.request(&get_of("/sizes"), None, None);
    }
    front.metrics_become("with a connection", |figures| figures["connections"] == 1);
    front.metrics_become("without connections", |figures| figures["connections"] == 0);
    expect_alive(&front);
}

#[test]
fn a_flood_of_frames_ends_its_connection_and_takes_no_memory() {
    let front = front();
    let before = front.memory();
    for (name, flood) in [
        ("PING", frame(kind::PING, 0, 0, &[0; 8])),
        ("answers to no PING", frame(kind::PING, flag::ACK, 0, &[0; 8])),
        ("SETTINGS", frame(kind::SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100])),
        ("PRIORITY", frame(kind::PRIORITY, 0, 1, &[0, 0, 0, 0, 1])),
        ("WINDOW_UPDATE", frame(kind::WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes())),
        ("empty DATA", frame(kind::DATA, 0, 1, &[])),
        ("frames that nobody knows", frame(200, 0, 0, b"x")),
    ] {
        let mut client = front.connect_http2();
        client.send(head(0, 1, &post_of_sizes())).send(flood.repeat(5_000));
        assert_eq!(client.closed(), Some(code::CALM), "{name}");
        expect_alive(&front);
    }
    front.memory_falls_below(before + MAX_GROWTH);
}

#[test]
fn a_flood_of_small_data_is_taken_slowly_or_ends_its_connection() {
    let front = front();
    let before = front.memory();
    let mut client = front.connect_http2();
    client.send(head(0, 1, &post_of_sizes())).send(frame(kind::DATA, 0, 1, b"x").repeat(20_000));
    let end = client.send(frame(kind::DATA, flag::END_STREAM, 1, &[])).end_of(1);
    let is_taken = end.go_away.is_none() && (end.status, &end.body[..]) == (Some(200), &b"20000"[..]);
    assert!(is_taken || end.go_away == Some(code::CALM), "{end:?}");
    front.memory_falls_below(before + MAX_GROWTH);
    expect_alive(&front);
}

#[test]
fn requests_that_are_reset_at_once_end_their_connection() {
    let front = front();
    let mut client = front.connect_http2();
    for stream in (1..10_000).step_by(2) {
        client.send(head(flag::END_STREAM, stream, &get_of("/sizes")));
        client.send(frame(kind::RESET, 0, stream, &code::CANCEL.to_be_bytes()));
    }
    expect_end(&mut client, code::CALM);
    front.metrics_become("without requests", |figures| figures["requestsInFlight"] == 0);
    expect_alive(&front);
}

#[test]
fn requests_that_are_reset_count_as_long_as_a_handler_works_for_them() {
    let (front, gate) = front_with_gate(&[]);
    let mut client = front.connect_http2();
    let late = get_of("/sizes?late=");
    let streams: Vec<u32> = (0..STREAMS).map(|_| client.request(&late, None, None)).collect();
    front.metrics_become("all there", |figures| figures["requestsInFlight"] == STREAMS);
    for stream in streams {
        client.send(frame(kind::RESET, 0, stream, &code::CANCEL.to_be_bytes()));
    }
    let next = client.request(&late, None, None);
    assert_eq!(client.end_of(next).reset, Some(code::REFUSED));
    assert_eq!(front.metrics()["requestsInFlight"], STREAMS);
    gate.open();
    front.metrics_become("without requests", |figures| figures["requestsInFlight"] == 0);
    expect_served(&mut client);
}

#[test]
fn more_streams_than_there_may_be_are_refused() {
    let (front, gate) = front_with_gate(&[]);
    let mut client = front.connect_http2();
    let streams: Vec<u32> = (0..STREAMS + 5).map(|_| client.request(&get_of("/sizes?late="), None, None)).collect();
    for &stream in &streams[STREAMS..] {
        assert_eq!(client.end_of(stream).reset, Some(code::REFUSED));
    }
    gate.open();
    for &stream in &streams[..STREAMS] {
        assert_eq!(client.end_of(stream).status, Some(200));
    }
}

#[test]
fn a_head_that_has_no_end_ends_its_connection() {
    let front = front();
    let mut client = front.connect_http2();
    client.send(frame(kind::HEADERS, flag::END_STREAM, 1, &block(&get_of("/sizes"))));
    let more = frame(kind::CONTINUATION, 0, 1, &block(&[(b"x".into(), vec![b'y'; 10])]));
    client.send(more.repeat(10_000));
    expect_end(&mut client, code::CALM);
    expect_alive(&front);
}

#[test]
fn a_head_that_grows_when_it_is_read_ends_its_connection() {
    let front = front();
    let before = front.memory();
    // A large field that the table remembers, and then its number, a byte each.
    let length = 3_900_usize;
    let rest = length - 127;
    let remembered = [0x40, 1, b'a', 0x7f, (rest % 128 + 128) as u8, (rest / 128) as u8];
    let block = [&block(&get_of("/sizes"))[..], &remembered, &vec![b'x'; length], &[0xbe; 10_000]].concat();
    let mut client = front.connect_http2();
    client.send(frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 1, &block));
    expect_end(&mut client, code::CALM);
    front.memory_falls_below(before + MAX_GROWTH);
    expect_alive(&front);
}

#[test]
fn requests_that_violate_the_protocol_again_and_again_end_their_connection() {
    let front = front();
    let mut client = front.connect_http2();
    let mut bad = get_of("/sizes");
    bad.push((b"te".into(), b"gzip".into()));
    for _ in 0..200 {
        client.request(&bad, None, None);
    }
    expect_end(&mut client, code::CALM);
    expect_alive(&front);
}

#[test]
fn bytes_that_are_no_frame_or_too_long_a_one_end_their_connection() {
    let front = front();
    for bytes in [vec![b'x'; 1_000], frame(kind::DATA, 0, 1, &[0; 100_000])] {
        let mut client = front.connect_http2();
        expect_end(client.send(bytes), code::FRAME_SIZE);
    }
    expect_alive(&front);
}
