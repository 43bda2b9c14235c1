//! WebSockets, as bytes of a client on the one side and as frames of a handler on the other.
use edge_wire::Kind;
use serde_json::{Value, json};

use crate::support::{Client, Front, Request, Stream, anything, get};

const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
/// A frame that is whole, and one that is to be continued.
const TEXT: u8 = 0x81;
const TEXT_BEGINS: u8 = 0x01;
const CONTINUES: u8 = 0x00;
const CONTINUED: u8 = 0x80;
const BINARY: u8 = 0x82;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;

fn front_with(policies: Value, script: impl Fn(&Request, &mut Stream) + Send + Sync + 'static) -> Front {
    let front = Front::with(json!({ "threads": 1, "streamDrainMs": 200 }));
    let handler = front.streams("websockets", script);
    front.serve(&handler, [get("/socket").policies(policies)]);
    front
}

/// Sends back each message, until the client closes.
fn echoes(_: &Request, stream: &mut Stream) {
    stream.head(101, &[]);
    while let Some(frame) = stream.receive() {
        stream.send(frame.kind, &frame.body);
        if frame.kind == Kind::Close {
            stream.end();
        }
    }
}

fn front() -> Front {
    front_with(json!({}), echoes)
}

fn upgrade(lines: &str) -> String {
    format!(
        "GET /socket HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n{lines}\r\n"
    )
}

/// Opens a socket; what was received of the head is read.
fn open(front: &Front) -> Client {
    let mut client = front.connect();
    client.send(upgrade(""));
    accepted(&mut client);
    client
}

/// Waits until the socket is open, and returns the head of the response.
fn accepted(client: &mut Client) -> String {
    client.receives("\r\n\r\n");
    let end = client.received.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 4;
    let head = String::from_utf8(client.received.drain(..end).collect()).unwrap();
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    head
}

/// A frame of a client. The mask has no bits, so that bytes are what they are.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    const MASKED: u8 = 0x80;
    let length = payload.len() as u16;
    let mut bytes = vec![first];
    match payload.len() {
        ..126 => bytes.push(MASKED | length as u8),
        _ => bytes.extend([&[MASKED | 126][..], &length.to_be_bytes()].concat()),
    }
    bytes.extend([0; 4]);
    bytes.extend_from_slice(payload);
    bytes
}

/// The code with which the front closes the socket; nothing comes before it.
fn close_code(client: &mut Client) -> u16 {
    let head = take(client, 4);
    assert_eq!(head[0], CLOSE, "{head:?}");
    client.send(frame(CLOSE, &head[2..])).closed();
    u16::from_be_bytes([head[2], head[3]])
}

/// Waits until so many bytes have come, and takes them.
fn take(client: &mut Client, length: usize) -> Vec<u8> {
    while client.received.len() < length {
        assert!(client.read(), "{}", client.excerpt());
    }
    client.received.drain(..length).collect()
}

#[test]
fn a_message_in_fragments_is_one_and_pings_are_answered_between_them() {
    let front = front();
    let mut client = open(&front);
    client.send(frame(TEXT_BEGINS, b"frag")).send(frame(PING, b"still there?"));
    assert_eq!(take(&mut client, 14), b"\x8a\x0cstill there?");
    client.send(frame(CONTINUES, b"men")).send(frame(CONTINUED, b"ts"));
    assert_eq!(take(&mut client, 11), b"\x81\x09fragments");
    client.send(frame(CLOSE, &1000_u16.to_be_bytes()));
    assert_eq!(close_code(&mut client), 1000);
}

