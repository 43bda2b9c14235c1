//! Bodies that follow their requests, in real handler processes.

use crate::client::{Connection, Handler};
use rust_edge_gateway_sdk::wire::frame::{credited, header, Kind, INITIAL_CREDIT};
use serde_json::{json, Value};

const SYNC: &str = "test_handler_bodies";
#[cfg(feature = "async")]
const HANDLERS: [&str; 2] = [SYNC, "test_handler_bodies_async"];
#[cfg(not(feature = "async"))]
const HANDLERS: [&str; 1] = [SYNC];

const PIECE: usize = 32 * 1024;

impl Connection {
    fn open(&mut self, number: u32, target: &str) {
        let head = json!({"method": "POST", "target": target, "headers": [], "request_id": format!("id-{number}")});
        let head = head.to_string();
        self.send_raw(&[&header(Kind::Open, number, head.len(), 0)[..], head.as_bytes()].concat());
    }

    fn send_piece(&mut self, number: u32, piece: &[u8]) {
        self.send_raw(&[&header(Kind::Data, number, 0, piece.len())[..], piece].concat());
    }

    fn end(&mut self, number: u32) {
        self.send_raw(&header(Kind::End, number, 0, 0));
    }

    fn abort(&mut self, number: u32, reason: &str) {
        self.send_raw(&[&header(Kind::Reset, number, 0, reason.len())[..], reason.as_bytes()].concat());
    }

    /// Sends pieces as credit allows. Until the end, nothing but credit may come.
    fn send_much(&mut self, number: u32, pieces: usize) {
        let mut credit = INITIAL_CREDIT;
        for n in 0..pieces {
            while credit < PIECE {
                let (kind, of, _, body) = self.receive_frame();
                assert_eq!((kind, of), (Kind::Credit, number));
                credit += credited(&body).unwrap() as usize;
            }
            self.send_piece(number, &[n as u8; PIECE]);
            credit -= PIECE;
        }
        self.end(number);
    }

    /// The number and the body of the next answer, behind what is left of credit.
    fn receive_answer(&mut self) -> (u32, Vec<u8>) {
        loop {
            match self.receive_frame() {
                (Kind::Credit, ..) => {}
                (Kind::Response, number, _, body) => return (number, body),
                other => panic!("{other:?}"),
            }
        }
    }

    fn receive_json(&mut self) -> Value {
        serde_json::from_slice(&self.receive_answer().1).unwrap()
    }
}

fn start(name: &str) -> Handler {
    Handler::start_that_takes(name, "ready streams\n", &[("EDGE_PROTOCOL", "2")])
}

#[test]
fn a_body_of_any_length_arrives_as_it_is_read() {
    for handler in HANDLERS.map(start) {
        let mut connection = handler.connect();
        for pieces in [0, 1, 3, 100] {
            connection.open(1, "/sum");
            connection.send_much(1, pieces);
            let sum: usize = (0..pieces).map(|n| n * PIECE).sum();
            assert_eq!(connection.receive_json(), json!({"sum": sum, "count": pieces * PIECE}));
        }
        connection.send(1, "/sum", b"\x01\x02");
        assert_eq!(connection.receive_json(), json!({"sum": 3, "count": 2}));
        assert_eq!(handler.stop(), "");
    }
}

#[test]
fn what_is_not_read_gets_no_credit_and_other_requests_go_on() {
    for handler in HANDLERS.map(start) {
        let mut connection = handler.connect();
        connection.open(1, "/sum");
        connection.open(2, "/sum");
        connection.send_piece(2, b"\x01");
        connection.send(3, "/quick", b"");
        assert_eq!(connection.receive().body, b"quick");
        connection.end(2);
        assert_eq!(connection.receive_json(), json!({"sum": 1, "count": 1}));
        connection.end(1);
        assert_eq!(connection.receive_json(), json!({"sum": 0, "count": 0}));
    }
}

#[test]
fn both_directions_go_on_at_once() {
    for handler in HANDLERS.map(start) {
        let mut connection = handler.connect();
        connection.open(1, "/echo");
        assert_eq!(connection.receive_frame().0, Kind::Stream);
        let mut uncredited = 0;
        for n in 0..64_u8 {
            connection.send_piece(1, &[n; PIECE]);
            let mut echoed = Vec::new();
            while echoed.len() < PIECE {
                match connection.receive_frame() {
                    (Kind::Data, 1, _, body) => echoed.extend(body),
                    (Kind::Credit, 1, ..) => {}
                    other => panic!("{other:?}"),
                }
            }
            assert!(echoed == [n; PIECE]);
            uncredited += PIECE;
            if uncredited >= INITIAL_CREDIT / 2 {
                connection.give_credit(1, uncredited as u32);
                uncredited = 0;
            }
        }
        connection.end(1);
        while connection.receive_frame().0 != Kind::End {}
        assert_eq!(handler.stop(), "");
    }
}

