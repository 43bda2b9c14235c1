//! Streamed answers of real handler processes.

use crate::client::{Connection, Handler};
use rust_edge_gateway_sdk::wire::frame::{Kind, INITIAL_CREDIT};
use serde_json::Value;
use std::time::Duration;

const SYNC: &str = "test_handler_streams";
#[cfg(feature = "async")]
const HANDLERS: [&str; 2] = [SYNC, "test_handler_streams_async"];
#[cfg(not(feature = "async"))]
const HANDLERS: [&str; 1] = [SYNC];

impl Connection {
    /// The head of a stream, which is the next frame.
    fn receive_head(&mut self, number: u32) -> Value {
        let (kind, of, head, body) = self.receive_frame();
        assert_eq!((kind, of, body.len()), (Kind::Stream, number, 0));
        serde_json::from_slice(&head).unwrap()
    }

    /// A piece of a stream, which is the next frame.
    fn receive_piece(&mut self, number: u32) -> Vec<u8> {
        let (kind, of, _, body) = self.receive_frame();
        assert_eq!((kind, of), (Kind::Data, number));
        body
    }

    /// All that may be sent of a stream before there is any credit for more.
    fn receive_initial(&mut self, number: u32) {
        let mut received = 0;
        while received < INITIAL_CREDIT {
            received += self.receive_piece(number).len();
        }
    }

