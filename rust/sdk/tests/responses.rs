//! The response helpers, row by row of the contract's table, and errors as responses.

use rust_edge_gateway_sdk::prelude::*;
use rust_edge_gateway_sdk::wire::frame::{decode, DecodeResult, Kind, MAX_STREAM_HEAD_BYTES};
use rust_edge_gateway_sdk::wire::head;
use std::collections::BTreeMap;

/// A response as the gateway receives it.
fn sent(response: Response) -> (u16, BTreeMap<String, String>, Vec<u8>) {
    let mut bytes = Vec::new();
    let body = head::response(&mut bytes, 1, response);
    bytes.extend(body);
    let Ok(DecodeResult::Frame(frame, _)) = decode(&bytes) else { panic!("not a frame") };
    let head: JsonValue = serde_json::from_slice(frame.head).unwrap();
    let list = head["headers"].as_array().unwrap();
    let text = |value: &JsonValue| value.as_str().unwrap().to_owned();
    let headers = list.chunks(2).map(|pair| (text(&pair[0]), text(&pair[1]))).collect();
    (head["status"].as_u64().unwrap() as u16, headers, frame.body.to_vec())
}

fn assert_sent(response: Response, status: u16, headers: &[(&str, &str)], body: &[u8]) {
    let headers = headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    assert_eq!(sent(response), (status, headers, body.to_vec()));
}

const JSON: &[(&str, &str)] = &[("content-type", "application/json")];

#[test]
fn constructors_set_the_status_the_content_type_and_the_body() {
    assert_sent(Response::new(418), 418, &[], b"");
    assert_sent(Response::ok(json!({"a": 1})), 200, JSON, b"{\"a\":1}");
    assert_sent(Response::created(json!([1])), 201, JSON, b"[1]");
    assert_sent(Response::accepted("text"), 202, JSON, b"\"text\"");
    assert_sent(Response::no_content(), 204, &[], b"");
    assert_sent(Response::json(207, json!(null)), 207, JSON, b"null");
    assert_sent(Response::text(200, "hé"), 200, &[("content-type", "text/plain; charset=utf-8")], "hé".as_bytes());
    assert_sent(Response::html(404, "<p>"), 404, &[("content-type", "text/html; charset=utf-8")], b"<p>");
    assert_sent(Response::redirect(302, "/new"), 302, &[("location", "/new")], b"");
}

#[test]
fn binary_bodies_arrive_byte_for_byte() {
    let every_byte: Vec<u8> = (0..=255).collect();
    let png = &[("content-type", "image/png")];
    assert_sent(Response::binary(200, &every_byte, "image/png"), 200, png, &every_byte);
    assert_sent(Response::binary(200, b"plain text", "image/png"), 200, png, b"plain text");
    assert_sent(Response::binary(200, [], "image/png"), 200, png, b"");
    // Replacing the body replaces it, whatever it was.
    assert_sent(Response::binary(200, &every_byte, "image/png").with_body("AAAA"), 200, png, b"AAAA");
    // The form that 0.1 used on the wire, made by hand.
    let by_hand = Response::new(200).with_header("x-binary-response", "base64").with_body("/wA=");
    assert_sent(by_hand, 200, &[], &[0xff, 0]);
    let (status, _, body) =
        sent(Response::new(200).with_header("X-Binary-Response", "base64").with_body("not base64!"));
    assert_eq!(status, 500);
    assert!(String::from_utf8(body).unwrap().contains("is not base64"));
}

#[test]
fn errors_are_json() {
    assert_sent(Response::bad_request("why \"so\""), 400, JSON, b"{\"error\":\"why \\\"so\\\"\"}");
    assert_sent(Response::unauthorized("why"), 401, JSON, b"{\"error\":\"why\"}");
    assert_sent(Response::forbidden("why"), 403, JSON, b"{\"error\":\"why\"}");
    assert_sent(Response::not_found(), 404, JSON, b"{\"error\":\"Not Found\"}");
    assert_sent(Response::not_found_msg("why"), 404, JSON, b"{\"error\":\"why\"}");
    assert_sent(Response::conflict("why"), 409, JSON, b"{\"error\":\"why\"}");
    assert_sent(Response::internal_error("why"), 500, JSON, b"{\"error\":\"why\"}");
    assert_sent(Response::service_unavailable("why"), 503, JSON, b"{\"error\":\"why\"}");
}

