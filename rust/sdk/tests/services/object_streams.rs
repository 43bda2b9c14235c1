//! Objects that are stored in parts, and read range by range.

use crate::server::{calls, failure, ok, on, operations, Answer, Call};
use rust_edge_gateway_sdk::prelude::*;
use std::io::{Error, ErrorKind, Read};
use std::sync::Mutex;

const PART: usize = 8 << 20;

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|n| (n / 1000) as u8).collect()
}

/// Answers the calls of an upload, but for this one.
fn stores(refused: &'static str) -> impl Fn(&Call) -> Answer {
    move |call| match call.head["op"].as_str().unwrap() {
        refuse if refuse == refused => failure("backend", "no room"),
        "begin_upload" => ok(json!({"upload_id": "u"}), b""),
        "upload_part" => ok(json!({"etag": format!("e{}", call.head["args"]["number"])}), b""),
        "complete_upload" => ok(json!({"etag": "all"}), b""),
        "abort_upload" => ok(json!({"aborted": true}), b""),
        _ => ok(json!({"etag": "e", "size": call.payload.len()}), b""),
    }
}

#[test]
fn what_fits_into_a_part_is_stored_at_once() {
    on("short-upload", stores(""));
    let store = ObjectStore::new("short-upload");
    for bytes in [0, 5, PART - 1] {
        assert_eq!(store.upload("k", "text/x", &content(bytes)[..]).unwrap().size, bytes as u64);
    }
    assert_eq!(operations("short-upload"), ["put", "put", "put"]);
}

#[test]
fn the_rest_is_stored_in_parts() {
    on("upload", stores(""));
    let sent = content(2 * PART + 7);
    let stored = ObjectStore::new("upload").upload("k", "text/x", &sent[..]).unwrap();
    assert_eq!((stored.size, stored.etag.as_deref()), (sent.len() as u64, Some("all")));
    let calls = calls("upload");
    assert_eq!(calls[0].head["args"], json!({"key": "k", "content_type": "text/x"}));
    let parts: Vec<_> = calls[1..4].iter().map(|call| call.payload.len()).collect();
    assert_eq!(parts, [PART, PART, 7]);
    assert_eq!(calls[1..4].iter().flat_map(|call| call.payload.clone()).collect::<Vec<_>>(), sent);
    assert_eq!(calls[2].head["args"], json!({"key": "k", "upload_id": "u", "number": 2}));
    assert_eq!(calls[4].head["args"], json!({"key": "k", "upload_id": "u", "etags": ["e1", "e2", "e3"]}));
    assert_eq!(calls.len(), 5);
}

#[test]
fn an_upload_that_fails_is_aborted() {
    for refused in ["upload_part", "complete_upload"] {
        on(refused, stores(refused));
        let error = ObjectStore::new(refused).upload("k", "text/x", &content(PART)[..]).unwrap_err();
        assert!(matches!(&error, HandlerError::StorageError(text) if text.contains("no room")), "{error}");
        assert_eq!(operations(refused).last().unwrap(), "abort_upload");
    }
    on("left", stores(""));
    let left = std::io::repeat(1).take(PART as u64 + 1).chain(Failing);
    let error = ObjectStore::new("left").upload("k", "text/x", left).unwrap_err();
    assert!(matches!(&error, HandlerError::BadRequest(text) if text == "the client has left"), "{error}");
    assert_eq!(operations("left"), ["begin_upload", "upload_part", "abort_upload"]);
}

struct Failing;

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Err(Error::new(ErrorKind::ConnectionAborted, "the client has left"))
    }
}

#[test]
fn an_object_is_read_range_by_range_as_long_as_it_is_the_same() {
    let stored = content(PART + 9);
    let size = stored.len();
    let left = Mutex::new(3);
    on("download", move |call| match call.head["op"].as_str().unwrap() {
        "head" if call.head["args"]["key"] == "missing" => ok(json!({"found": false}), b""),
        "head" => ok(json!({"found": true, "size": size, "etag": "e"}), b""),
        _ => {
            let number = |name: &str| call.head["args"][name].as_u64().unwrap() as usize;
            assert_eq!(call.head["args"]["etag"], "e");
            let mut left = left.lock().unwrap();
            if *left == 0 {
                return failure("backend", "it was replaced");
            }
            *left -= 1;
            ok(JsonValue::Null, &stored[number("start")..=number("end")])
        }
    });
    let store = ObjectStore::new("download");
    assert!(store.download("missing").unwrap().is_none());
    let mut object = store.download("k").unwrap().unwrap();
    assert_eq!(object.info().size, size as u64);
    let mut read = Vec::new();
    object.read_to_end(&mut read).unwrap();
    assert!(read == content(size));
    let error = std::io::copy(&mut store.download("k").unwrap().unwrap(), &mut std::io::sink()).unwrap_err();
    assert!(matches!(HandlerError::from(error), HandlerError::StorageError(text) if text.contains("replaced")));
}
