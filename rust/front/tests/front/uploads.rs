//! Bodies of requests that handlers read while they arrive: held back by slow handlers, cut off, dropped.
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{
    Client, Front, Gate, Handler, LASTING_PIECES, PATIENCE, PIECE_PAUSE, Request, Stream, UNMET_MS, anything,
    eventually_within, post,
};

const MEGABYTE: usize = 1 << 20;
const LAST_CHUNK: &str = "0\r\n\r\n";
const CHUNKED: &str = "Transfer-Encoding: chunked\r\n";
const CUT_OFF: &str = "a streamed response was cut off";
const DROPPED: &str = "handler aborted a request";

/// A front of one thread that takes whole bodies of up to 1 MiB.
fn front_with(settings: Value) -> Front {
    let mut all = json!({ "threads": 1, "bodyLimit": MEGABYTE });
    for (name, value) in settings.as_object().unwrap() {
        all[name] = value.clone();
    }
    Front::with(all)
}

fn front_of(script: impl Fn(&Request, &mut Stream) + Send + Sync + 'static) -> Front {
    let front = front_with(json!({}));
    front.serve(&front.streams("streams", script), [post("/upload")]);
    front
}

/// The body of a request, of which a part may have come with its head. None when it has no end.
fn count(request: &Request, stream: &mut Stream) -> Option<usize> {
    let mut length = request.body.len();
    if request.is_whole {
        return Some(length);
    }
    while let Some(piece) = stream.piece() {
        length += piece.len();
    }
    if stream.reset.is_some() { None } else { Some(length) }
}

/// Answers with the length of the body.
fn counts(request: &Request, stream: &mut Stream) {
    if let Some(length) = count(request, stream) {
        stream.respond(200, length.to_string().as_bytes());
    }
}

/// Reports when it has the first piece, and why there is no end.
fn reports() -> (impl Fn(&Request, &mut Stream) + Send + Sync + 'static, Receiver<String>) {
    let (sender, reported) = channel();
    let sender = Mutex::new(sender);
    let script = move |_: &Request, stream: &mut Stream| {
        let report = |what: &str| drop(sender.lock().unwrap().send(what.to_owned()));
        let Some(first) = stream.piece() else { return report("nothing came") };
        report("begun");
        let mut length = first.len();
        while let Some(piece) = stream.piece() {
            length += piece.len();
        }
        match &stream.reset {
            None => stream.respond(200, length.to_string().as_bytes()),
            Some(reason) => report(reason),
        }
    };
    (script, reported)
}

/// Sends back what comes.
fn echoes(_: &Request, stream: &mut Stream) {
    stream.head(200, &[]);
    while let Some(piece) = stream.piece() {
        stream.data(&piece);
    }
    if stream.reset.is_none() {
        stream.end();
    }
}

fn begin(front: &Front, lines: &str) -> Client {
    let mut client = front.connect();
    client.send(format!("POST /upload HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n"));
    client
}

