//! The helpers of `Request`.

use rust_edge_gateway_sdk::prelude::*;
use rust_edge_gateway_sdk::wire::frame::{Frame, Kind};
use rust_edge_gateway_sdk::wire::head;

fn request(head: JsonValue, body: &[u8]) -> Request {
    let head = head.to_string();
    let frame = Frame { kind: Kind::Request, number: 1, head: head.as_bytes(), body };
    head::request(&frame).unwrap()
}

fn get(target: &str) -> Request {
    request(json!({"method": "GET", "target": target}), b"")
}

fn posted(content_type: &str, body: &[u8]) -> Request {
    let headers = ["Content-Type", content_type];
    request(json!({"method": "POST", "target": "/", "headers": headers}), body)
}

fn message(error: HandlerError) -> String {
    assert_eq!(error.status_code(), 400);
    error.to_string()
}

#[test]
fn the_target_is_taken_apart() {
    let req = get("/a%20b/c?x=1&x=2&q=a+b%26c&flag");
    assert_eq!(req.path, "/a%20b/c");
    assert_eq!(req.query_param("x").map(String::as_str), Some("2"));
    assert_eq!(req.query["q"], "a b&c");
    assert_eq!(req.query["flag"], "");
    assert_eq!(get("/?").query.len(), 0);
    assert_eq!(get("/a?b?c=1").query["b?c"], "1");
}

#[test]
fn a_query_is_decoded_as_browsers_encode_forms() {
    let value = |query: &str, name: &str| get(&format!("/?{query}")).query.remove(name);
    for (query, name, expected) in [
        ("x=1&y=a%20b", "y", "a b"),
        ("a+b=c+d", "a b", "c d"),
        ("%C3%A9=%F0%9F%A6%80", "é", "🦀"),
        ("é=ü", "é", "ü"),
        ("a=b=c", "a", "b=c"),
        ("&&x=1&x=2&", "x", "2"),
        ("flag", "flag", ""),
        ("=v", "", "v"),
        ("x=%00y", "x", "\0y"),
        // What cannot be decoded is kept or replaced: it is no reason to refuse a request.
        ("x=100%", "x", "100%"),
        ("x=%zz%4", "x", "%zz%4"),
        ("x=%FF", "x", "\u{FFFD}"),
        ("x=%C3%28", "x", "\u{FFFD}("),
    ] {
        assert_eq!(value(query, name).as_deref(), Some(expected), "{query}");
    }
    assert_eq!(get("/?&&").query.len(), 0);
}

#[test]
fn parameters_are_parsed_on_demand() {
    let mut req = get("/?page=2&bad=two");
    req.params.insert("id".into(), "17".into());
    assert_eq!(req.query_param_as::<u32>("page"), Some(2));
    assert_eq!(req.query_param_as::<u32>("bad"), None);
    assert_eq!(req.query_param_as::<u32>("none"), None);
    assert_eq!(req.require_query_param::<u8>("page").unwrap(), 2);
    assert_eq!(req.path_param("id").unwrap(), "17");
    assert_eq!(req.path_param_as::<i64>("id"), Some(17));
    assert_eq!(req.require_path_param::<i64>("id").unwrap(), 17);
    assert_eq!(
        message(req.require_query_param::<u8>("none").unwrap_err()),
        "Bad request: Missing required query parameter: none"
    );
    assert_eq!(
        message(req.require_query_param::<u8>("bad").unwrap_err()),
        "Bad request: Invalid value for query parameter bad: \"two\""
    );
    assert_eq!(
        message(req.require_path_param::<u8>("none").unwrap_err()),
        "Bad request: Missing required path parameter: none"
    );
}

#[test]
fn headers_are_found_in_any_case() {
    let req = posted("text/plain", b"");
    assert_eq!(req.header("CONTENT-TYPE").unwrap(), "text/plain");
    assert_eq!(req.require_header("content-type").unwrap(), "text/plain");
    assert_eq!(message(req.require_header("X-Key").unwrap_err()), "Bad request: Missing required header: X-Key");
    let mut by_hand = Request::default();
    by_hand.headers.insert("X-Key".into(), "1".into());
    assert_eq!(by_hand.header("x-key").unwrap(), "1");
}

#[test]
fn kinds_of_content() {
    assert!(posted("application/json; charset=utf-8", b"").is_json());
    assert!(posted("application/problem+json", b"").is_json());
    assert!(!posted("text/plain", b"").is_json());
    assert!(posted("Multipart/Form-Data; boundary=x", b"").is_multipart());
    assert!(!get("/").is_multipart());
    assert!(get("/").is_method("get") && !get("/").is_method("POST"));
}

#[test]
fn a_body_is_text_only_if_it_is_text() {
    assert_eq!(posted("text/plain", "grüß".as_bytes()).body.as_deref(), Some("grüß"));
    let binary = posted("application/octet-stream", &[0xff, 0, 1]);
    assert_eq!((binary.body.clone(), binary.body_bytes()), (None, vec![0xff, 0, 1]));
    let empty = posted("text/plain", b"");
    assert_eq!((empty.body.clone(), empty.body_bytes()), (None, vec![]));
}

#[test]
fn json_errors_say_what_is_wrong_and_where() {
    #[derive(Deserialize, Debug)]
    #[allow(dead_code)]
    struct Order {
        items: Vec<Item>,
        note: Option<String>,
    }
    #[derive(Deserialize, Debug)]
    #[allow(dead_code)]
    struct Item {
        price: f64,
    }
    let error = |body: &str| message(posted("application/json", body.as_bytes()).json::<Order>().unwrap_err());
    assert_eq!(error(""), "Bad request: Invalid JSON: the request has no body");
    assert_eq!(error("{\"items\": [}"), "Bad request: Invalid JSON: expected value at line 1 column 12");
    assert_eq!(error("{}"), "Bad request: Invalid JSON: missing field `items`");
    assert_eq!(error("{\"items\":[{\"price\":1},{}]}"), "Bad request: Invalid JSON at items[1]: missing field `price`");
    assert_eq!(
        error("{\"items\":[{\"price\":\"free\"}]}"),
        "Bad request: Invalid JSON at items[0].price: invalid type: string \"free\", expected f64"
    );
    assert_eq!(error("[1]"), "Bad request: Invalid JSON: invalid type: array, expected struct Order");
    assert_eq!(
        message(posted("application/json", b"\xff").json::<Order>().unwrap_err()).split(" at ").next(),
        Some("Bad request: Invalid JSON: expected value")
    );
    assert_eq!(get("/").json::<Option<u8>>().unwrap(), None);
}