    /// The end of a stream, or its reset with why, which is the next frame.
    fn receive_end(&mut self, number: u32) -> Option<String> {
        let (kind, of, _, body) = self.receive_frame();
        assert_eq!(of, number);
        match kind {
            Kind::End => None,
            Kind::Reset => Some(String::from_utf8(body).unwrap()),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_first_piece_is_there_before_the_handler_goes_on() {
    for handler in HANDLERS.map(Handler::start) {
        let mut connection = handler.connect();
        connection.send(1, "/pieces?mark=on", b"");
        let head = connection.receive_head(1);
        assert_eq!((&head["status"], &head["headers"]), (&203.into(), &serde_json::json!(["x-kind", "pieces"])));
        assert_eq!(connection.receive_piece(1), b"first");
        connection.send(2, "/set?mark=on", b"");
        let mut frames: Vec<_> = (0..3).map(|_| connection.receive_frame()).collect();
        frames.sort_by_key(|(_, number, ..)| *number);
        assert_eq!((frames[0].0, &frames[0].3[..]), (Kind::Data, &b"second"[..]));
        assert_eq!((frames[1].0, frames[2].0), (Kind::End, Kind::Response));
        assert_eq!(handler.stop(), "");
    }
}

#[test]
fn no_more_is_sent_than_the_credit_and_other_requests_go_on() {
    for (handler, path) in HANDLERS.into_iter().map(|name| (name, "/much")).chain(blocking()) {
        let handler = Handler::start(handler);
        let mut connection = handler.connect();
        let (all, mut received) = (600 * 1024, Vec::new());
        connection.send(1, &format!("{path}?n=600&mark=x"), b"");
        connection.receive_head(1);
        while received.len() < INITIAL_CREDIT {
            received.extend(connection.receive_piece(1));
        }
        assert_eq!(received.len(), INITIAL_CREDIT);
        // Had it sent more, that would come before this.
        connection.send(2, "/quick", b"");
        assert_eq!(connection.receive().body, b"quick");
        while received.len() < all {
            let before = received.len();
            connection.give_credit(1, 100_000);
            while received.len() < (before + 100_000).min(all) {
                received.extend(connection.receive_piece(1));
            }
        }
        assert_eq!(connection.receive_end(1), None);
        assert!(received.chunks(1024).enumerate().all(|(n, piece)| piece == [n as u8; 1024]));
        assert_eq!(handler.stop(), "");
    }
}

/// A writer that blocks, among tasks.
fn blocking() -> Option<(&'static str, &'static str)> {
    HANDLERS.get(1).map(|name| (*name, "/blocking"))
}

#[test]
fn credit_is_read_when_all_threads_wait_for_it() {
    let handler = Handler::start_with(SYNC, &[("EDGE_MAX_THREADS", "2")]);
    let mut connection = handler.connect();
    for number in 1..=2 {
        connection.send(number, "/much?n=1000", b"");
    }
    // Is read by a thread that waits for credit, and answered when one is free.
    connection.send(3, "/quick", b"");
    let (mut received, mut ended) = ([0; 4], 0);
    while ended < 3 {
        let (kind, number, _, body) = connection.receive_frame();
        match kind {
            Kind::Data => {
                received[number as usize] += body.len();
                if received[number as usize] % INITIAL_CREDIT == 0 {
                    connection.give_credit(number, INITIAL_CREDIT as u32);
                }
            }
            Kind::End | Kind::Response => ended += 1,
            Kind::Stream => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(received, [0, 1_024_000, 1_024_000, 0]);
}

#[test]
fn a_thread_that_waits_for_credit_leaves_no_request_to_a_thread_that_waits_for_the_right_to_read() {
    for (threads, streams) in [("2", 1), ("3", 2)] {
        let handler = Handler::start_with(SYNC, &[("EDGE_MAX_THREADS", threads)]);
        let mut connection = handler.connect();
        for number in 1..=streams {
            connection.send(number, "/much?n=1000", b"");
            connection.receive_head(number);
            connection.receive_initial(number);
        }
        // Each time, one thread begins to read just when the other one has answered.
        for number in 3..10_000 {
            connection.send(number, "/quick", b"");
            assert_eq!(connection.receive().number, number);
        }
    }
}

#[test]
fn requests_are_read_when_a_thread_that_has_waited_for_credit_goes_on() {
    let handler = Handler::start(SYNC);
    let mut connection = handler.connect();
    for round in 0..20 {
        let (stream, first) = (round * 100 + 1, round * 100 + 2);
        connection.send(stream, &format!("/much-and-then-waits?n=257&mark={round}"), b"");
        connection.receive_head(stream);
        connection.receive_initial(stream);
        // Either the thread that reads or the one that waits for credit may be the reader after a request.
        for number in first..first + 10 {
            connection.send(number, "/quick", b"");
            assert_eq!(connection.receive().number, number);
        }
        // The monitor sleeps by then.
        std::thread::sleep(Duration::from_millis(60));
        connection.give_credit(stream, 1024);
        assert_eq!(connection.receive_piece(stream).len(), 1024);
        connection.send(stream + 50, &format!("/set?mark={round}"), b"");
        let mut ends = [connection.receive_frame(), connection.receive_frame()].map(|(kind, ..)| kind);
        ends.sort_by_key(|kind| *kind as u8);
        assert_eq!(ends, [Kind::Response, Kind::End], "{round}");
    }
}

#[test]
fn the_only_thread_learns_that_the_client_has_left() {
    let handler = Handler::start_with(SYNC, &[("EDGE_MAX_THREADS", "1")]);
    let mut connection = handler.connect();
    connection.send(1, "/endless", b"");
    connection.receive_head(1);
    connection.give_credit(1, u32::MAX);
    assert_eq!(connection.receive_piece(1), b"more");
    connection.send(2, "/quick", b"");
    connection.reset(1);
    while connection.receive_frame().0 != Kind::Reset {}
    assert_eq!(connection.receive().body, b"quick");
}

#[test]
fn a_handler_learns_that_the_client_has_left() {
    for handler in HANDLERS.map(Handler::start) {
        let mut connection = handler.connect();
        connection.send(1, "/much?n=100000&mark=left", b"");
        connection.receive_head(1);
        connection.receive_piece(1);
        connection.reset(1);
        // What was under way, and then the confirmation.
        loop {
            match connection.receive_frame() {
                (Kind::Data, 1, ..) => {}
                (kind, 1, _, reason) => {
                    assert_eq!((kind, reason.len()), (Kind::Reset, 0));
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        connection.send(2, "/wait?mark=left", b"");
        assert_eq!(connection.receive().status, 204);
        // A gateway that has gone wants none of its streams.
        connection.send(3, "/much?n=100000&mark=gone", b"");
        connection.receive_head(3);
        drop(connection);
        let mut other = handler.connect();
        other.send(1, "/wait?mark=gone", b"");
        assert_eq!(other.receive().status, 204);
        // It is no error of the handler.
        assert!(!handler.stop().contains("streamed response"));
    }
}

#[test]
fn a_stream_that_fails_or_panics_is_reset_with_its_request_in_the_log() {
    for handler in HANDLERS.map(Handler::start) {
        let mut connection = handler.connect();
        let reasons = ["/fails", "/panics"].map(|path| {
            connection.send(1, path, b"");
            connection.receive_head(1);
            assert_eq!(connection.receive_piece(1), b"some");
            connection.receive_end(1).expect("a reset")
        });
        assert_eq!(reasons[0], "its stream has failed: the source is gone");
        assert!(reasons[1].contains("panicked") && !reasons[1].contains("secret"));
        let log = handler.stop();
        assert!(log.contains("[request id-1] a streamed response has failed: the source is gone"), "{log}");
        assert!(log.contains("[request id-1] panicked at ") && log.contains("secret detail"), "{log}");
    }
}

#[test]
fn what_is_no_stream_is_a_whole_response() {
    for handler in HANDLERS.map(Handler::start) {
        let mut connection = handler.connect();
        for (path, status) in [("/quick", 200), ("/missing", 404), ("/bad-header", 500), ("/quick", 200)] {
            connection.send(1, path, b"");
            assert_eq!(connection.receive().status, status, "{path}");
        }
    }
}

#[test]
fn events_are_sent_one_by_one() {
    for handler in HANDLERS.map(Handler::start) {
        let mut connection = handler.connect();
        connection.send(1, "/events?mark=on", b"");
        let head = connection.receive_head(1);
        let headers: Vec<String> = serde_json::from_value(head["headers"].clone()).unwrap();
        let has = |name, value| headers.chunks(2).any(|pair| pair == [name, value]);
        assert!(has("content-type", "text/event-stream") && has("cache-control", "no-cache"));
        assert_eq!(connection.receive_piece(1), b"id: 1\nevent: tick\ndata: a\ndata: b\n\n");
        connection.send(2, "/set?mark=on", b"");
        let bodies: Vec<_> = (0..3).map(|_| connection.receive_frame().3).collect();
        assert!(bodies.contains(&b": end\n\n".to_vec()));
    }
}

#[cfg(feature = "async")]
#[test]
fn a_writer_that_was_left_writes_into_no_other_stream() {
    let handler = Handler::start(HANDLERS[1]);
    let mut connection = handler.connect();
    connection.send(1, "/leaves-its-writer", b"");
    connection.receive_head(1);
    assert_eq!(connection.receive_piece(1), b"first");
    assert_eq!(connection.receive_end(1), None);
    connection.send(1, "/pieces?mark=on", b"");
    connection.receive_head(1);
    assert_eq!(connection.receive_piece(1), b"first");
    connection.send(2, "/writes-with-it", b"");
    assert_eq!(connection.receive().body, b"true Err(BrokenPipe)");
    connection.send(2, "/set?mark=on", b"");
    let mut frames: Vec<_> = (0..3).map(|_| connection.receive_frame()).collect();
    frames.sort_by_key(|(_, number, ..)| *number);
    assert_eq!((frames[0].0, &frames[0].3[..]), (Kind::Data, &b"second"[..]));
    assert_eq!((frames[1].0, frames[2].0), (Kind::End, Kind::Response));
    assert_eq!(handler.stop(), "");
}