fn length_of(bytes: usize) -> String {
    format!("Content-Length: {bytes}\r\n")
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

fn kibibyte() -> String {
    "x".repeat(1024)
}

#[test]
fn a_handler_reads_a_body_while_it_arrives_also_one_that_is_longer_than_whole_ones_may_be() {
    let (script, reported) = reports();
    let front = front_of(script);
    let mut client = begin(&front, &length_of(3 * MEGABYTE));
    client.send(kibibyte());
    // It has begun before the rest is sent.
    assert_eq!(reported.recv_timeout(PATIENCE).unwrap(), "begun");
    client.send("x".repeat(3 * MEGABYTE - 1024));
    assert_eq!(client.response().text(), (3 * MEGABYTE).to_string());
    // The connection goes on, also behind chunks.
    client.send(format!("POST /upload HTTP/1.1\r\nHost: localhost\r\n{CHUNKED}\r\n"));
    client.send(chunk(&kibibyte()) + &chunk(&kibibyte()) + LAST_CHUNK);
    assert_eq!(client.response().text(), "2048");
}

#[test]
fn a_body_goes_both_ways_at_once_and_comes_back_as_it_was_sent() {
    let front = front_of(echoes);
    let content: Vec<u8> = (0..20 * MEGABYTE).map(|at| ((at * at) >> 7) as u8).collect();
    let mut client = begin(&front, &length_of(content.len()));
    let mut sender = Client::of(client.stream.try_clone().unwrap());
    let received = thread::scope(|scope| {
        scope.spawn(|| sender.send(&content));
        client.response()
    });
    assert_eq!(received.status, 200);
    assert!(received.body == content);
    // What is sent comes back before more is.
    let mut client = begin(&front, CHUNKED);
    for word in ["one", "two", "three"] {
        client.send(chunk(word)).receives(&chunk(word));
    }
    client.send(LAST_CHUNK).receives(LAST_CHUNK);
}

#[test]
fn a_body_that_is_no_http_cuts_off_an_answer_that_has_begun_and_gets_none_within_it() {
    let front = front_of(echoes);
    for wrong in ["zz\r\n".to_owned(), chunk(&kibibyte()) + "-1\r\n"] {
        let mut client = begin(&front, CHUNKED);
        client.send(chunk("one")).receives(&chunk("one"));
        let received = client.send(wrong).closed();
        assert!(!received.contains("HTTP/1.1 400") && !received.contains(LAST_CHUNK), "{received}");
    }
}

#[test]
fn a_body_that_is_no_http_gets_no_answer_behind_one_that_is_complete() {
    let front = front_of(answers_early);
    let mut client = begin(&front, CHUNKED);
    client.receives(LAST_CHUNK);
    let received = client.send("zz\r\n").closed();
    assert_eq!(received.matches("HTTP/1.1 ").count(), 1, "{received}");
}

/// Streams its answer without a look at the body.
fn answers_early(_: &Request, stream: &mut Stream) {
    stream.head(200, &[]);
    stream.data(b"early");
    stream.end();
}

#[test]
fn a_slow_handler_holds_back_the_client_of_its_request_and_nothing_else() {
    let gate = Gate::default();
    let late = gate.clone();
    let front = front_of(move |request, stream| {
        if request.query("hold").is_some() {
            late.wait();
        }
        counts(request, stream);
    });
    let length = 20 * MEGABYTE;
    let mut slow = front.connect();
    slow.send(format!("POST /upload?hold= HTTP/1.1\r\nHost: localhost\r\n{}\r\n", length_of(length)));
    let mut sender = Client::of(slow.stream.try_clone().unwrap());
    let sent = AtomicUsize::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let piece = kibibyte();
            while sent.load(Ordering::Relaxed) < length && sender.stream.write_all(piece.as_bytes()).is_ok() {
                sent.fetch_add(piece.len(), Ordering::Relaxed);
            }
        });
        // These use the same connection to the handler.
        for _ in 0..20 {
            assert_eq!(front.post("/upload", "", vec![b'x'; 600 * 1024]).text(), (600 * 1024).to_string());
        }
        assert!(sent.load(Ordering::Relaxed) < 12 * MEGABYTE);
        gate.open();
        assert_eq!(slow.response().text(), length.to_string());
    });
}

#[test]
fn a_client_that_expects_100_continue_gets_it_when_the_handler_that_it_has_woken_serves() {
    let front = front_with(json!({}));
    front.apply([post("/upload").serving(json!({ "kind": "asleep" }))]);
    let mut client = begin(&front, &(length_of(MEGABYTE) + "Expect: 100-continue\r\n"));
    let report = front.supervisor.report("a wake", |report| report["type"] == "wake");
    assert_eq!(report["endpointId"], "POST /upload");
    assert!(client.received.is_empty());
    front.serve(&front.streams("streams", counts), [post("/upload")]);
    client.receives("HTTP/1.1 100 Continue\r\n\r\n").send("x".repeat(MEGABYTE));
    assert_eq!(client.response().text(), MEGABYTE.to_string());
}

