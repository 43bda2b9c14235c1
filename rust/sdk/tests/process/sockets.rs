//! WebSockets of real handler processes.

use crate::client::{Connection, Handler};
use rust_edge_gateway_sdk::wire::frame::{header, Kind, INITIAL_CREDIT, MAX_DATA_BYTES};
use serde_json::{json, Value};

const SYNC: &str = "test_handler_sockets";
#[cfg(feature = "async")]
const HANDLERS: [&str; 2] = [SYNC, "test_handler_sockets_async"];
#[cfg(not(feature = "async"))]
const HANDLERS: [&str; 1] = [SYNC];

fn start(program: &str) -> Handler {
    Handler::start_that_takes(program, "ready websockets\n", &[("EDGE_PROTOCOL", "2")])
}

impl Connection {
    /// Asks for a WebSocket.
    fn ask(&mut self, number: u32, target: &str) {
        let head = json!({
            "method": "GET",
            "target": target,
            "headers": ["Sec-WebSocket-Protocol", "v1, v2"],
            "request_id": format!("id-{number}"),
            "websocket": true,
        });
        let head = head.to_string();
        self.send_raw(&[&header(Kind::Open, number, head.len(), 0), head.as_bytes()].concat());
    }

    fn send_frame(&mut self, number: u32, kind: Kind, payload: &[u8]) {
        self.send_raw(&[&header(kind, number, 0, payload.len())[..], payload].concat());
    }

    /// The head that accepts a WebSocket, which is the next frame.
    fn accepted(&mut self, number: u32) -> Value {
        let (kind, of, head, _) = self.receive_frame();
        let head: Value = serde_json::from_slice(&head).unwrap();
        assert_eq!((kind, of, &head["status"]), (Kind::Stream, number, &101.into()));
        head
    }

    fn expect_frame(&mut self, number: u32, kind: Kind, payload: &[u8]) {
        let (received, of, _, body) = self.receive_frame();
        assert_eq!((received, of, &body[..]), (kind, number, payload));
    }
}

fn close(code: u16, reason: &str) -> Vec<u8> {
    [&code.to_be_bytes()[..], reason.as_bytes()].concat()
}

#[test]
fn messages_go_both_ways_in_pieces_where_they_are_long() {
    for handler in HANDLERS.map(start) {
        let mut connection = handler.connect();
        connection.ask(1, "/echo");
        connection.accepted(1);
        connection.send_frame(1, Kind::Data, b"he");
        connection.send_frame(1, Kind::Pong, b"between");
        connection.send_frame(1, Kind::Text, "llö".as_bytes());
        connection.expect_frame(1, Kind::Pong, b"between");
        connection.expect_frame(1, Kind::Text, "hellö".as_bytes());
        connection.send_frame(1, Kind::Binary, b"");
        connection.expect_frame(1, Kind::Binary, b"");
        let piece = vec![7; MAX_DATA_BYTES];
        connection.send_frame(1, Kind::Data, &piece);
        connection.send_frame(1, Kind::Binary, b"rest");
        connection.expect_frame(1, Kind::Data, &piece);
        connection.expect_frame(1, Kind::Binary, b"rest");
        connection.send_frame(1, Kind::Close, &close(1001, "bye"));
        connection.reset(1);
        let (kind, ..) = connection.receive_frame();
        assert!(matches!(kind, Kind::Close | Kind::Reset));
        if kind == Kind::Close {
            connection.expect_frame(1, Kind::End, b"");
        }
        assert_eq!(handler.stop(), "");
    }
}

#[test]
fn a_websocket_is_accepted_refused_and_closed_as_the_function_says() {
    for handler in HANDLERS.map(start) {
        let mut connection = handler.connect();
        for (path, status) in [("/refuses", 403), ("/missing", 404), ("/bad-header", 500)] {
            connection.ask(1, path);
            assert_eq!(connection.receive().status, status, "{path}");
        }
        for (path, code, reason) in [("/returns", 1000, ""), ("/closes", 4000, "enough")] {
            connection.ask(2, path);
            connection.accepted(2);
            connection.expect_frame(2, Kind::Close, &close(code, reason));
            connection.expect_frame(2, Kind::End, b"");
        }
        connection.ask(3, "/chooses");
        assert_eq!(connection.accepted(3)["headers"], json!(["sec-websocket-protocol", "v2"]));
        handler.stop();
    }
}

#[test]
fn a_websocket_whose_function_fails_or_panics_is_reset_with_its_request_in_the_log() {
    for handler in HANDLERS.map(start) {
        let mut connection = handler.connect();
        for path in ["/fails", "/panics"] {
            connection.ask(1, path);
            connection.accepted(1);
            connection.send_frame(1, Kind::Text, b"x");
            connection.expect_frame(1, Kind::Reset, b"its handler has failed");
        }
        let log = handler.stop();
        assert!(log.contains("[request id-1] a WebSocket has failed: Internal error: on purpose"), "{log}");
        assert!(log.contains("[request id-1] panicked at ") && log.contains("secret detail"), "{log}");
    }
}

#[test]
fn no_more_is_sent_than_the_credit_and_other_sockets_go_on() {
    for handler in HANDLERS.map(start) {
        let mut connection = handler.connect();
        connection.ask(1, "/much");
        connection.accepted(1);
        let cost = 16 + 10_000;
        for n in 0..INITIAL_CREDIT / cost {
            connection.expect_frame(1, Kind::Binary, &[n as u8; 10_000]);
        }
        // Had it sent more, that would come before this.
        connection.ask(2, "/closes");
        connection.accepted(2);
        connection.expect_frame(2, Kind::Close, &close(4000, "enough"));
        connection.expect_frame(2, Kind::End, b"");
        connection.give_credit(1, cost as u32);
        connection.expect_frame(1, Kind::Binary, &[(INITIAL_CREDIT / cost) as u8; 10_000]);
        connection.reset(1);
        connection.expect_frame(1, Kind::Reset, b"");
        // It is no error of the handler.
        assert_eq!(handler.stop(), "");
    }
}

#[test]
fn credit_is_given_for_what_was_received() {
    for handler in HANDLERS.map(start) {
        let mut connection = handler.connect();
        connection.ask(1, "/echo");
        connection.accepted(1);
        // A message of more than the credit is taken while it arrives.
        let mut credited = 0;
        for _ in 0..INITIAL_CREDIT / MAX_DATA_BYTES {
            connection.send_frame(1, Kind::Data, &[7; MAX_DATA_BYTES]);
        }
        while credited < INITIAL_CREDIT {
            let (kind, _, _, body) = connection.receive_frame();
            assert_eq!(kind, Kind::Credit);
            credited += u32::from_be_bytes(body.try_into().unwrap()) as usize;
        }
        connection.send_frame(1, Kind::Text, b"");
        assert_eq!(connection.receive_frame().0, Kind::Data);
        connection.reset(1);
        handler.stop();
    }
}

#[cfg(feature = "async")]
#[test]
fn a_task_that_the_function_has_left_learns_of_the_end() {
    let handler = start(HANDLERS[1]);
    let mut connection = handler.connect();
    connection.ask(1, "/leaves-a-task");
    connection.accepted(1);
    connection.send_frame(1, Kind::Text, b"return");
    connection.expect_frame(1, Kind::Close, &close(1000, ""));
    connection.expect_frame(1, Kind::End, b"");
    connection.ask(2, "/awaits-that-task");
    connection.accepted(2);
    assert_eq!(handler.stop(), "");
}
