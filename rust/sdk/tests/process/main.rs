//! Real handler processes, spoken to as the gateway does.

mod bodies;
mod client;
mod shared_memory;
mod sockets;
mod streams;

use client::{Connection, Handler};
use rust_edge_gateway_sdk::wire::buffer::Buffer;
use rust_edge_gateway_sdk::wire::frame::{header, Kind};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;

const HANDLER: &str = "test_handler";

#[test]
fn a_thousand_pipelined_requests_are_all_answered() {
    let handler = Handler::start(HANDLER);
    let mut connection = handler.connect();
    let all: Vec<u8> = (0..1000).flat_map(|n| Connection::frame(n, &format!("/quick?n={n}"), b"")).collect();
    connection.send_raw(&all);
    let mut numbers = BTreeSet::new();
    for _ in 0..1000 {
        let answer = connection.receive();
        assert_eq!(answer.body, format!("{{\"n\":{}}}", answer.number).into_bytes());
        assert_eq!(answer.headers, ["content-type", "application/json"]);
        numbers.insert(answer.number);
    }
    assert_eq!(numbers, (0..1000).collect());
    assert_eq!(handler.stop(), "");
}

#[test]
fn slow_requests_are_answered_too_when_many_come_at_once() {
    let handler = Handler::start(HANDLER);
    let mut connection = handler.connect();
    let all: Vec<u8> = (0..200).flat_map(|n| Connection::frame(n, &format!("/spin?n={n}"), b"")).collect();
    connection.send_raw(&all);
    let numbers: BTreeSet<u32> = (0..200).map(|_| connection.receive().number).collect();
    assert_eq!(numbers.len(), 200);
}

#[test]
fn a_waiting_request_holds_up_no_other() {
    for path in ["/wait", "/wait-blocking"] {
        let handler = Handler::start(HANDLER);
        let mut connection = handler.connect();
        // All is sent in one write, so that one read of the handler sees it.
        let mut all = Connection::frame(1, "/quick", b"");
        all.extend(Connection::frame(2, &format!("{path}?latch=a&n=2"), b""));
        (3..103).for_each(|n| all.extend(Connection::frame(n, "/quick", b"")));
        connection.send_raw(&all);
        let others: BTreeSet<u32> = (0..101).map(|_| connection.receive().number).collect();
        assert!(!others.contains(&2), "answered before its latch was open");
        connection.send(200, "/wait?latch=a&n=2", b"");
        let last: BTreeSet<u32> = (0..2).map(|_| connection.receive().number).collect();
        assert_eq!(last, BTreeSet::from([2, 200]));
    }
}