#[test]
fn a_reader_learns_that_no_more_comes() {
    for handler in HANDLERS.map(start) {
        let mut connection = handler.connect();
        connection.open(1, "/told");
        connection.send_piece(1, b"some");
        connection.abort(1, "the client has left");
        assert!(connection.receive_json()["error"].as_str().unwrap().ends_with("the client has left"));
        connection.send(2, "/what-was-told", b"");
        let told = connection.receive_json();
        assert!(told[0].as_str().unwrap().ends_with("the client has left"), "{told}");
        // A gateway that has gone sends no more of any.
        connection.open(3, "/told");
        connection.send_piece(3, b"some");
        drop(connection);
        let mut other = handler.connect();
        other.send(1, "/what-was-told", b"");
        assert!(other.receive_json()[0].as_str().unwrap().contains("closed its connection"));
    }
}

#[test]
fn what_comes_after_the_answer_is_dropped_and_the_number_can_be_used_again() {
    for handler in HANDLERS.map(start) {
        let mut connection = handler.connect();
        connection.open(1, "/first");
        connection.send_piece(1, b"\x07rest");
        assert_eq!(connection.receive().body, b"7");
        for _ in 0..INITIAL_CREDIT / PIECE - 1 {
            connection.send_piece(1, &[1; PIECE]);
        }
        connection.abort(1, "");
        connection.open(1, "/quick");
        assert_eq!(connection.receive().body, b"quick");
        connection.abort(1, "");
        connection.open(1, "/sum");
        connection.send_piece(1, b"\x02");
        connection.end(1);
        assert_eq!(connection.receive_json(), json!({"sum": 2, "count": 1}));
        assert_eq!(handler.stop(), "");
    }
}

#[test]
fn what_comes_without_a_reader_is_credited_while_the_handler_works() {
    for handler in HANDLERS.map(start) {
        let mut connection = handler.connect();
        connection.open(1, "/what-was-told");
        connection.send_much(1, 100);
        connection.open(2, "/told");
        connection.end(2);
        let mut answers: Vec<_> = (0..2).map(|_| connection.receive_answer()).collect();
        answers.sort_unstable();
        assert_eq!(answers, [(1, b"[\"0\"]".to_vec()), (2, Vec::new())]);
        assert_eq!(handler.stop(), "");
    }
}

#[test]
fn the_only_thread_reads_the_bodies_that_it_waits_for() {
    let variables = [("EDGE_PROTOCOL", "2"), ("EDGE_MAX_THREADS", "1")];
    let handler = Handler::start_that_takes(SYNC, "ready streams\n", &variables);
    let mut connection = handler.connect();
    connection.open(1, "/sum");
    // Is read by the thread that waits for the body.
    connection.send(2, "/quick", b"");
    connection.send_much(1, 100);
    let sum: usize = (0..100).map(|n| n * PIECE).sum();
    assert_eq!(connection.receive_json(), json!({"sum": sum, "count": 100 * PIECE}));
    assert_eq!(connection.receive().body, b"quick");
}

#[test]
fn many_bodies_arrive_side_by_side_on_few_threads() {
    let variables = [("EDGE_PROTOCOL", "2"), ("EDGE_MAX_THREADS", "3")];
    let handler = Handler::start_that_takes(SYNC, "ready streams\n", &variables);
    let mut connection = handler.connect();
    for number in 1..=3 {
        connection.open(number, "/sum");
    }
    for n in 0..7_u8 {
        for number in 1..=3 {
            connection.send_piece(number, &[n; 1000]);
        }
    }
    for number in [2, 1, 3] {
        connection.end(number);
        assert_eq!(connection.receive_json(), json!({"sum": 21_000, "count": 7_000}));
    }
}

#[test]
fn a_handler_of_whole_requests_gets_no_others() {
    let handler = Handler::start_that_takes("test_handler", "ready\n", &[("EDGE_PROTOCOL", "2")]);
    let mut connection = handler.connect();
    connection.open(1, "/");
    assert!(connection.is_closed());
    // An earlier gateway knows one word only.
    Handler::start(SYNC);
}
