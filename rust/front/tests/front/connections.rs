//! Several requests on one connection, in pieces, cut off, or not read.
use std::sync::Barrier;

use serde_json::{Value, json};

use crate::support::{Answer, Client, Front, Gate, Request, anything, get, post};

const BODY_LIMIT: usize = 100_000;
const HOST: &str = "Host: localhost\r\n";

/// A front that takes bodies up to the limit. `/slow` is answered when the gate is open.
fn front() -> (Front, Gate) {
    let front = Front::with(json!({ "bodyLimit": BODY_LIMIT }));
    let gate = Gate::default();
    let slow = gate.clone();
    let handler = front.handler(move |request| {
        if request.target() == "/slow" {
            slow.wait();
        }
        anything(request)
    });
    front.serve(&handler, [get("/any"), post("/any"), get("/slow")]);
    (front, gate)
}

fn get_of(path: &str, lines: &str) -> String {
    format!("GET {path} HTTP/1.1\r\n{HOST}{lines}\r\n")
}

fn head_of_post(path: &str, lines: &str) -> String {
    format!("POST {path} HTTP/1.1\r\n{HOST}Content-Type: application/json\r\n{lines}\r\n")
}

/// The statuses of what comes until the front closes the connection.
fn statuses(client: &mut Client) -> Vec<u16> {
    client.rest().iter().map(|response| response.status).collect()
}

fn expect_alive(front: &Front) {
    assert_eq!(front.get("/any", "").status, 200);
}

/// Waits until a request to `/slow` is in its handler.
fn until_a_handler_works(front: &Front) {
    front.metrics_become("with a request", |figures| figures["requestsInFlight"].as_u64() > Some(0));
}