#[test]
fn a_request_that_waits_for_a_service_holds_up_no_other() {
    let socket = std::env::temp_dir().join(format!("edge-sdk-test-services-{}", std::process::id()));
    let listener = UnixListener::bind(&socket).unwrap();
    let environment = [("EDGE_SERVICES_SOCKET", socket.to_str().unwrap()), ("EDGE_SERVICES_TOKEN", "token")];
    let handler = Handler::start_with(HANDLER, &environment);
    let mut connection = handler.connect();
    // All is sent in one write, so that one read of the handler sees it.
    let mut all = Connection::frame(1, "/quick", b"");
    all.extend(Connection::frame(2, "/service", b""));
    (3..103).for_each(|n| all.extend(Connection::frame(n, "/quick", b"")));
    connection.send_raw(&all);
    let (mut services, _) = listener.accept().unwrap();
    std::fs::remove_file(&socket).unwrap();
    let mut received = Buffer::new();
    let mut call = None;
    while call.is_none() {
        let n = services.read(received.room()).unwrap();
        received.filled(n);
        while let Some(frame) = received.next_frame().unwrap() {
            call = (frame.head != br#"{"token":"token"}"#).then_some(frame.number);
        }
    }
    let others: BTreeSet<u32> = (0..101).map(|_| connection.receive().number).collect();
    assert!(!others.contains(&2), "answered before the service was");
    let head = br#"{"ok":true,"result":{"found":true}}"#;
    let mut answer = header(Kind::Response, call.unwrap(), head.len(), 5).to_vec();
    answer.extend_from_slice(head);
    answer.extend_from_slice(b"value");
    services.write_all(&answer).unwrap();
    let last = connection.receive();
    assert_eq!((last.number, last.body), (2, b"value".to_vec()));
}

#[test]
fn sixty_four_waiting_requests_overlap() {
    let handler = Handler::start(HANDLER);
    let mut connection = handler.connect();
    // None can end before all are inside the handler at once.
    let all: Vec<u8> = (0..64).flat_map(|n| Connection::frame(n, "/wait?latch=a&n=64", b"")).collect();
    connection.send_raw(&all);
    let numbers: BTreeSet<u32> = (0..64).map(|_| connection.receive().number).collect();
    assert_eq!(numbers.len(), 64);
}

#[test]
fn waiting_requests_of_several_connections_overlap() {
    let handler = Handler::start(HANDLER);
    let mut connections: Vec<Connection> = (0..4).map(|_| handler.connect()).collect();
    for connection in &mut connections {
        (0..8).for_each(|n| connection.send(n, "/wait?latch=a&n=32", b""));
    }
    for connection in &mut connections {
        (0..8).for_each(|_| assert_eq!(connection.receive().status, 200));
    }
}

#[test]
fn one_thread_serves_its_connection_in_order() {
    let handler = Handler::start_with(HANDLER, &[("EDGE_MAX_THREADS", "1")]);
    let mut connection = handler.connect();
    let all: Vec<u8> = (0..50).flat_map(|n| Connection::frame(n, "/spin", b"")).collect();
    connection.send_raw(&all);
    let numbers: Vec<u32> = (0..50).map(|_| connection.receive().number).collect();
    assert_eq!(numbers, (0..50).collect::<Vec<u32>>());
    // Each further connection still gets a thread of its own.
    let mut other = handler.connect();
    connection.send(1, "/wait?latch=a&n=2", b"");
    other.send(1, "/wait?latch=a&n=2", b"");
    assert_eq!(connection.receive().status, 200);
    assert_eq!(other.receive().status, 200);
}

#[test]
fn a_panic_is_a_500_for_its_request_alone() {
    let handler = Handler::start(HANDLER);
    let mut connection = handler.connect();
    let mut all = Connection::frame(1, "/quick", b"");
    all.extend(Connection::frame(2, "/panic", b""));
    all.extend(Connection::frame(3, "/quick", b""));
    connection.send_raw(&all);
    for _ in 0..3 {
        let answer = connection.receive();
        assert_eq!(answer.status, if answer.number == 2 { 500 } else { 200 });
        let text = String::from_utf8(answer.body).unwrap();
        assert!(!text.contains("secret"), "{text}");
        assert!(answer.number != 2 || text.starts_with("{\"error\":\""), "{text}");
    }
    let log = handler.stop();
    assert!(log.contains("[request id-2] panicked at "), "{log}");
    assert!(log.contains("handler.rs:") && log.contains("secret detail"), "{log}");
    assert_eq!(log.lines().count(), 1, "{log}");
}

#[test]
fn what_a_service_says_is_for_the_log_with_its_request() {
    let handler = Handler::start(HANDLER);
    let mut connection = handler.connect();
    connection.send(1, "/refused", b"");
    let answer = connection.receive();
    assert_eq!((answer.status, answer.body), (500, b"{\"error\":\"Database error\"}".to_vec()));
    connection.send(2, "/service", b"");
    let answer = connection.receive();
    assert_eq!((answer.status, answer.body), (500, b"{\"error\":\"Service not bound\"}".to_vec()));
    let log = handler.stop();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 3, "{log}");
    assert_eq!(lines[0], "[request id-1] Database error: no table users");
    let call = "[request id-2] WARN service: a call of a service has failed";
    assert!(lines[1].starts_with(call) && lines[1].contains("pool=\"cache\""), "{log}");
    assert!(lines[2].ends_with("the pool \"cache\": this handler was started without access to services"), "{log}");
}

