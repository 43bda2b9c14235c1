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
fn json_and_multipart_are_known_by_their_content_type_and_methods_in_any_case() {
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
    for (body, expected) in [
        ("", "Expected a JSON body, but the request has no body"),
        ("{\"items\": [}", "The body is not valid JSON: expected value at line 1 column 12"),
        ("{\"items\": nothing}", "The body is not valid JSON: expected value at line 1 column 12"),
        ("{\"items\":", "The body is not valid JSON: EOF while parsing a value at line 1 column 9"),
        ("2026-01-31", "The body is not valid JSON: trailing characters at line 1 column 5"),
        ("name=Ada&age=36&city=London", "Expected a JSON body, but it begins with \"name=Ada&age=36&city\""),
        (" \n<a/>", "Expected a JSON body, but it begins with \"<a/>\""),
        ("{}", "Missing field: items"),
        ("{\"items\":[{\"price\":1},{}]}", "Missing field: items[1].price"),
        (
            "{\"items\":[{\"price\":\"free\"}]}",
            "Invalid value for field items[0].price: expected a number, got string \"free\"",
        ),
        ("{\"items\":{}}", "Invalid value for field items: expected an array, got object"),
        ("{\"items\":[],\"note\":1}", "Invalid value for field note: expected a string, got integer `1`"),
        ("{\"items\":[],\"items\":[]}", "Invalid body: the field items appears twice"),
        ("[1]", "Invalid body: expected an object, got array"),
    ] {
        assert_eq!(error(body), format!("Bad request: {expected}"));
    }
    let binary = message(posted("application/json", b"\xff").json::<Order>().unwrap_err());
    assert_eq!(binary, "Bad request: Expected a JSON body, but it is not text");
    assert_eq!(get("/").json::<Option<u8>>().unwrap(), None);
}

#[test]
fn all_values_of_a_query_are_kept_in_their_order_and_the_last_one_counts() {
    let req = get("/?x=1&y=a+b%26&x=2&x&%78=3");
    assert_eq!(req.query_all("x"), ["1", "2", "", "3"]);
    assert_eq!(req.query_all("y"), ["a b&"]);
    assert_eq!(req.query_all("z"), Vec::<String>::new());
    assert_eq!(req.query_param("x").unwrap(), "3");
    assert_eq!(req.raw_query(), "x=1&y=a+b%26&x=2&x&%78=3");
    let pairs = req.query_pairs();
    assert_eq!((pairs.len(), pairs.is_empty(), pairs.get("x")), (5, false, Some("3")));
    assert_eq!(json!(pairs), json!([["x", "1"], ["y", "a b&"], ["x", "2"], ["x", ""], ["x", "3"]]));
    assert_eq!(get("/").raw_query(), "");
    assert!(get("/?&").query_pairs().is_empty());
}

#[test]
fn the_map_of_a_query_is_what_counts_once_it_has_been_changed() {
    let mut req = get("/?x=1&x=2&y=3");
    req.query.insert("x".into(), "2".into());
    assert_eq!(req.query_all("x"), ["1", "2"]);
    req.query.insert("x".into(), "9".into());
    assert_eq!(req.query_all("x"), ["9"]);
    req.query.remove("x");
    assert_eq!(req.query_all("x"), Vec::<String>::new());
    assert_eq!(req.query_all("y"), ["3"]);
    let query = std::collections::HashMap::from([("b".to_owned(), "2".to_owned()), ("a".to_owned(), "1".to_owned())]);
    let made = Request { query, ..Request::default() };
    assert_eq!(json!(made.query_pairs()), json!([["a", "1"], ["b", "2"]]));
    let copied = Request { path: "/b".into(), ..get("/a?x=1&x=2") };
    assert_eq!(copied.query_all("x"), ["1", "2"]);
    let stored: Request = serde_json::from_str(&serde_json::to_string(&get("/?x=1&x=2")).unwrap()).unwrap();
    assert_eq!(stored.query_all("x"), ["2"]);
}

#[test]
fn all_headers_of_a_name_are_kept_until_the_map_is_changed() {
    let headers =
        json!(["Accept", "a, b", "X-One", "1", "accept", "c", "Cookie", "a=1", "ACCEPT", "", "cookie", "b=2"]);
    let mut req = request(json!({"method": "GET", "target": "/", "headers": headers}), b"");
    assert_eq!(req.header_all("Accept"), ["a, b", "c", ""]);
    assert_eq!(req.header("accept").unwrap(), "a, b, c, ");
    assert_eq!(req.header_all("x-one"), ["1"]);
    assert_eq!(req.header_all("none"), Vec::<&str>::new());
    assert_eq!(req.header_all("cookie"), ["a=1", "b=2"]);
    assert_eq!((req.cookie("a"), req.cookie("b")), (Some("1"), Some("2")));
    req.headers.insert("accept".into(), "d".into());
    assert_eq!(req.header_all("Accept"), ["d"]);
    let made = Request { headers: [("X-A".to_owned(), "1".to_owned())].into(), ..req };
    assert_eq!(made.header_all("x-a"), ["1"]);
}

#[test]
fn cookies_are_read_as_they_were_sent_and_the_first_of_a_name_counts() {
    let headers = ["cookie", "a=1;b=x=y ;  a=2; flag; q=\"s t\"; %61=%62"];
    let req = request(json!({"method": "GET", "target": "/", "headers": headers}), b"");
    let value = |name: &str| req.cookie(name);
    assert_eq!([value("a"), value("b"), value("A"), value("flag")], [Some("1"), Some("x=y"), None, None]);
    assert_eq!([value("q"), value("%61")], [Some("\"s t\""), Some("%62")]);
    assert_eq!(req.cookie_pairs().get_all("a"), ["1", "2"]);
    assert_eq!(req.cookie_pairs().get("a"), Some("1"));
    assert_eq!(get("/").cookie("a"), None);
}

#[test]
fn urlencoded_forms_are_decoded_up_to_a_limit_and_other_content_is_refused() {
    let form = |body: &[u8]| posted("Application/X-WWW-Form-URLEncoded; charset=UTF-8", body).form().unwrap();
    let sent = form(b"name=a+b%21%26%C3%A9+100%+%zz&tag=1&&tag=2&flag&=none&bad=%FF&raw=\xff");
    assert_eq!(sent.get("name"), Some("a b!&\u{e9} 100% %zz"));
    assert_eq!((sent.get_all("tag"), sent.get("tag")), (vec!["1", "2"], Some("2")));
    assert_eq!((sent.get("flag"), sent.get(""), sent.get("none")), (Some(""), Some("none"), None));
    assert_eq!((sent.get("bad"), sent.get("raw")), (Some("\u{fffd}"), Some("\u{fffd}")));
    assert_eq!(sent.iter().next(), Some(("name", "a b!&\u{e9} 100% %zz")));
    assert_eq!(sent.len(), sent.into_iter().count());
    assert!(form(b"").is_empty());
    for content_type in ["application/json", "multipart/form-data; boundary=x", ""] {
        assert_eq!(
            message(posted(content_type, b"a=1").form().unwrap_err()),
            "Bad request: Expected a body with Content-Type: application/x-www-form-urlencoded"
        );
    }
    assert_eq!(form("a&".repeat(10_000).as_bytes()).len(), 10_000);
    let too_many = posted("application/x-www-form-urlencoded", "a&".repeat(10_001).as_bytes());
    assert_eq!(message(too_many.form().unwrap_err()), "Bad request: The form has more than 10000 fields");
}
