//! The JSON heads: a request's becomes a [`Request`], a [`Response`] becomes its own.

use super::frame::{self, Frame, Kind, HEADER_BYTES, MAX_BODY_BYTES, MAX_HEAD_BYTES, MAX_STREAM_HEAD_BYTES};
use crate::request::Request;
use crate::request::{header_separator, Caller, Received};
use crate::response::Response;
use crate::runtime::records;
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::collections::{hash_map::Entry, HashMap};
use std::fmt;

/// The head of a request frame. Fields that are not listed are ignored, so that the gateway may add some.
#[derive(Deserialize)]
struct RequestHead<'a> {
    method: String,
    /// The request target as received: a path, and a query after the first `?`.
    #[serde(borrow)]
    target: Cow<'a, str>,
    #[serde(default)]
    headers: Headers,
    /// Values of the route's `{name}` segments, already percent-decoded.
    #[serde(default)]
    params: HashMap<String, String>,
    #[serde(default)]
    client_ip: Option<String>,
    #[serde(default)]
    request_id: String,
    /// Only of requests that are sent again when they fail.
    #[serde(default)]
    attempt: Option<u32>,
    /// Whether calls of services are part of a trace that is recorded.
    #[serde(default)]
    spans: bool,
    /// Who sends it, where a policy of the gateway has found that out.
    #[serde(default)]
    auth: Option<Caller>,
}

/// Reads the frame of a request, also of one whose body follows.
///
/// # Errors
/// A sentence for the log. The gateway sent something this version does not understand: close the connection.
pub fn request(frame: &Frame<'_>) -> Result<Request, String> {
    if !matches!(frame.kind, Kind::Request | Kind::Open) {
        return Err("a frame that only handlers send".into());
    }
    let head: RequestHead = serde_json::from_slice(frame.head)
        .map_err(|error| format!("the head of request frame {} is not readable: {error}", frame.number))?;
    let (path, query) = head.target.split_once('?').unwrap_or((&head.target, ""));
    let mut request = Request {
        method: head.method,
        path: path.to_owned(),
        query: form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
        headers: head.headers.by_name,
        body: None,
        params: head.params,
        client_ip: head.client_ip,
        request_id: head.request_id,
        received: Received {
            attempt: head.attempt,
            spans: head.spans,
            caller: head.auth,
            binary_body: Vec::new(),
            raw_query: query.to_owned(),
            repeated_headers: head.headers.repeated,
        },
    };
    request.set_body_bytes(frame.body);
    Ok(request)
}

/// Header names and values in one flat list, as received, made maps with lower-case names.
#[derive(Default)]
struct Headers {
    by_name: HashMap<String, String>,
    /// The values of those that came several times.
    repeated: HashMap<String, Vec<String>>,
}

impl<'de> Deserialize<'de> for Headers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(HeadersVisitor)
    }
}

struct HeadersVisitor;

impl<'de> Visitor<'de> for HeadersVisitor {
    type Value = Headers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of header names and values in turn")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Headers, A::Error> {
        let mut headers = Headers::default();
        while let Some(mut name) = list.next_element::<String>()? {
            let Some(value) = list.next_element::<String>()? else {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                return Err(serde::de::Error::custom(format!("header {name:?} has no value")));
            };
            name.make_ascii_lowercase();
            match headers.by_name.entry(name) {
                Entry::Vacant(entry) => {
                    entry.insert(value);
                }
                Entry::Occupied(mut entry) => {
                    let name = entry.key().clone();
                    let separator = header_separator(&name);
                    let joined = entry.get_mut();
                    let values = headers.repeated.entry(name).or_insert_with(|| vec![joined.clone()]);
                    joined.push_str(separator);
                    joined.push_str(&value);
                    values.push(value);
                }
            }
        }
        Ok(headers)
    }
}

/// Appends the frame of `response` to `out`, its body excepted, and returns the body, which follows it on the wire.
///
/// A response that cannot be sent (too large, or headers that would break HTTP) is replaced by a 500 that says why,
/// with a line in the log: the client gets an answer, and the author gets the reason.
pub fn response(out: &mut Vec<u8>, number: u32, response: Response) -> Vec<u8> {
    let frame_at = out.len();
    match try_response(out, number, response) {
        Ok(body) => body,
        Err(reason) => {
            out.truncate(frame_at);
            refused(out, number, &reason)
        }
    }
}

/// The status that accepts a WebSocket.
pub const SWITCHING: u16 = 101;

