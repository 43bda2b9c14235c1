//! Every row of the table of odd requests, over raw sockets. The table stands in `docs/HTTP.md` too.
use serde_json::Value;

use crate::support::golden::Table;
use crate::support::http2::code;
use crate::support::{Front, anything, get, post};

/// A front that serves what the table asks for.
fn front() -> Front {
    let front = Front::start();
    let handler = front.handler(anything);
    let endpoints = [get("/odd/get"), post("/odd/post"), get("/smuggled")];
    front.serve(&handler, endpoints.map(|endpoint| endpoint.of("localhost")));
    front
}

/// Sends all rows of a section, and after each a request that has to be served.
fn send_rows_of(title: &str) {
    let (front, table) = (front(), Table::read());
    let sent_rows = table.section(title).iter().filter(|row| row.get("http1").is_none());
    let failures: Vec<String> = sent_rows.filter_map(|row| failure_of(&front, &table, row)).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));

    // A request hidden in another is never one of its own; one that is sent in the open is.
    let is_smuggled = |report: &Value| report["type"] == "request" && report["route"] == "/smuggled";
    front.metrics_become("without requests", |figures| figures["requestsInFlight"] == 0);
    // What was logged is there when all threads have answered.
    front.apply([]);
    assert_eq!(front.supervisor.reports(is_smuggled), Vec::<Value>::new());
    front.exchange(table.smuggled());
    front.supervisor.report("the open request", is_smuggled);
    front.apply([]);
    assert_eq!(front.supervisor.reports(is_smuggled), Vec::<Value>::new());
}

/// What is not as the table says.
fn failure_of(front: &Front, table: &Table, row: &Value) -> Option<String> {
    let outcome = row["gateway"].as_str().unwrap();
    let mut client = front.connect();
    client.send(table.bytes(&row["bytes"]));
    let response = client.response();
    let mut problems = Vec::new();
    if response.status != table.status(outcome) {
        problems.push(format!("{} instead of {outcome}: {:?}", response.status, response.text()));
    } else if outcome != "taken" {
        response.error();
        let id = response.header("x-request-id").unwrap_or_default();
        if id.is_empty() || response.header("content-type").as_deref() != Some("application/json") {
            problems.push(format!("its headers are {:?}", response.headers));
        }
    }
    if outcome == "malformed_request" && !client.rest().is_empty() {
        problems.push("more responses follow".to_owned());
    }
    let next = front.get("/odd/get", "Connection: close\r\n");
    if next.status != 200 {
        problems.push(format!("the next request gets {}", next.status));
    }
    if problems.is_empty() { None } else { Some(format!("{}: {}", row["input"], problems.join(", "))) }
}

#[test]
fn the_front_takes_or_refuses_each_way_to_give_the_length_of_a_body_as_the_table_says() {
    send_rows_of("Length of the body");
}

#[test]
fn the_front_takes_or_refuses_odd_chunks_as_the_table_says() {
    send_rows_of("Chunks");
}

#[test]
fn the_front_takes_or_refuses_odd_lines_and_headers_as_the_table_says() {
    send_rows_of("Lines and headers");
}

#[test]
fn the_front_takes_or_refuses_odd_hosts_and_targets_as_the_table_says() {
    send_rows_of("Host and target");
}

#[test]
fn the_front_takes_or_refuses_other_versions_and_protocols_as_the_table_says() {
    send_rows_of("Versions and other protocols");
}

#[test]
fn the_front_takes_resets_or_refuses_odd_requests_of_http2_as_the_table_says() {
    let (front, table) = (front(), Table::read());
    let rows = table.rows().filter(|row| row.get("http2").is_some()).chain(table.only_http2());
    let failures: Vec<String> = rows.filter_map(|row| http2_failure_of(&front, &table, row)).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// What is not as the table says.
fn http2_failure_of(front: &Front, table: &Table, row: &Value) -> Option<String> {
    let request = &row["http2"];
    let body = request["body"].as_str().map(str::as_bytes);
    let trailers = request.get("trailers").map(|fields| table.fields(fields));
    let mut client = front.connect_http2();
    let stream = client.request(&table.fields(&request["fields"]), body, trailers.as_deref());
    let end = client.end_of(stream);
    let problem = format!("{}: {end:?} instead of {}", row["input"], request["outcome"]);

    let is_reset = end.reset == Some(code::PROTOCOL) && end.go_away.is_none();
    let has_status = |status: u16| end.status == Some(status) && end.go_away.is_none();
    let is_refused = |status: u16| {
        let error: Value = serde_json::from_slice(&end.body).unwrap_or_default();
        has_status(status) && error.as_object().is_some_and(|members| members.keys().eq(["error"]))
    };
    let is_as_said = match &request["outcome"] {
        Value::Number(status) => is_refused(status.as_u64().unwrap() as u16),
        Value::String(outcome) => match outcome.as_str() {
            "taken" => has_status(200),
            "reset" => is_reset,
            "closed" => end.status.is_none() && end.go_away.is_some_and(|code| code != code::NONE),
            "400, or reset" => is_reset || is_refused(400),
            other => panic!("{other}"),
        },
        other => panic!("{other}"),
    };
    if !is_as_said {
        return Some(problem);
    }
    // Other streams of the connection go on; where it is closed, others are served.
    let good = table.fields(&table.row("a body with GET")["http2"]["fields"]);
    let mut next = if request["outcome"] == "closed" {
        client.closed();
        front.connect_http2()
    } else {
        client
    };
    let stream = next.request(&good, None, None);
    let end = next.end_of(stream);
    if end.status == Some(200) { None } else { Some(format!("{problem}; the next request: {end:?}")) }
}