#[test]
fn builders_replace_what_was_set_before_and_add_headers_for_caches_and_cors() {
    let chained = Response::new(200).with_header("X-A", "1").with_header("x-a", "2").with_body("one").with_body("two");
    assert_sent(chained, 200, &[("x-a", "2")], b"two");
    let retyped = Response::text(200, "a,b").with_header("content-type", "text/csv");
    assert_sent(retyped, 200, &[("content-type", "text/csv")], b"a,b");
    assert_sent(Response::new(200).with_cache(3600), 200, &[("cache-control", "max-age=3600")], b"");
    let never = "no-store, no-cache, must-revalidate";
    assert_sent(Response::new(200).with_cache(0), 200, &[("cache-control", never)], b"");
    let cors = [
        ("access-control-allow-headers", "Content-Type, Authorization"),
        ("access-control-allow-methods", "GET, POST, PUT, PATCH, DELETE, OPTIONS"),
    ];
    let any = [&cors[..], &[("access-control-allow-origin", "*")]].concat();
    assert_sent(Response::new(200).with_cors("*"), 200, &any, b"");
    let one = [&cors[..], &[("access-control-allow-origin", "https://a.b"), ("vary", "Accept, Origin")]].concat();
    assert_sent(Response::new(200).with_header("Vary", "Accept").with_cors("https://a.b"), 200, &one, b"");
}

#[test]
fn fields_of_a_response_can_be_read_and_changed() {
    let mut response = Response::ok(json!({}));
    assert_eq!((response.status, response.body.as_deref()), (200, Some("{}")));
    assert_eq!(response.headers["Content-Type"], "application/json");
    response.status = 201;
    assert_eq!(response.clone().status, 201);
    assert_eq!(Response::default().status, 200);
}

#[test]
fn a_content_type_put_into_the_map_overrules_that_of_the_constructor() {
    let mut response = Response::ok(json!({}));
    response.headers.insert("content-type".into(), "application/problem+json".into());
    assert_sent(response, 200, &[("content-type", "application/problem+json")], b"{}");
}

#[test]
fn what_cannot_be_json_is_a_500_that_says_why() {
    let keys = std::collections::HashMap::from([(vec![1], 1)]);
    let (status, _, body) = sent(Response::ok(keys));
    assert_eq!(status, 500);
    assert!(String::from_utf8(body).unwrap().contains("key must be a string"));
}

#[test]
fn several_headers_of_one_name_are_all_sent_unless_one_replaces_them() {
    let cookies = Response::new(200).with_header("set-cookie", "a=1").append_header("Set-Cookie", "b=2; Path=/");
    assert_sent(cookies, 200, &[("set-cookie", "a=1"), ("set-cookie", "b=2; Path=/")], b"");
    let headers = std::collections::HashMap::from([("Link".to_owned(), "<a>\n<b>\n<c>".to_owned())]);
    let by_hand = Response { status: 204, headers, body: None };
    assert_sent(by_hand, 204, &[("link", "<a>"), ("link", "<b>"), ("link", "<c>")], b"");
    let replaced = Response::new(200).append_header("X-A", "1").append_header("x-a", "").with_header("X-A", "3");
    assert_sent(replaced, 200, &[("x-a", "3")], b"");
}

#[test]
fn headers_that_break_http_are_refused() {
    for (name, value) in
        [("X-A", "a\nb"), ("X-A", "a\0"), ("X-A", "\r"), ("", "v"), ("X A", "v"), ("X:A", "v"), ("Ä", "v")]
    {
        let (status, _, body) = sent(Response::new(200).with_header(name, value));
        assert_eq!(status, 500, "{name:?}");
        assert!(String::from_utf8(body).unwrap().contains("header"), "{name:?}");
        let (status, _, body) = sent(Response::new(200).append_header("X-A", "1").append_header(name, value));
        assert_eq!(status, 500, "{name:?}");
        assert!(String::from_utf8(body).unwrap().contains("header"), "{name:?}");
    }
    for value in ["a\r\nb", "a\n\0", "\r"] {
        let headers = std::collections::HashMap::from([("x-a".to_owned(), value.to_owned())]);
        assert_eq!(sent(Response { status: 200, headers, body: None }).0, 500, "{value:?}");
    }
    assert_eq!(sent(Response::new(200).with_header("X-A", "tab\tand é")).0, 200);
    let (status, _, body) = sent(Response::new(200).with_header("X-Large", "x".repeat(1 << 20)));
    assert_eq!(status, 500);
    assert!(String::from_utf8(body).unwrap().contains("its headers take"));
}

