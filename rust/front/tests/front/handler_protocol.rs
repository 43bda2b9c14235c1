//! Handlers that speak the frames wrongly, or not at all: what their clients get, and what the supervisor is told. That
//! such a handler is started anew is tested in `test/torture/hostile`.
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use edge_wire::{HEADER_BYTES, Kind, header};
use serde_json::{Value, json};

use crate::support::{Frames, Front, anything, get, post};

const OK: &str = r#"{"status":200,"headers":[]}"#;

/// A front whose `/raw` is served by a handler that does this with the number and the body of each request.
fn front_with(script: impl Fn(&mut Frames, u32, &[u8]) + Send + Sync + 'static) -> Front {
    let front = Front::start();
    let handler = front.scripted("whole", move |frames| {
        while let Some(request) = frames.receive_of(Kind::Request) {
            script(frames, request.number, &request.body);
        }
    });
    front.serve(&handler, [post("/raw")]);
    front
}

fn response(number: u32, head: &str) -> Vec<u8> {
    [&header(Kind::Response, number, head.len(), 3)[..], head.as_bytes(), b"raw"].concat()
}

/// A header with lengths that are over the limits.
fn header_of_lengths(number: u32, head: u32, body: u32) -> [u8; HEADER_BYTES] {
    let mut bytes = header(Kind::Response, number, 0, 0);
    bytes[8..12].copy_from_slice(&head.to_be_bytes());
    bytes[12..].copy_from_slice(&body.to_be_bytes());
    bytes
}

fn connection_lost(front: &Front) -> String {
    let report = front.supervisor.report("a lost connection", |report| report["type"] == "connectionLost");
    report["reason"].as_str().unwrap().to_owned()
}

/// The handler is asked once, and its client gets this status; returns why the front has left the handler.
fn expect_left(status: u16, script: impl Fn(&mut Frames, u32, &[u8]) + Send + Sync + 'static) -> String {
    let front = front_with(script);
    let response = front.post("/raw", "", "");
    assert_eq!(response.status, status, "{}", response.text());
    let reason = connection_lost(&front);
    if status == 502 {
        response.error();
        assert_eq!(front.logged("handler aborted a request")["reason"], reason);
    }
    // Another handler of the same endpoint is not concerned.
    front.serve(&front.handler(anything), [post("/raw")]);
    assert_eq!(front.post("/raw", "", "").status, 200);
    reason
}

#[test]
fn a_client_gets_502_for_an_answer_that_http_does_not_allow_and_the_handler_serves_on() {
    let front = front_with(|frames, number, body| frames.send(Kind::Response, number, body, b"raw"));
    let of_statuses = [0.into(), 99.into(), 100.into(), 101.into(), 199.into(), 1000.into(), (-200).into()];
    let statuses = of_statuses.into_iter().chain([json!(200.5), json!("200"), Value::Null]);
    let with_status = statuses.map(|status: Value| json!({ "status": status, "headers": [] }));
    let headers = [
        json!(["X", "a\r\nSet-Cookie: b=1"]),
        json!(["X", "a\nb"]),
        json!(["X", "a\0b"]),
        json!(["X\r\nY", "a"]),
        json!(["X Y", "a"]),
        json!(["X:", "a"]),
        json!(["", "a"]),
        json!(["\u{e4}", "a"]),
        json!(["X"]),
        json!(["X", 1]),
        json!("X: y"),
    ];
    let with_headers = headers.into_iter().map(|headers| json!({ "status": 200, "headers": headers }));
    let heads = with_status.chain(with_headers).chain([json!({ "status": 200 }), json!([]), Value::Null]);
    let texts = heads.map(|head| head.to_string()).chain(["{".to_owned(), String::new(), "x".repeat(100_000)]);
    for head in texts {
        let response = front.post("/raw", "", &head);
        assert_eq!(response.status, 502, "{}", &head[..head.len().min(100)]);
        response.error();
        front.logged("handler aborted a request");
    }
    assert_eq!(front.post("/raw", "", OK).text(), "raw");
    assert!(front.supervisor.reports(|report| report["type"] == "connectionLost").is_empty());
}

#[test]
fn a_client_gets_none_of_the_headers_about_framing_that_a_handler_sets() {
    let front = front_with(|frames, number, body| frames.send(Kind::Response, number, body, b"raw"));
    let framing = ["Content-Length", "999", "Transfer-Encoding", "chunked", "content-length", "1"];
    let headers = [&framing[..], &["Connection", "upgrade", "X", "y"]].concat();
    let head = json!({ "status": 200, "headers": headers });
    let response = front.post("/raw", "", head.to_string());
    assert_eq!((response.status, response.text()), (200, "raw"));
    assert_eq!(response.header("content-length").as_deref(), Some("3"));
    assert_eq!(response.header("x").as_deref(), Some("y"));
    assert_eq!((response.header("transfer-encoding"), response.header("connection")), (None, None));
}

