//! HTTP/2 without TLS, with the client of the crate h2, and frame by frame where that would not do so.
use std::future::Future;

use bytes::Bytes;
use h2::client::{Builder, ResponseFuture, SendRequest};
use h2::{Reason, SendStream};
use http::{HeaderMap, Method, Request, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::runtime;
use tokio::task::{JoinSet, LocalSet, spawn_local};
use tokio::time::timeout;

use crate::support::http2::{PREFACE, block, code, fields, flag, frame, kind};
use crate::support::{Answer, Front, Gate, PATIENCE, anything, get, post};

const BODY_LIMIT: usize = 4 << 20;
const WINDOW: u32 = 16 << 20;
/// Requests of a connection at a time.
const STREAMS: usize = 100;

/// `/any` describes the request, `/echo` sends the body back, `/late` does so when the gate is open.
fn front_with_gate() -> (Front, Gate) {
    let front = Front::with(json!({ "bodyLimit": BODY_LIMIT }));
    let gate = Gate::default();
    let late = gate.clone();
    let handler = front.handler(move |request| match request.target() {
        "/echo" => Answer::new(200, request.body.clone()),
        "/late" => {
            late.wait();
            Answer::new(200, request.body.clone())
        }
        "/unchanged" => Answer::new(304, ""),
        "/nothing" => Answer::new(204, ""),
        _ => anything(request),
    });
    let endpoints = [get("/any"), post("/any"), post("/echo"), post("/late"), get("/unchanged"), get("/nothing")];
    front.serve(&handler, endpoints.map(|endpoint| endpoint.limit("concurrentRequests", 1_000)));
    (front, gate)
}

fn front() -> Front {
    front_with_gate().0
}

/// Runs what a client does, with the connection of the client beside it.
fn run(test: impl Future<Output = ()>) {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(LocalSet::new().run_until(async { timeout(PATIENCE, test).await.unwrap() }));
}

async fn connect(front: &Front) -> SendRequest<Bytes> {
    let tcp = TcpStream::connect(front.address).await.unwrap();
    let mut builder = Builder::new();
    // These hold until the front has said how many streams there may be.
    builder.initial_connection_window_size(WINDOW).initial_max_send_streams(STREAMS);
    let (client, connection) = builder.handshake(tcp).await.unwrap();
    spawn_local(async { drop(connection.await) });
    client
}

/// Sends the head of a request, as soon as there may be one more.
async fn begin(client: &SendRequest<Bytes>, head: Request<()>, is_whole: bool) -> (ResponseFuture, SendStream<Bytes>) {
    client.clone().ready().await.unwrap().send_request(head, is_whole).unwrap()
}

fn request(method: Method, path: &str) -> Request<()> {
    Request::builder().method(method).uri(format!("http://localhost{path}")).body(()).unwrap()
}

/// Waits for a whole response.
async fn whole(response: ResponseFuture) -> (StatusCode, HeaderMap, Vec<u8>) {
    let (head, mut body) = response.await.unwrap().into_parts();
    let mut received = Vec::new();
    while let Some(piece) = body.data().await {
        let piece = piece.unwrap();
        body.flow_control().release_capacity(piece.len()).unwrap();
        received.extend_from_slice(&piece);
    }
    (head.status, head.headers, received)
}

async fn send(client: &SendRequest<Bytes>, head: Request<()>, body: Option<Bytes>) -> (StatusCode, HeaderMap, Vec<u8>) {
    let (response, mut stream) = begin(client, head, body.is_none()).await;
    if let Some(body) = body {
        stream.send_data(body, true).unwrap();
    }
    whole(response).await
}

/// Bytes that differ from those of other lengths.
fn content(length: usize) -> Bytes {
    (0..length).map(|at| ((at * length) >> 5) as u8).collect()
}

#[test]
fn a_client_is_served_as_over_http_1() {
    let front = front();
    run(async {
        let client = connect(&front).await;
        let mut head = request(Method::GET, "/any?x=1");
        for (name, value) in [("x-own", "yes"), ("cookie", "a=b"), ("cookie", "c=d")] {
            head.headers_mut().append(name, value.parse().unwrap());
        }
        let (status, headers, body) = send(&client, head, None).await;
        assert_eq!(status, 200);
        assert_eq!(headers["content-type"], "application/json");
        assert_eq!(headers["content-length"], body.len().to_string());
        assert!(headers.contains_key("date") && headers.contains_key("x-request-id"), "{headers:?}");
        assert!(!headers.contains_key("connection"));
        let received: Value = serde_json::from_slice(&body).unwrap();
        let expected = ["GET", "/any?x=1", "127.0.0.1"];
        assert_eq!([&received["method"], &received["target"], &received["client_ip"]], expected);
        let names = ["host", "x-own", "cookie"].map(|name| &received["headers"][name]);
        assert_eq!(names, ["localhost", "yes", "a=b; c=d"]);
        let mut own = request(Method::GET, "/any");
        own.headers_mut().append("x-request-id", "my-own".parse().unwrap());
        assert_eq!(send(&client, own, None).await.1["x-request-id"], "my-own");
    });
}

#[test]
fn bodies_of_any_size_go_both_ways_side_by_side() {
    let front = front();
    run(async {
        let client = connect(&front).await;
        let mut echoes = JoinSet::new();
        for length in [1, 16_384, 65_536, 300_000, 1_000_000, 3_500_000] {
            let client = client.clone();
            echoes.spawn_local(async move {
                let (status, _, body) = send(&client, request(Method::POST, "/echo"), Some(content(length))).await;
                assert!(status == 200 && body == content(length), "{status} {length}");
            });
        }
        echoes.join_all().await;
    });
}

#[test]
fn a_client_may_have_more_requests_than_a_connection_has_streams() {
    let front = front();
    run(async {
        let client = connect(&front).await;
        let mut echoes = JoinSet::new();
        for number in 0..400 {
            let client = client.clone();
            echoes.spawn_local(async move {
                let text = format!("number {number}");
                let (_, _, body) = send(&client, request(Method::POST, "/echo"), Some(text.clone().into())).await;
                assert_eq!(body, text.into_bytes());
            });
        }
        echoes.join_all().await;
        assert_eq!(client.current_max_send_streams(), STREAMS);
    });
}

#[test]
fn a_client_gets_errors_in_json_and_its_connection_stays_open() {
    let front = front();
    run(async {
        let client = connect(&front).await;
        let large = || Some(Bytes::from(vec![0; BODY_LIMIT + 1]));
        let mut announced = request(Method::POST, "/any");
        announced.headers_mut().append("content-length", (BODY_LIMIT + 1).into());
        for (expected, head, body) in [
            (404, request(Method::GET, "/none"), None),
            (405, request(Method::DELETE, "/any"), None),
            (413, announced, large()),
            (413, request(Method::POST, "/any"), large()),
        ] {
            let (status, headers, body) = send(&client, head, body).await;
            assert_eq!((status.as_u16(), &headers["content-type"]), (expected, &"application/json".parse().unwrap()));
            let error: Value = serde_json::from_slice(&body).unwrap();
            assert!(error["error"].is_string() && headers.contains_key("x-request-id"), "{error}");
        }
        let (_, headers, _) = send(&client, request(Method::DELETE, "/any"), None).await;
        assert!(headers["allow"].to_str().unwrap().contains("GET"));
        assert_eq!(send(&client, request(Method::GET, "/any"), None).await.0, 200);
    });
}

#[test]
fn a_client_gets_no_body_with_head_204_and_304() {
    let front = front();
    run(async {
        let client = connect(&front).await;
        for (method, path, status, has_length) in [
            (Method::HEAD, "/any", 200, true),
            (Method::GET, "/unchanged", 304, false),
            (Method::GET, "/nothing", 204, false),
        ] {
            let (actual, headers, body) = send(&client, request(method, path), None).await;
            let expected = (status, has_length, 0);
            assert_eq!((actual.as_u16(), headers.contains_key("content-length"), body.len()), expected, "{path}");
        }
    });
}

#[test]
fn a_handler_gets_no_trailers_of_a_request() {
    let front = front();
    run(async {
        let client = connect(&front).await;
        let (response, mut stream) = begin(&client, request(Method::POST, "/any"), false).await;
        stream.send_data("{}".into(), false).unwrap();
        let mut trailers = HeaderMap::new();
        trailers.append("x-trailer", "secret".parse().unwrap());
        stream.send_trailers(trailers).unwrap();
        let (status, _, body) = whole(response).await;
        let received = String::from_utf8(body).unwrap();
        assert!(status == 200 && received.contains(r#""body":"{}""#) && !received.contains("trailer"), "{received}");
    });
}

#[test]
fn a_stream_that_is_not_read_is_held_back_and_no_other() {
    let front = front();
    run(async {
        let client = connect(&front).await;
        let (response, mut stream) = begin(&client, request(Method::POST, "/echo"), false).await;
        stream.send_data(content(3_000_000), true).unwrap();
        let mut slow = response.await.unwrap().into_body();
        for _ in 0..20 {
            let (_, _, body) = send(&client, request(Method::POST, "/echo"), Some(content(200_000))).await;
            assert_eq!(body.len(), 200_000);
        }
        let mut received = Vec::new();
        while let Some(piece) = slow.data().await {
            let piece = piece.unwrap();
            slow.flow_control().release_capacity(piece.len()).unwrap();
            received.extend_from_slice(&piece);
        }
        assert!(received == content(3_000_000));
    });
}

#[test]
fn a_connection_goes_on_when_streams_are_aborted_before_while_and_after_they_are_answered() {
    let (front, gate) = front_with_gate();
    run(async {
        let client = connect(&front).await;
        for path in ["/late", "/echo"] {
            for number in 0..20 {
                let is_whole = number % 2 == 0;
                let (response, mut stream) = begin(&client, request(Method::POST, path), false).await;
                stream.send_data(content(100_000), is_whole).unwrap();
                if is_whole && path == "/echo" {
                    drop(response.await.unwrap());
                }
                stream.send_reset(Reason::CANCEL);
            }
        }
        let (_, _, body) = send(&client, request(Method::POST, "/echo"), Some(content(1_000_000))).await;
        assert!(body == content(1_000_000));
    });
    gate.open();
    front.metrics_become("without requests", |figures| figures["requestsInFlight"] == 0);
}

#[test]
fn a_preface_may_come_in_pieces() {
    let front = front();
    let mut client = front.connect();
    for piece in PREFACE.chunks(5) {
        client.send(piece).until_read();
    }
    client.send(frame(kind::SETTINGS, 0, 0, &[]));
    // Its settings, and then that it has taken ours.
    let acknowledged = frame(kind::SETTINGS, flag::ACK, 0, &[]);
    while !client.received.ends_with(&acknowledged) {
        assert!(client.read(), "{}", client.excerpt());
    }
}

#[test]
fn a_client_that_expects_100_continue_gets_it_where_the_body_is_wanted() {
    let front = front();
    let head = |path: &str| {
        let mut fields = fields("POST", path);
        fields.push((b"expect".into(), b"100-continue".into()));
        fields
    };
    let heads = |path: &str| {
        let mut client = front.connect_http2();
        client.send(frame(kind::HEADERS, flag::END_HEADERS, 1, &block(&head(path))));
        client.receives(kind::HEADERS);
        if path == "/echo" {
            client.send(frame(kind::DATA, flag::END_STREAM, 1, b"now"));
        }
        let end = client.end_of(1);
        (client.statuses_of(1), end.body, end.reset.filter(|&reset| reset != code::NONE))
    };
    assert_eq!(heads("/echo"), (vec![100, 200], b"now".to_vec(), None));
    assert_eq!(heads("/none").0, [404]);
}