#[test]
fn each_handler_error_has_its_status_and_its_text_as_json() {
    use HandlerError::*;
    let json_error = serde_json::from_str::<u8>("x").unwrap_err();
    for (error, status, text) in [
        (BadRequest("a".into()), 400, "Bad request: a"),
        (ValidationError("a".into()), 400, "Validation error: a"),
        (Unauthorized("a".into()), 401, "Unauthorized: a"),
        (Forbidden("a".into()), 403, "Forbidden: a"),
        (NotFound, 404, "Not found"),
        (NotFoundMessage("a".into()), 404, "Not found: a"),
        (MethodNotAllowed("a".into()), 405, "Method not allowed: a"),
        (Conflict("a".into()), 409, "Conflict: a"),
        (PayloadTooLarge("a".into()), 413, "Payload too large: a"),
        (IpcError("a".into()), 500, "IPC error: a"),
        (json_error.into(), 500, "Serialization error: expected value at line 1 column 1"),
        (InternalError("a".into()), 500, "Internal error: a"),
        (Internal("a".into()), 500, "Internal error: a"),
        (ServiceUnavailable("a".into()), 503, "Service unavailable: a"),
    ] {
        assert_eq!((error.status_code(), error.to_string().as_str()), (status, text));
        assert_sent(error.to_response(), status, JSON, json!({"error": text}).to_string().as_bytes());
        assert_eq!(Response::from(error).status, status);
    }
}

/// What a backend says is for the log; the client learns the kind only.
#[test]
fn errors_of_services_tell_clients_no_more_than_their_kind() {
    use HandlerError::*;
    let text = "the pool \"db\": table users has no column secret";
    for (error, status, whole, shown) in [
        (DatabaseError(text.into()), 500, "Database error", "Database error"),
        (RedisError(text.into()), 500, "Redis error", "Redis error"),
        (StorageError(text.into()), 500, "Storage error", "Storage error"),
        (CacheError(text.into()), 500, "Cache error", "Cache error"),
        (EmailError(text.into()), 500, "Email error", "Email error"),
        (HttpError(text.into()), 502, "HTTP error", "Bad gateway"),
        (PoolNotBound(text.into()), 500, "Service not bound", "Service not bound"),
        (ServiceInactive(text.into()), 503, "Service inactive", "Service unavailable"),
        (BackendUnavailable(text.into()), 503, "Backend unavailable", "Service unavailable"),
        (ServiceBusy(text.into()), 503, "Service busy", "Service unavailable"),
        (DeadlineExceeded(text.into()), 504, "Deadline exceeded", "Gateway timeout"),
    ] {
        assert_eq!(error.status_code(), status);
        assert_eq!(error.to_string(), format!("{whole}: {text}"));
        assert_sent(error.to_response(), status, JSON, json!({"error": shown}).to_string().as_bytes());
        assert_sent(error.into(), status, JSON, json!({"error": shown}).to_string().as_bytes());
    }
}

#[test]
fn the_head_of_a_stream_is_within_its_limit_or_replaced() {
    let sent = |length: usize| {
        let mut bytes = Vec::new();
        let is_stream = head::stream(&mut bytes, 1, &Response::ok(()).with_header("X", "x".repeat(length)));
        let Ok(DecodeResult::Frame(frame, _)) = decode(&bytes) else { panic!("{length}: {:?}", decode(&bytes)) };
        assert_eq!(frame.kind == Kind::Stream, is_stream);
        (is_stream, frame.head.len())
    };
    let lengths = MAX_STREAM_HEAD_BYTES - 200..MAX_STREAM_HEAD_BYTES + 10;
    let longest = lengths.map(sent).filter(|(is_stream, _)| *is_stream).map(|(_, head)| head).max();
    assert_eq!(longest, Some(MAX_STREAM_HEAD_BYTES));
}