#[test]
fn ten_megabytes_go_there_and_back_unchanged() {
    let handler = Handler::start(HANDLER);
    let mut connection = handler.connect();
    let body: Vec<u8> = (0..10_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    connection.send(1, "/echo", &body);
    connection.send(2, "/quick", b"");
    for _ in 0..2 {
        let answer = connection.receive();
        if answer.number == 1 {
            assert!(answer.body == body);
            assert!(!answer.headers.iter().any(|header| header.contains("binary")), "{:?}", answer.headers);
        }
    }
}

#[test]
fn what_cannot_be_sent_is_a_500_that_says_why() {
    let handler = Handler::start(HANDLER);
    let mut connection = handler.connect();
    for (path, reason) in [
        ("/large?n=67108865", "its body has 67108865 bytes, the limit is 67108864"),
        ("/bad-header", "X-Note"),
        ("/bad-name", "X Note"),
        ("/bad-status", "status 99"),
    ] {
        connection.send(1, path, b"");
        let answer = connection.receive();
        let text = String::from_utf8(answer.body).unwrap();
        assert_eq!(answer.status, 500);
        assert!(text.starts_with("{\"error\":") && text.contains(reason), "{path}: {text}");
    }
    connection.send(2, "/large?n=67108864", b"");
    assert_eq!(connection.receive().body.len(), 67_108_864);
    assert_eq!(handler.stop().lines().count(), 4);
}

#[test]
fn a_malformed_frame_closes_only_its_connection() {
    let handler = Handler::start(HANDLER);
    let mut good = handler.connect();
    for bytes in [
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        Connection::raw_frame(1, 1, b"not JSON", b""),
        Connection::raw_frame(2, 1, b"{\"status\":200,\"headers\":[]}", b""),
    ] {
        let mut bad = handler.connect();
        bad.send(7, "/quick", b"");
        assert_eq!(bad.receive().number, 7);
        bad.send_raw(&bytes);
        assert!(bad.is_closed());
    }
    good.send(1, "/quick", b"");
    assert_eq!(good.receive().status, 200);
    let log = handler.stop();
    assert_eq!(log.matches("a connection is closed: ").count(), 3, "{log}");
    assert!(log.contains("protocol version 71"), "{log}");
}

#[test]
fn a_connection_may_come_and_go() {
    let handler = Handler::start(HANDLER);
    for _ in 0..50 {
        let mut connection = handler.connect();
        connection.send(1, "/quick", b"");
        assert_eq!(connection.receive().status, 200);
    }
    // Gone with an unfinished request.
    handler.connect().send(1, "/spin", b"");
    assert_eq!(handler.stop(), "");
}

#[test]
fn the_end_of_the_control_stream_ends_the_process() {
    let mut handler = Handler::start(HANDLER);
    let mut connection = handler.connect();
    // Even while a request is active.
    connection.send(1, "/wait?latch=a&n=2", b"");
    assert_eq!(handler.close_control(), Some(0));
}

#[test]
fn a_loop_written_by_hand_is_served() {
    let handler = Handler::start("test_handler_by_hand");
    let mut connection = handler.connect();
    let paths = ["/a", "/forget", "/b"];
    let all: Vec<u8> = (0..60).flat_map(|n| Connection::frame(n, paths[n as usize % 3], b"")).collect();
    connection.send_raw(&all);
    for _ in 0..60 {
        let answer = connection.receive();
        match answer.number % 3 {
            0 => assert_eq!(answer.body, b"{\"path\":\"/a\"}"),
            1 => assert_eq!(answer.status, 500),
            _ => assert_eq!(answer.body, b"{\"path\":\"/b\"}"),
        }
    }
    // What has no answer is an error of its request.
    let log = handler.stop();
    assert_eq!(log.lines().count(), 20, "{log}");
    let expected = "[request id-1] the handler has answered with 500: The handler did not answer.";
    assert!(log.lines().any(|line| line == expected), "{log}");
}

#[test]
fn started_by_hand_it_says_what_it_needs() {
    let (code, log) = Handler::run_without_environment(HANDLER);
    assert_eq!(code, Some(2));
    assert!(log.contains("EDGE_SOCKET") && log.contains("gateway"), "{log}");
}

#[cfg(feature = "async")]
mod asynchronous {
    use super::*;

    const HANDLER: &str = "test_handler_async";

    #[test]
    fn a_thousand_waiting_requests_overlap() {
        let handler = Handler::start(HANDLER);
        let mut connection = handler.connect();
        let all: Vec<u8> = (0..1000).flat_map(|n| Connection::frame(n, "/wait?n=1000", b"")).collect();
        connection.send_raw(&all);
        let numbers: BTreeSet<u32> = (0..1000).map(|_| connection.receive().number).collect();
        assert_eq!(numbers.len(), 1000);
        assert_eq!(handler.stop(), "");
    }

    #[test]
    fn errors_and_panics_are_answers() {
        let handler = Handler::start(HANDLER);
        let mut connection = handler.connect();
        for (path, status) in [("/quick", 200), ("/panic", 500), ("/conflict", 409), ("/none", 404), ("/quick", 200)] {
            connection.send(1, path, b"");
            let answer = connection.receive();
            assert_eq!(answer.status, status, "{path}");
            assert!(!String::from_utf8(answer.body).unwrap().contains("secret"));
        }
        let log = handler.stop();
        assert!(log.contains("[request id-1] panicked at ") && log.contains("secret detail"), "{log}");
    }

    #[test]
    fn a_future_that_must_stay_on_its_thread_is_served() {
        let handler = Handler::start("test_handler_async_local");
        let mut connection = handler.connect();
        let all: Vec<u8> = (0..500).flat_map(|n| Connection::frame(n, "/", b"")).collect();
        connection.send_raw(&all);
        let numbers: BTreeSet<u32> = (0..500).map(|_| connection.receive().number).collect();
        assert_eq!(numbers.len(), 500);
        connection.send(1, "/panic", b"");
        assert_eq!(connection.receive().status, 500);
        connection.send(2, "/", b"");
        assert_eq!(connection.receive().body, b"{\"visits\":1}");
    }

    #[test]
    fn large_bodies_go_both_ways_and_a_malformed_frame_closes_only_its_connection() {
        let handler = Handler::start(HANDLER);
        let mut connection = handler.connect();
        let body = vec![0xfe; 10_000_000];
        connection.send(1, "/echo", &body);
        assert!(connection.receive().body == body);
        connection.send(2, "/large?n=67108865", b"");
        assert_eq!(connection.receive().status, 500);
        let mut bad = handler.connect();
        bad.send_raw(b"\x03");
        assert!(bad.is_closed());
        connection.send(3, "/quick", b"");
        assert_eq!(connection.receive().status, 200);
    }

    #[test]
    fn the_end_of_the_control_stream_ends_the_process() {
        let mut handler = Handler::start(HANDLER);
        let mut connection = handler.connect();
        connection.send(1, "/wait?n=2", b"");
        assert_eq!(handler.close_control(), Some(0));
    }
}
