//! Responses that handlers stream: piece by piece, held back by slow readers, cut off.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, MutexGuard};

use edge_wire::Kind;
use serde_json::json;

use crate::support::http2::{code, fields, frame, kind};
use crate::support::{Client, Front, Gate, LASTING_PIECES, PATIENCE, PIECE_PAUSE, Request, Stream, UNMET_MS, get};

const MEGABYTE: usize = 1 << 20;
const LAST_CHUNK: &str = "0\r\n\r\n";
const CUT_OFF: &str = "a streamed response was cut off";

/// A front of one thread, so that all requests go by one connection to the handler, which does this for each.
fn front_with(script: impl Fn(&Request, &mut Stream) + Send + Sync + 'static) -> Front {
    front_that_drains(30_000, script)
}

/// The same; streams of a handler that is replaced may go on for so many milliseconds.
fn front_that_drains(drain_ms: u32, script: impl Fn(&Request, &mut Stream) + Send + Sync + 'static) -> Front {
    let front = Front::with(json!({ "threads": 1, "streamDrainMs": drain_ms }));
    let handler = front.streams("streams", script);
    front.serve(&handler, [get("/stream").limit("idleTimeoutMs", 60_000)]);
    front
}

/// Streams "first", and "second" when the gate is open.
fn pieces(gate: &Gate) -> impl Fn(&Request, &mut Stream) + Send + Sync + 'static {
    let gate = gate.clone();
    move |_, stream| {
        stream.head(203, &["x-kind", "pieces"]);
        stream.data(b"first");
        gate.wait();
        stream.data(b"second");
        stream.end();
    }
}

/// Streams until the front wants no more, and then says why.
fn endless() -> (impl Fn(&Request, &mut Stream) + Send + Sync + 'static, Receiver<String>) {
    let (sender, reasons) = channel();
    let sender = Mutex::new(sender);
    let script = move |request: &Request, stream: &mut Stream| {
        if request.query("whole").is_some() {
            stream.respond(200, b"whole");
            return;
        }
        stream.head(200, &[]);
        stream.data(b"more\n");
        while stream.receive().is_some() {}
        let sender: MutexGuard<'_, _> = sender.lock().unwrap();
        let _ = sender.send(stream.reset.clone().unwrap_or_default());
    };
    (script, reasons)
}

