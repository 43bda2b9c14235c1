//! Compressed answers.
use std::io::Read;

use serde_json::json;

use super::Fixture;
use crate::support::{Response, get};

fn front() -> Fixture {
    let fixture = Fixture::start();
    fixture.set(json!({ "compress": { "min_bytes": 1000 } }));
    fixture
}

/// An answer of about so many bytes, for a client that takes these encodings.
fn answer(fixture: &Fixture, length: usize, accepted: &str, lines: &str) -> Response {
    fixture.front.get("/echo", &format!("X-Length: {length}\r\nAccept-Encoding: {accepted}\r\n{lines}"))
}

fn encoding(response: &Response) -> Option<String> {
    response.header("content-encoding")
}

fn unpacked(encoding: &str, body: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    match encoding {
        "gzip" => flate2::read::GzDecoder::new(body).read_to_end(&mut text).unwrap(),
        "br" => brotli::Decompressor::new(body, 4096).read_to_end(&mut text).unwrap(),
        "zstd" => zstd::Decoder::new(body).unwrap().read_to_end(&mut text).unwrap(),
        other => panic!("{other}"),
    };
    text
}

#[test]
fn a_client_gets_the_encoding_that_it_likes_best() {
    let fixture = front();
    let plain = fixture.front.get("/echo", "X-Length: 100000\r\n");
    assert_eq!((encoding(&plain), plain.header("vary").as_deref()), (None, Some("Accept-Encoding")));
    for (accepted, expected) in [
        ("gzip", "gzip"),
        ("br", "br"),
        ("zstd", "zstd"),
        ("gzip, deflate, br, zstd", "br"),
        ("gzip, br;q=0.5", "gzip"),
        ("*", "br"),
        ("*, br;q=0", "zstd"),
    ] {
        let packed = answer(&fixture, 100_000, accepted, "");
        assert_eq!(encoding(&packed).as_deref(), Some(expected), "{accepted}");
        assert!(packed.body.len() < plain.body.len() / 10);
        let echoed: serde_json::Value = serde_json::from_slice(&unpacked(expected, &packed.body)).unwrap();
        assert_eq!(echoed["filler"], plain.json()["filler"]);
    }
    for accepted in ["identity", "deflate", "gzip;q=0", "br;q=0, gzip;q=0, zstd;q=0, *", ""] {
        assert_eq!(encoding(&answer(&fixture, 100_000, accepted, "")), None, "{accepted}");
    }
}

#[test]
fn a_client_gets_long_answers_whole() {
    let fixture = front();
    for encoding in ["gzip", "br"] {
        let packed = answer(&fixture, 8_000_000, encoding, "");
        assert!(unpacked(encoding, &packed.body).len() > 8_000_000);
    }
}

#[test]
fn an_answer_that_is_short_or_compressed_or_must_not_be_changed_is_left_alone() {
    let fixture = front();
    let of = |length: usize, line: &str| encoding(&answer(&fixture, length, "gzip", line));
    assert_eq!(of(1, ""), None);
    assert_eq!(of(5_000, "X-Answer: Content-Encoding: x-own\r\n").as_deref(), Some("x-own"));
    for header in [
        "Content-Type: image/png",
        "Content-Type: application/zip",
        "Cache-Control: no-transform",
        "Content-Digest: sha-256=:x:",
        "Content-Range: bytes 0-4999/*",
    ] {
        assert_eq!(of(5_000, &format!("X-Answer: {header}\r\n")), None, "{header}");
    }
}

#[test]
fn a_compressed_answer_has_a_weak_tag_and_the_same_headers_for_head() {
    let fixture = front();
    let lines = "X-Answer: ETag: \"a\"\r\n";
    assert_eq!(answer(&fixture, 5_000, "gzip", lines).header("etag").as_deref(), Some("W/\"a\""));
    let head = format!("HEAD /echo HTTP/1.1\r\nHost: localhost\r\nX-Length: 5000\r\nAccept-Encoding: gzip\r\n{lines}");
    let mut client = fixture.front.connect();
    let response = client.send(format!("{head}Connection: close\r\n\r\n")).response_to_head();
    assert_eq!((encoding(&response).as_deref(), response.header("etag").as_deref()), (Some("gzip"), Some("W/\"a\"")));
    assert_eq!(client.closed(), "");
}

#[test]
fn an_answer_is_compressed_by_the_algorithms_of_the_policy_only() {
    let fixture = front();
    fixture.set(json!({ "compress": { "algorithms": ["gzip"] } }));
    let accepted = "br, zstd, gzip;q=0.1";
    assert_eq!(encoding(&answer(&fixture, 5_000, accepted, "")).as_deref(), Some("gzip"));
    fixture.front.serve(&fixture.handler, [get("/echo")]);
    assert_eq!(encoding(&answer(&fixture, 5_000, accepted, "")), None);
}