/// Appends the frame that accepts a WebSocket, with the headers of `head`. One that cannot be sent is replaced by a
/// whole 500; false then.
pub fn socket(out: &mut Vec<u8>, number: u32, head: &Response) -> bool {
    let frame_at = out.len();
    let written = match head.status {
        SWITCHING => write_head(out, head, END, MAX_STREAM_HEAD_BYTES),
        status => Err(format!("a WebSocket is accepted with the status {SWITCHING}, not {status}")),
    };
    finish_stream_head(out, frame_at, number, written)
}

/// Appends the frame that begins a stream, with `head` but for its body. One that cannot be sent is replaced by a whole
/// 500, as with [`response`]; false then: no stream may follow.
pub fn stream(out: &mut Vec<u8>, number: u32, head: &Response) -> bool {
    let frame_at = out.len();
    let written =
        check_status(head.status).and_then(|()| write_head(out, head, END_WITH_MEMORY, MAX_STREAM_HEAD_BYTES));
    finish_stream_head(out, frame_at, number, written)
}

/// Completes the frame that begins a stream, or replaces it by a 500.
fn finish_stream_head(out: &mut Vec<u8>, frame_at: usize, number: u32, written: Result<usize, String>) -> bool {
    match written {
        Ok(head_len) => {
            let header = frame::header(Kind::Stream, number, head_len, 0);
            out[frame_at..frame_at + HEADER_BYTES].copy_from_slice(&header);
            true
        }
        Err(reason) => {
            out.truncate(frame_at);
            let body = refused(out, number, &reason);
            out.extend_from_slice(&body);
            false
        }
    }
}

/// Appends the frame of the 500 that replaces a response, its body excepted.
fn refused(out: &mut Vec<u8>, number: u32, reason: &str) -> Vec<u8> {
    records::error(&format!("a response was replaced by a 500: {reason}"), serde_json::Map::new());
    let fallback = Response::internal_error(format!("The handler's response cannot be sent: {reason}"));
    try_response(out, number, fallback).expect("a short error with one plain header fits")
}

fn try_response(out: &mut Vec<u8>, number: u32, response: Response) -> Result<Vec<u8>, String> {
    let frame_at = out.len();
    check_status(response.status)?;
    let head_len = write_head(out, &response, END, MAX_HEAD_BYTES)?;
    let body = response.into_body_bytes()?;
    if body.len() > MAX_BODY_BYTES {
        return Err(format!("its body has {} bytes, the limit is {MAX_BODY_BYTES}", body.len()));
    }
    let header = frame::header(Kind::Response, number, head_len, body.len());
    out[frame_at..frame_at + HEADER_BYTES].copy_from_slice(&header);
    Ok(body)
}

fn check_status(status: u16) -> Result<(), String> {
    match (200..=999).contains(&status) {
        true => Ok(()),
        false => Err(format!("status {status} is not between 200 and 999")),
    }
}

/// The end of a head, behind its last header.
const END: &[u8] = b"]}";
/// That of a stream that can be given memory.
const END_WITH_MEMORY: &[u8] = b"],\"memory\":true}";

/// Appends room for a header, and the head. Returns its length in bytes.
fn write_head(out: &mut Vec<u8>, response: &Response, end: &[u8], limit: usize) -> Result<usize, String> {
    let frame_at = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    out.extend_from_slice(b"{\"status\":");
    out.extend_from_slice(response.status.to_string().as_bytes());
    out.extend_from_slice(b",\"headers\":[");
    let mut first = true;
    for (name, value) in &response.headers {
        if response.is_internal(name, value) {
            continue;
        }
        // Several headers of one name are one value in the map, joined by line feeds.
        for value in value.split('\n') {
            check_header(name, value)?;
            out.extend_from_slice(if first { b"\"" } else { b",\"" });
            first = false;
            // A valid name is a token: nothing in it needs escaping.
            out.extend(name.bytes().map(|b| b.to_ascii_lowercase()));
            out.extend_from_slice(b"\",");
            serde_json::to_writer(&mut *out, value).map_err(|error| error.to_string())?;
        }
    }
    out.extend_from_slice(end);
    let head_len = out.len() - frame_at - HEADER_BYTES;
    if head_len > limit {
        return Err(format!("its headers take {head_len} bytes, the limit is {limit}"));
    }
    Ok(head_len)
}

/// RFC 9110 5.1 and 5.5: a name is a token; a value holds no control character but the tab.
fn check_header(name: &str, value: &str) -> Result<(), String> {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(format!("{name:?} is not a valid header name"));
    }
    if value.bytes().any(|b| (b < 0x20 && b != b'\t') || b == 0x7f) {
        return Err(format!("the value of header {name:?} holds a line break or another control character"));
    }
    Ok(())
}