#[test]
fn a_handler_that_answers_what_it_was_not_asked_is_left() {
    const OTHER: &str = "a response to no request";
    let reasons = [
        expect_left(200, |frames, number, _| {
            frames.send_bytes(&[response(number, OK), response(number, OK)].concat());
        }),
        expect_left(502, |frames, number, _| frames.send_bytes(&response(number.wrapping_add(77), OK))),
        expect_left(502, |frames, number, _| {
            frames.send_bytes(&response(number.wrapping_add(77), OK).repeat(100_000));
        }),
        expect_left(502, |frames, number, _| {
            frames.send_bytes(&header(Kind::Response, number.wrapping_add(77), OK.len(), 60 << 20));
            frames.send_bytes(OK.as_bytes());
            frames.send_bytes(&vec![0; 50 << 20]);
        }),
    ];
    for reason in reasons {
        assert!(reason.contains(OTHER), "{reason}");
    }
}

#[test]
fn a_handler_that_sends_no_frames_of_a_handler_is_left() {
    let head = OK.len() as u32;
    for (reason, expected) in [
        (
            expect_left(502, |frames, number, _| frames.send(Kind::Request, number, OK.as_bytes(), b"")),
            "sent what only a gateway sends",
        ),
        (expect_left(502, |frames, _, _| frames.send_bytes(&[0xa5; 100_000])), "Unknown protocol version 165"),
        (
            expect_left(502, move |frames, number, _| frames.send_bytes(&header_of_lengths(number, head, 1 << 30))),
            "Body length 1073741824 is over the limit",
        ),
        (
            expect_left(502, |frames, number, _| frames.send_bytes(&header_of_lengths(number, u32::MAX, u32::MAX))),
            "Head length 4294967295 is over the limit",
        ),
    ] {
        assert!(reason.contains(expected), "{reason}");
    }
}

#[test]
fn a_client_gets_502_when_the_handler_closes_its_connection() {
    let front = Front::start();
    let handler = front.scripted("whole", |frames| {
        frames.receive();
    });
    front.serve(&handler, [post("/raw")]);
    front.post("/raw", "", "").error();
    assert_eq!(front.logged("handler aborted a request")["reason"], connection_lost(&front));
}

#[test]
fn a_client_gets_502_when_the_head_of_the_answer_is_too_long() {
    let front = front_with(|frames, number, _| {
        frames.send(Kind::Response, number, format!("{OK}{}", " ".repeat(1_000_000)).as_bytes(), b"");
    });
    assert_eq!(front.post("/raw", "", "").status, 502);
    front.logged("handler aborted a request");
}

#[test]
fn a_client_gets_504_when_the_handler_does_not_finish_its_answer() {
    let front = Front::start();
    let handler = front.scripted("whole", |frames| {
        let Some(request) = frames.receive_of(Kind::Request) else { return };
        frames.send_bytes(&header(Kind::Response, request.number, OK.len(), 60 << 20));
        frames.send_bytes(OK.as_bytes());
        frames.send_bytes(&vec![0; 50 << 20]);
        while frames.receive().is_some() {}
    });
    front.serve(&handler, [post("/raw").limit("timeoutMs", 1_500)]);
    assert_eq!(front.post("/raw", "", "").status, 504);
    front.logged("request exceeded its deadline");
    front.supervisor.report("a deadline", |report| report["type"] == "deadlineExceeded");
}

#[test]
fn a_client_gets_504_when_the_handler_does_not_read_its_request() {
    let front = Front::start();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let stopped = std::sync::Mutex::new(stopped);
    let handler = front.scripted("whole", move |_| {
        let _ = stopped.lock().unwrap().recv();
    });
    front.serve(&handler, [post("/raw").limit("timeoutMs", 200)]);
    assert_eq!(front.post("/raw", "", "x".repeat(1_000_000)).status, 504);
    front.logged("request exceeded its deadline");
    front.supervisor.report("a deadline", |report| report["type"] == "deadlineExceeded");
    drop(stop);
}

#[test]
fn a_client_gets_an_answer_that_comes_byte_by_byte() {
    let front = front_with(|frames, number, _| {
        for byte in response(number, OK) {
            frames.send_bytes(&[byte]);
        }
    });
    assert_eq!(front.post("/raw", "", "").text(), "raw");
}

#[test]
fn a_handler_that_removes_its_socket_is_used_until_its_connections_close() {
    let front = Front::with(json!({ "threads": 1 }));
    let handler = front.handler(anything);
    front.serve(&handler, [get("/any")]);
    assert_eq!(front.get("/any", "").status, 200);
    fs::remove_file(&handler.socket).unwrap();
    assert_eq!(front.get("/any", "").status, 200);
}

#[test]
fn the_supervisor_is_told_when_a_handler_has_no_socket_of_its_own() {
    /// What is put where the socket should be; `other` is that of another process, which would answer.
    type Put = fn(socket: &Path, other: &Path);
    let cases: [(&str, Put); 4] = [
        ("No such file", |_, _| {}),
        ("its socket is not a socket", |socket, _| fs::write(socket, "no socket").unwrap()),
        ("its socket is not a socket", |socket, other| symlink(other, socket).unwrap()),
        ("", |socket, _| std::mem::forget(UnixDatagram::bind(socket).unwrap())),
    ];
    for (expected, put) in cases {
        let front = Front::start();
        let handler = front.handler(anything);
        let other = handler.socket.with_extension("other");
        fs::rename(&handler.socket, &other).unwrap();
        put(&handler.socket, &other);
        front.serve(&handler, [get("/any").limit("timeoutMs", 500)]);
        let status = front.get("/any", "").status;
        let reason = connection_lost(&front);
        assert!(reason.contains(expected), "{reason}");
        assert_eq!(status, 503, "{reason}");
    }
}