fn ask(front: &Front, target: &str) -> Client {
    let mut client = front.connect();
    client.send(format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    client
}

fn without_requests(front: &Front) {
    front.metrics_become("without requests", |figures| figures["requestsInFlight"] == 0);
}

#[test]
fn a_client_gets_each_piece_before_the_handler_goes_on_and_then_the_connection_goes_on() {
    let gate = Gate::default();
    let front = front_with(pieces(&gate));
    let mut client = ask(&front, "/stream");
    client.receives("\r\n\r\n5\r\nfirst\r\n");
    let excerpt = client.excerpt();
    assert!(excerpt.contains("HTTP/1.1 203") && excerpt.contains("x-kind: pieces"), "{excerpt}");
    assert!(excerpt.to_lowercase().contains("transfer-encoding: chunked") && !excerpt.contains("second"), "{excerpt}");
    front.metrics_become("with a request", |figures| figures["requestsInFlight"] == 1);
    gate.open();
    client.receives(&format!("6\r\nsecond\r\n{LAST_CHUNK}"));
    assert_eq!(client.response().text(), "firstsecond");
    client.send("GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.response().text(), "firstsecond");
    without_requests(&front);
    let entry = front.supervisor.report("an entry of the log", |report| report["type"] == "request");
    assert_eq!([&entry["status"], &entry["bytes"]], [203, 11]);
}

#[test]
fn a_client_gets_the_length_that_the_handler_gives_its_stream_or_is_cut_off() {
    let front = front_with(|request, stream| {
        stream.head(200, &["Content-Length", request.query("length").unwrap()]);
        stream.data(b"four");
        stream.end();
    });
    let response = ask(&front, "/stream?length=4").response();
    assert_eq!((response.header("content-length").as_deref(), response.text()), (Some("4"), "four"));
    assert_eq!(response.header("transfer-encoding"), None);
    for length in [3, 5] {
        let received = ask(&front, &format!("/stream?length={length}")).closed();
        let (_, body) = received.split_once("\r\n\r\n").unwrap_or_default();
        assert!(body.len() != length, "{length}: {received}");
        front.logged(CUT_OFF);
    }
}

#[test]
fn a_client_of_http_1_0_gets_the_body_until_the_connection_ends() {
    let front = front_with(|_, stream| {
        stream.head(200, &[]);
        stream.data(&[b'x'; 64 * 1024]);
        stream.end();
    });
    let mut client = front.connect();
    let received = client.send("GET /stream HTTP/1.0\r\nHost: localhost\r\n\r\n").closed();
    let (head, body) = received.split_once("\r\n\r\n").unwrap();
    let head = head.to_lowercase();
    assert!(!head.contains("transfer-encoding") && head.contains("connection: close"), "{head}");
    assert_eq!(body.len(), 64 * 1024);
}

#[test]
fn a_client_that_asks_for_the_head_gets_no_body_and_the_handler_is_told() {
    let (script, reasons) = endless();
    let front = front_with(script);
    let mut client = front.connect();
    client.send("HEAD /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.response_to_head().status, 200);
    reasons.recv_timeout(PATIENCE).unwrap();
    client.send("GET /stream?whole= HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.response().text(), "whole");
    without_requests(&front);
}

#[test]
fn a_slow_reader_holds_back_its_own_stream_and_nothing_else() {
    let written = Arc::new(AtomicUsize::new(0));
    let counter = written.clone();
    let front = front_with(move |request, stream| {
        let Some(megabytes) = request.query("megabytes") else { return stream.respond(200, b"whole") };
        let is_slow = request.query("slow").is_some();
        stream.head(200, &[]);
        for _ in 0..megabytes.parse::<usize>().unwrap() * 1024 {
            stream.data(&[b'x'; 1024]);
            if is_slow {
                counter.fetch_add(1024, Ordering::Relaxed);
            }
        }
        stream.end();
    });
    let mut slow = ask(&front, "/stream?megabytes=20&slow=");
    slow.receives("HTTP/1.1 200");
    for _ in 0..20 {
        assert_eq!(ask(&front, "/stream").response().text(), "whole");
    }
    assert_eq!(ask(&front, "/stream?megabytes=2").response().body.len(), 2 * MEGABYTE);
    assert!(written.load(Ordering::Relaxed) < 16 * MEGABYTE);
    assert_eq!(slow.response().body.len(), 20 * MEGABYTE);
}

#[test]
fn a_handler_is_told_when_the_client_leaves() {
    let (script, reasons) = endless();
    let front = front_with(script);
    for is_half in [false, true] {
        let mut client = ask(&front, "/stream");
        client.receives("more");
        if is_half {
            client.finish();
            reasons.recv_timeout(PATIENCE).unwrap();
        } else {
            drop(client);
            reasons.recv_timeout(PATIENCE).unwrap();
        }
    }
    without_requests(&front);
}

#[test]
fn a_client_gets_no_last_chunk_when_the_handler_fails_or_ends() {
    let front = front_with(|request, stream| {
        stream.head(200, &[]);
        stream.data(b"some");
        if request.query("fails").is_some() {
            stream.send(Kind::Reset, b"on purpose");
        } else {
            // No frame of a handler: the front closes the connection.
            stream.send(Kind::Memory, &[0; 8]);
        }
    });
    for how in ["fails", "ends"] {
        let received = ask(&front, &format!("/stream?{how}=")).closed();
        assert!(received.contains("some") && !received.contains(LAST_CHUNK), "{how}: {received}");
        let reason = front.logged(CUT_OFF)["reason"].as_str().unwrap().to_owned();
        assert_eq!(reason.contains("on purpose"), how == "fails", "{reason}");
    }
    front.supervisor.report("a lost connection", |report| report["type"] == "connectionLost");
}

#[test]
fn a_client_is_cut_off_when_the_handler_sends_nothing_for_too_long_but_not_after_the_deadline() {
    let gate = Gate::default();
    let front = Front::with(json!({ "threads": 1 }));
    let late = gate.clone();
    let handler = front.streams("streams", move |request, stream| {
        stream.head(200, &[]);
        stream.data(b"first");
        if request.query("ticks").is_some() {
            for _ in 0..LASTING_PIECES {
                std::thread::sleep(PIECE_PAUSE);
                stream.data(b"tick");
            }
            stream.end();
        } else {
            late.wait();
        }
    });
    let lasting = get("/lasting").limit("idleTimeoutMs", UNMET_MS).limit("timeoutMs", UNMET_MS);
    front.serve(&handler, [lasting, get("/idle").limit("idleTimeoutMs", 500)]);
    ask(&front, "/lasting?ticks=").receives(LAST_CHUNK);
    let received = ask(&front, "/idle").closed();
    assert!(received.contains("first") && !received.contains(LAST_CHUNK), "{received}");
    front.logged(CUT_OFF);
    // For HTTP/1.0, only a reset says so.
    let mut old = front.connect();
    old.send("GET /idle HTTP/1.0\r\nHost: localhost\r\n\r\n");
    let received = old.closed();
    assert!(received.contains("first"), "{received}");
    assert!(old.is_reset, "{received}");
    front.logged(CUT_OFF);
    gate.open();
}

#[test]
fn a_stream_goes_on_when_its_handler_is_replaced() {
    let gate = Gate::default();
    let front = front_with(pieces(&gate));
    let mut ending = ask(&front, "/stream");
    ending.receives("first");
    let (script, _reasons) = endless();
    front.serve(&front.streams("streams", script), [get("/stream")]);
    assert_eq!(ask(&front, "/stream?whole=").response().text(), "whole");
    gate.open();
    assert_eq!(ending.response().text(), "firstsecond");
}

#[test]
fn a_stream_is_cut_off_a_while_after_its_handler_was_replaced() {
    let (script, reasons) = endless();
    let front = front_that_drains(200, script);
    let mut lasting = ask(&front, "/stream");
    lasting.receives("more");
    let (script, _reasons) = endless();
    front.serve(&front.streams("streams", script), [get("/stream")]);
    assert!(!lasting.closed().contains(LAST_CHUNK));
    front.logged(CUT_OFF);
    reasons.recv_timeout(PATIENCE).unwrap();
}

#[test]
fn a_client_of_http_2_gets_streams_as_one_of_http_1_does() {
    let gate = Gate::default();
    let late = gate.clone();
    let (sender, reasons) = channel();
    let sender = Mutex::new(sender);
    let front = front_with(move |request, stream| {
        stream.head(200, &[]);
        stream.data(b"first");
        if request.query("fails").is_some() {
            stream.send(Kind::Reset, b"on purpose");
        } else if request.query("endless").is_some() {
            while stream.receive().is_some() {}
            sender.lock().unwrap().send(stream.reset.clone()).unwrap();
        } else {
            late.wait();
            stream.data(b"second");
            stream.end();
        }
    });
    let mut client = front.connect_http2();
    let piecewise = client.request(&fields("GET", "/stream"), None, None);
    client.receives(kind::DATA);
    gate.open();
    let end = client.end_of(piecewise);
    assert_eq!((end.status, &end.body[..], end.reset), (Some(200), &b"firstsecond"[..], None));
    let failing = client.request(&fields("GET", "/stream?fails="), None, None);
    assert_eq!(client.end_of(failing).reset, Some(code::INTERNAL));
    front.logged(CUT_OFF);
    let left = client.request(&fields("GET", "/stream?endless="), None, None);
    client.receives_on(left, kind::DATA);
    client.send(frame(kind::RESET, 0, left, &code::CANCEL.to_be_bytes()));
    reasons.recv_timeout(PATIENCE).unwrap();
    let gone = client.request(&fields("GET", "/stream?endless="), None, None);
    client.receives_on(gone, kind::DATA);
    drop(client);
    reasons.recv_timeout(PATIENCE).unwrap();
}