#[test]
fn a_client_that_expects_100_continue_gets_it_before_the_response() {
    let (front, _gate) = front();
    let mut client = front.connect();
    client.send(head_of_post("/any", "Content-Length: 2\r\nExpect: 100-continue\r\n"));
    client.receives("HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(client.send("{}").response().status, 200);
    assert_eq!(client.send(get_of("/any", "")).response().status, 200);
}

#[test]
fn a_client_that_expects_100_continue_is_refused_without_it() {
    let (front, _gate) = front();
    let too_long = format!("Content-Length: {}\r\n", BODY_LIMIT + 1);
    for (path, length, status) in [("/nothing", "Content-Length: 2\r\n", 404), ("/any", &too_long, 413)] {
        let mut client = front.connect();
        client.send(head_of_post(path, &format!("{length}Expect: 100-continue\r\n")));
        while client.read() {}
        assert!(!client.excerpt().contains("100 Continue"), "{}", client.excerpt());
        let responses = client.rest();
        assert_eq!(responses.len(), 1);
        assert_eq!((responses[0].status, responses[0].header("connection").as_deref()), (status, Some("close")));
    }
    expect_alive(&front);
}

#[test]
fn a_client_of_http_1_0_gets_no_100_continue() {
    let (front, _gate) = front();
    let mut client = front.connect();
    let head = head_of_post("/any", "Content-Length: 2\r\nExpect: 100-continue\r\n").replace("HTTP/1.1", "HTTP/1.0");
    client.send(head).send("{}");
    while client.read() {}
    assert!(!client.excerpt().contains("100 Continue"), "{}", client.excerpt());
    assert_eq!(statuses(&mut client), [200]);
}

#[test]
fn a_client_whose_body_is_too_large_is_answered_while_it_still_sends() {
    let (front, _gate) = front();
    let piece = "x".repeat(BODY_LIMIT);
    for (lines, piece, end) in [
        (format!("Content-Length: {}\r\n", 20 * BODY_LIMIT), piece.clone(), ""),
        ("Transfer-Encoding: chunked\r\n".to_owned(), format!("{BODY_LIMIT:x}\r\n{piece}\r\n"), "0\r\n\r\n"),
    ] {
        let mut client = front.connect();
        client.send(head_of_post("/any", &lines));
        for _ in 0..20 {
            client.send(&piece);
        }
        let responses = client.send(end).rest();
        assert_eq!(responses.len(), 1, "{lines}");
        assert_eq!((responses[0].status, responses[0].header("connection").as_deref()), (413, Some("close")));
        assert!(responses[0].error().contains(&BODY_LIMIT.to_string()));
    }
    expect_alive(&front);
}

#[test]
fn pipelined_requests_are_answered_in_their_order() {
    let (front, gate) = front();
    let ids: Vec<String> = (0..50).map(|number| format!("pipelined-{number}")).collect();
    let path = |at: usize| if at % 10 == 0 { "/slow" } else { "/any" };
    let request = |(at, id)| get_of(path(at), &format!("X-Request-Id: {id}\r\n"));
    let mut client = front.connect();
    client.send(ids.iter().enumerate().map(request).collect::<String>());
    until_a_handler_works(&front);
    gate.open();
    let responses = client.responses(ids.len());
    let answered: Vec<String> = responses.iter().map(|response| response.header("x-request-id").unwrap()).collect();
    assert_eq!(answered, ids);
    assert!(responses.iter().all(|response| response.status == 200));
}

#[test]
fn pipelined_requests_are_answered_up_to_one_after_which_nothing_is_read() {
    let good = get_of("/any", "");
    for (requests, expected) in [
        (head_of_post("/any", "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"), vec![200, 200, 400]),
        (head_of_post("/any", "Transfer-Encoding: gzip, chunked\r\n") + "0\r\n\r\n", vec![200, 200, 400]),
        (format!("CONNECT other:443 HTTP/1.1\r\n{HOST}\r\n"), vec![200, 200, 405]),
        (get_of("/any", "Connection: close\r\n"), vec![200, 200, 200]),
    ] {
        let (front, gate) = front();
        let mut client = front.connect();
        client.send(get_of("/slow", "") + &good + &requests + &good);
        until_a_handler_works(&front);
        gate.open();
        assert_eq!(statuses(&mut client), expected, "{requests}");
        expect_alive(&front);
    }
}

#[test]
fn pipelined_requests_go_on_after_one_that_is_refused_with_its_whole_body() {
    let (front, _gate) = front();
    let refused = head_of_post("/nothing", "Content-Length: 5\r\n") + "hello";
    let responses = front.connect().send(refused + &get_of("/any", "")).responses(2);
    assert_eq!(responses.iter().map(|response| response.status).collect::<Vec<_>>(), [404, 200]);
}

#[test]
fn a_client_that_closes_its_sending_side_within_a_body_gets_400() {
    let (front, _gate) = front();
    let mut client = front.connect();
    let responses = client.send(head_of_post("/any", "Content-Length: 100\r\n") + "{\"na").finish().rest();
    assert_eq!(responses.len(), 1);
    assert_eq!(responses[0].status, 400);
    assert!(responses[0].header("x-request-id").is_some());
    expect_alive(&front);
}

#[test]
fn a_client_that_closes_its_sending_side_after_a_request_is_answered() {
    let (front, gate) = front();
    assert_eq!(statuses(front.connect().send(get_of("/any", "")).finish()), [200]);
    let mut client = front.connect();
    client.send(get_of("/slow", ""));
    until_a_handler_works(&front);
    client.finish();
    gate.open();
    assert_eq!(statuses(&mut client), [200]);
}

#[test]
fn a_connection_of_http_1_0_is_kept_open_only_on_request() {
    let (front, _gate) = front();
    let old = |lines: &str| format!("GET /any HTTP/1.0\r\n{HOST}{lines}\r\n");
    assert_eq!(statuses(front.connect().send(old(""))), [200]);
    let mut kept = front.connect();
    let first = kept.send(old("Connection: keep-alive\r\n")).response();
    assert_eq!(first.header("connection").as_deref(), Some("keep-alive"));
    assert_eq!(statuses(kept.send(old(""))), [200]);
}

#[test]
fn a_connection_that_is_aborted_at_any_point_does_no_harm() {
    let (front, gate) = front();
    for bytes in [
        "GE".to_owned(),
        format!("GET /any HTTP/1.1\r\n{HOST}X-Cut: "),
        head_of_post("/any", "Content-Length: 100\r\n"),
        head_of_post("/any", "Content-Length: 100\r\n") + "{\"name",
        head_of_post("/any", "Transfer-Encoding: chunked\r\n") + "5\r\n{\"n",
        get_of("/slow", ""),
        get_of("/slow", "").repeat(20),
    ] {
        for is_reset in [false, true] {
            let mut client = front.connect();
            client.send(&bytes).until_read();
            if is_reset {
                client.reset();
            }
        }
    }
    gate.open();
    expect_alive(&front);
    front.metrics_become("without requests", |figures| figures["requestsInFlight"] == 0);
}

/// Echoes bodies. As many GET as this wait for each other.
fn echo_in_batches(batch: usize) -> impl Fn(&Request) -> Answer + Send + Sync + 'static {
    let barrier = Barrier::new(batch);
    move |request| {
        if request.method() == "GET" {
            barrier.wait();
        }
        Answer::new(200, request.body.clone())
    }
}