#[test]
fn frames_are_taken_that_come_with_the_request_or_byte_by_byte() {
    let front = front();
    let mut client = front.connect();
    client.send([upgrade("").as_bytes(), &frame(TEXT, b"early")].concat());
    let head = accepted(&mut client);
    assert!(head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
    assert_eq!(take(&mut client, 7), b"\x81\x05early");
    for byte in frame(TEXT, b"late") {
        client.send([byte]).until_read();
    }
    assert_eq!(take(&mut client, 6), b"\x81\x04late");
}

#[test]
fn a_client_needs_a_key_and_version_13() {
    let front = front();
    for (from, to, status) in
        [("Version: 13", "Version: 8", 426), ("Sec-WebSocket-Version: 13\r\n", "", 426), (KEY, "short", 400)]
    {
        let response = front.exchange(upgrade("").replace(from, to));
        assert_eq!(response.status, status, "{from}");
        assert_eq!(response.header("sec-websocket-version").as_deref(), (status == 426).then_some("13"));
    }
    let plain = front.get("/socket", "");
    assert_eq!((plain.status, plain.header("upgrade").as_deref()), (426, Some("websocket")));
}

#[test]
fn a_handler_that_takes_no_websockets_gets_an_ordinary_request() {
    let front = Front::start();
    front.serve(&front.handler(anything), [get("/socket")]);
    assert_eq!(front.exchange(upgrade("")).status, 200);
}

#[test]
fn a_page_may_open_a_socket_of_its_own_host_and_where_the_policy_names_it() {
    let ask = |front: &Front, origin: &str| {
        let mut client = front.connect();
        client.send(upgrade(&format!("Origin: {origin}\r\n"))).receives("\r\n\r\n");
        client.received[9..12].to_vec()
    };
    let own = "http://localhost";
    for (policies, allowed, refused) in [
        (json!({}), &[own][..], &["https://other.example", "null", "http://localhost:1"][..]),
        (
            json!({ "websocket": { "allowed_origins": ["https://*.example"] } }),
            &["https://other.example", own],
            &["https://example.org"],
        ),
        (json!({ "websocket": { "allowed_origins": ["*"] } }), &["null", "https://other.example"], &[]),
    ] {
        let front = front_with(policies.clone(), echoes);
        for origin in allowed {
            assert_eq!(ask(&front, origin), b"101", "{policies} {origin}");
        }
        for origin in refused {
            assert_eq!(ask(&front, origin), b"403", "{policies} {origin}");
        }
    }
}

#[test]
fn a_client_that_the_policies_of_the_endpoint_refuse_gets_no_socket() {
    let front = front_with(json!({ "ip": { "deny": ["127.0.0.0/8"] } }), echoes);
    assert_eq!(front.exchange(upgrade("")).status, 403);
}

#[test]
fn a_socket_is_closed_with_1009_beyond_its_longest_message_and_with_1008_beyond_its_rate() {
    let front = front_with(json!({ "websocket": { "max_message_bytes": 1000, "messages_per_second": 20 } }), echoes);
    let mut long = open(&front);
    long.send(frame(BINARY, &[0; 1000]));
    take(&mut long, 4 + 1000);
    long.send(frame(BINARY, &[0; 1001]));
    assert_eq!(close_code(&mut long), 1009);
    for kind in [TEXT, PING] {
        let mut much = open(&front);
        much.send(frame(kind, b"x").repeat(50)).closed();
        // What was sent back before stands in front of it.
        let close = much.received.iter().position(|&byte| byte == CLOSE).unwrap();
        assert_eq!(much.received[close + 2..close + 4], 1008_u16.to_be_bytes());
    }
}

#[test]
fn a_socket_is_closed_with_1011_when_the_handler_sends_a_longer_message_than_it_may() {
    let front = front_with(json!({ "websocket": { "max_message_bytes": 1000 } }), |_, stream| {
        stream.head(101, &[]);
        stream.send(Kind::Binary, &[b'x'; 1001]);
        while stream.receive().is_some() {}
    });
    assert_eq!(close_code(&mut open(&front)), 1011);
    front.logged("a WebSocket was cut off");
}

#[test]
fn a_socket_is_closed_with_a_code_that_says_what_is_wrong_with_its_frames() {
    let front = front();
    let unmasked = b"\x81\x02hi".to_vec();
    for (what, bytes, code) in [
        ("unmasked", unmasked, 1002),
        ("a reserved bit", frame(0xc1, b"hi"), 1002),
        ("a reserved kind", frame(0x83, b"hi"), 1002),
        ("a long ping", frame(PING, &[0; 126]), 1002),
        ("a ping in pieces", frame(0x09, b"x"), 1002),
        ("a continuation of nothing", frame(CONTINUED, b"x"), 1002),
        ("a message within a message", [frame(TEXT_BEGINS, b"a"), frame(TEXT, b"b")].concat(), 1002),
        ("a close of one byte", frame(CLOSE, b"x"), 1002),
        ("no UTF-8", frame(TEXT, b"\xff"), 1007),
        ("a claim of 2^63 bytes", b"\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0".to_vec(), 1009),
    ] {
        let mut client = open(&front);
        client.send(bytes);
        assert_eq!(close_code(&mut client), code, "{what}");
    }
}

#[test]
fn a_client_that_is_silent_is_asked_whether_it_is_there_and_then_left() {
    let front = Front::with(json!({ "threads": 1 }));
    let handler = front.streams("websockets", echoes);
    front.serve(&handler, [get("/socket").limit("idleTimeoutMs", 500)]);
    let mut silent = open(&front);
    silent.closed();
    assert_eq!(silent.received, b"\x89\x07gateway");
    front.metrics_become("without requests", |figures| figures["requestsInFlight"] == 0);
}

#[test]
fn a_socket_is_closed_with_1012_when_its_handler_is_replaced() {
    let front = front();
    let mut client = open(&front);
    client.send(frame(TEXT, b"before"));
    take(&mut client, 8);
    front.serve(&front.handler(anything), [get("/socket")]);
    assert_eq!(close_code(&mut client), 1012);
}

#[test]
fn a_socket_is_in_the_log_with_its_bytes_when_it_has_ended() {
    let front = front();
    let mut client = open(&front);
    front.metrics_become("with a request", |figures| figures["requestsInFlight"] == 1);
    client.send(frame(TEXT, b"eleven bytes"));
    take(&mut client, 14);
    client.send(frame(CLOSE, b"")).closed();
    let entry = front.supervisor.report("an entry of the log", |report| report["type"] == "request");
    assert_eq!([&entry["status"], &entry["bytes"]], [101, 12]);
    front.metrics_become("without requests", |figures| figures["requestsInFlight"] == 0);
}