#[test]
fn a_client_is_answered_early_and_its_connection_goes_on_when_the_rest_of_the_body_comes() {
    let front = front_of(|request, stream| match request.query("early") {
        Some(_) => answers_early(request, stream),
        None if request.query("refuse").is_some() => stream.respond(403, b"not here"),
        None => counts(request, stream),
    });
    let ask = |target: &str, lines: &str| {
        let mut client = front.connect();
        client.send(format!("POST {target} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n"));
        client
    };
    let refused = ask("/upload?refuse=", &length_of(50 * MEGABYTE)).response();
    assert_eq!((refused.status, refused.text()), (403, "not here"));
    assert_eq!(refused.header("connection").as_deref(), Some("close"));
    let mut early = ask("/upload?early=", CHUNKED);
    early.receives(LAST_CHUNK);
    assert_eq!(early.response().text(), "early");
    let next = format!("POST /upload HTTP/1.1\r\nHost: localhost\r\n{}\r\nend", length_of(3));
    early.send(chunk(&kibibyte()) + LAST_CHUNK + &next);
    assert_eq!(early.response().text(), "3");
    front.metrics_become("without requests", |figures| figures["requestsInFlight"] == 0);
}

#[test]
fn a_request_counts_no_longer_than_until_it_is_answered() {
    let front = front_with(json!({}));
    let handler = front.streams("streams", |request, stream| match request.query("early") {
        Some(_) => answers_early(request, stream),
        None => counts(request, stream),
    });
    let one = post("/upload").limit("concurrentRequests", 1).policies(json!({ "body_limit": MEGABYTE }));
    front.serve(&handler, [one]);
    for (query, kibibytes, status) in [("?early=", 1, 200), ("", 1025, 413)] {
        // What still comes is dropped for 30 seconds, unless nothing comes for one: then it begins anew.
        eventually_within(
            PATIENCE,
            || format!("the request with {status} counts as long as its connection is open"),
            || {
                front.metrics_become("without requests", |figures| figures["requestsInFlight"] == 0);
                let mut client = front.connect();
                client.send(format!("POST /upload{query} HTTP/1.1\r\nHost: localhost\r\n{CHUNKED}\r\n"));
                client.send(chunk(&kibibyte()).repeat(kibibytes)).receives(&format!("HTTP/1.1 {status}"));
                while client.is_open() {
                    client.send(chunk("x"));
                    if front.post("/upload", "", "").status == 200 && client.is_open() {
                        return true;
                    }
                }
                false
            },
        );
    }
}

#[test]
fn a_handler_is_told_when_the_client_leaves_within_the_body() {
    let (script, reported) = reports();
    let front = front_of(script);
    for leave in [|client: Client| drop(client), Client::reset, |mut client: Client| drop(client.finish().closed())] {
        let mut client = begin(&front, &length_of(3 * MEGABYTE));
        client.send(kibibyte());
        assert_eq!(reported.recv_timeout(PATIENCE).unwrap(), "begun");
        leave(client);
        let reason = reported.recv_timeout(PATIENCE).unwrap();
        assert!(reason.contains("the client has left"), "{reason}");
    }
    front.metrics_become("without requests", |figures| figures["requestsInFlight"] == 0);
}

#[test]
fn a_client_gets_408_when_it_sends_nothing_for_too_long() {
    let (script, reported) = reports();
    let front = front_with(json!({}));
    let handler = front.streams("streams", script);
    // The deadline begins at the end of the body.
    front.serve(&handler, [post("/upload").limit("idleTimeoutMs", UNMET_MS).limit("timeoutMs", UNMET_MS)]);
    let mut slow = begin(&front, CHUNKED);
    for _ in 0..LASTING_PIECES {
        slow.send(chunk(&kibibyte()));
        thread::sleep(PIECE_PAUSE);
    }
    assert_eq!(slow.send(LAST_CHUNK).response().text(), (LASTING_PIECES * 1024).to_string());
    assert_eq!(reported.recv_timeout(PATIENCE).unwrap(), "begun");
    front.serve(&handler, [post("/upload").limit("idleTimeoutMs", 500)]);
    let responses = begin(&front, CHUNKED).send(chunk(&kibibyte())).rest();
    assert_eq!(responses.iter().map(|response| response.status).collect::<Vec<_>>(), [408]);
    assert_eq!(reported.recv_timeout(PATIENCE).unwrap(), "begun");
    let reason = reported.recv_timeout(PATIENCE).unwrap();
    assert!(reason.contains("sent nothing for too long"), "{reason}");
}