#[test]
fn the_memory_of_responses_that_are_not_read_is_free_when_their_connections_end() {
    const MEMORY: usize = 16 << 20;
    const BATCH: usize = 48;
    let front = Front::with(json!({ "bodyLimit": BODY_LIMIT, "memoryBytes": MEMORY }));
    let handler = front.handler(echo_in_batches(BATCH));
    front.serve(&handler, [get("/echo"), post("/echo")]);
    let body = "x".repeat(BODY_LIMIT);
    let second = format!("POST /echo HTTP/1.1\r\n{HOST}Content-Length: {BODY_LIMIT}\r\n\r\n{body}");
    let is_post = |endpoint: &&Value| endpoint["id"] == "POST /echo";
    let answered = |figures: &Value| {
        let endpoints = figures["endpoints"].as_array().unwrap();
        endpoints.iter().find(is_post).map_or(0, |endpoint| endpoint["statuses"][2].as_u64().unwrap() as usize)
    };
    // More than it may hold, all together: of each, the second answer waits for the first.
    for at in (0..2 * MEMORY / BODY_LIMIT).step_by(BATCH) {
        let mut clients: Vec<Client> = (0..BATCH).map(|_| front.connect()).collect();
        for client in &mut clients {
            client.send(get_of("/echo", "") + &second);
        }
        front.metrics_become("all answered", |figures| answered(figures) >= at + BATCH);
        clients.into_iter().for_each(Client::reset);
    }
    front.metrics_become("without requests", |figures| figures["requestsInFlight"] == 0);
    for _ in 0..10 {
        assert_eq!(front.post("/echo", "", &body).status, 200);
    }
}

#[test]
fn a_handler_gets_the_text_of_headers_as_utf_8_or_else_latin_1() {
    let (front, _gate) = front();
    let mut bytes = b"GET /any HTTP/1.1\r\nHost: localhost\r\nX-Utf8: ".to_vec();
    bytes.extend_from_slice("Grüße, 世界\r\nX-Latin1: caf".as_bytes());
    bytes.extend_from_slice(b"\xe9\r\n\r\n");
    let received = front.exchange(bytes).json();
    assert_eq!([&received["headers"]["x-utf8"], &received["headers"]["x-latin1"]], ["Grüße, 世界", "café"]);
}

#[test]
fn a_client_may_send_an_empty_line_before_a_request_also_in_two_pieces() {
    let (front, _gate) = front();
    let mut client = front.connect();
    client.send("\r").until_read();
    assert_eq!(client.send("\n").send(get_of("/any", "")).response().status, 200);
}

#[test]
fn a_handler_gets_the_host_of_a_target_in_absolute_form() {
    let (front, _gate) = front();
    let old = front.exchange("GET http://seen.example/any HTTP/1.0\r\n\r\n").json();
    assert_eq!(old["headers"]["host"], "seen.example");
    let other = "GET http://seen.example:8080/any?q=1 HTTP/1.1\r\nHost: other.example\r\n\r\n";
    let received = front.exchange(other).json();
    assert_eq!([&received["headers"]["host"], &received["target"]], ["seen.example:8080", "/any?q=1"]);
}