#[test]
fn a_client_gets_504_when_the_handler_reads_nothing_for_too_long() {
    let gate = Gate::default();
    let late = gate.clone();
    let front = front_with(json!({}));
    let handler = front.streams("streams", move |_, _| late.wait());
    front.serve(&handler, [post("/upload").limit("idleTimeoutMs", 500).limit("timeoutMs", 500)]);
    let mut unread = begin(&front, &length_of(3 * MEGABYTE));
    unread.send("x".repeat(2 * MEGABYTE));
    assert_eq!(unread.response().status, 504);
    front.logged("request exceeded its deadline");
    gate.open();
}

#[test]
fn a_body_is_no_longer_than_the_policy_allows_whatever_is_known_before() {
    let (script, reported) = reports();
    let front = front_with(json!({}));
    let limited = || post("/upload").policies(json!({ "body_limit": MEGABYTE }));
    front.serve(&front.streams("streams", script), [limited()]);
    assert_eq!(begin(&front, &length_of(2 * MEGABYTE)).response().status, 413);
    let mut counted = begin(&front, CHUNKED);
    assert_eq!(counted.send(chunk(&kibibyte()).repeat(1025)).response().status, 413);
    assert_eq!(reported.recv_timeout(PATIENCE).unwrap(), "begun");
    let reason = reported.recv_timeout(PATIENCE).unwrap();
    assert!(reason.contains("body_limit"), "{reason}");
    // Once the answer has begun, it is cut off.
    front.serve(&front.streams("streams", echoes), [limited()]);
    let mut echoed = begin(&front, CHUNKED);
    let mut sender = Client::of(echoed.stream.try_clone().unwrap());
    let received = thread::scope(|scope| {
        scope.spawn(|| sender.send(chunk(&kibibyte()).repeat(1025)));
        echoed.closed()
    });
    assert!(received.contains("HTTP/1.1 200") && !received.contains(LAST_CHUNK));
    front.logged(CUT_OFF);
}

#[test]
fn a_client_that_is_too_slow_gets_408_but_not_when_the_handler_holds_it_back() {
    let front = front_with(json!({ "stallTimeoutMs": 3_000, "minBytesPerSecond": 2_000 }));
    let (script, reported) = reports();
    front.serve(&front.streams("streams", script), [post("/upload")]);
    let mut slow = begin(&front, &length_of(3 * MEGABYTE));
    let mut sender = Client::of(slow.stream.try_clone().unwrap());
    let gate = Gate::default();
    thread::scope(|scope| {
        scope.spawn(|| {
            // It ends also when the test fails.
            let begin = Instant::now();
            while !gate.is_open() && begin.elapsed() < PATIENCE {
                sender.send("x");
                thread::sleep(Duration::from_millis(100));
            }
        });
        assert_eq!(slow.response().status, 408);
        gate.open();
    });
    assert_eq!(reported.recv_timeout(PATIENCE).unwrap(), "begun");
    let reason = reported.recv_timeout(PATIENCE).unwrap();
    assert!(reason.contains("too slow"), "{reason}");

    let gate = Gate::default();
    let late = gate.clone();
    let held = front.streams("streams", move |request, stream| {
        late.wait();
        counts(request, stream);
    });
    front.serve(&held, [post("/upload")]);
    let mut patient = begin(&front, &length_of(2 * MEGABYTE));
    let mut sender = Client::of(patient.stream.try_clone().unwrap());
    thread::scope(|scope| {
        scope.spawn(|| sender.send("x".repeat(2 * MEGABYTE)));
        // This takes longer than a slow client would have.
        thread::sleep(Duration::from_secs(5));
        gate.open();
        assert_eq!(patient.response().text(), (2 * MEGABYTE).to_string());
    });
}

#[test]
fn a_client_gets_502_when_the_handler_ends_within_the_body() {
    let front = front_with(json!({}));
    let handler: Handler = front.scripted("streams", |frames| drop(frames.receive()));
    front.serve(&handler, [post("/upload")]);
    let mut client = begin(&front, &length_of(3 * MEGABYTE));
    assert_eq!(client.send(kibibyte()).response().status, 502);
    front.logged(DROPPED);
    front.supervisor.report("a lost connection", |report| report["type"] == "connectionLost");
    front.serve(&front.handler(anything), [post("/upload")]);
    assert_eq!(front.post("/upload", "", "abc").json()["body"], "abc");
}
