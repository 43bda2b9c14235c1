//! Pages of other origins: preflights, and the headers of answers.
use serde_json::{Value, json};

use super::Fixture;
use crate::support::{Answer, Response, get, post};

const PAGE: &str = "https://app.example";

fn preflight(fixture: &Fixture, origin: &str, method: &str) -> Response {
    fixture.front.exchange(format!(
        "OPTIONS /echo HTTP/1.1\r\nHost: localhost\r\nOrigin: {origin}\r\n\
         Access-Control-Request-Method: {method}\r\n\r\n"
    ))
}

fn allowed_origin(response: &Response) -> Option<String> {
    response.header("access-control-allow-origin")
}

fn from(origin: &str) -> String {
    format!("Origin: {origin}\r\n")
}

#[test]
fn a_page_of_an_allowed_origin_is_told_the_methods_of_the_path_before_authentication() {
    let fixture = Fixture::start();
    fixture.set(json!({
        "cors": {
            "origins": [PAGE, "https://*.pages.example:8443"],
            "headers": ["content-type", "x-own"],
            "credentials": true,
            "max_age_seconds": 600,
        },
        "auth": { "api_key": { "header": "X-Api-Key", "keys": [] } },
    }));
    for origin in [PAGE, "https://a.pages.example:8443", "https://a.b.pages.example:8443"] {
        let response = preflight(&fixture, origin, "POST");
        assert_eq!((response.status, response.text()), (204, ""));
        for (name, value) in [
            ("access-control-allow-origin", origin),
            ("access-control-allow-methods", "GET, HEAD, POST"),
            ("access-control-allow-headers", "content-type, x-own"),
            ("access-control-allow-credentials", "true"),
            ("access-control-max-age", "600"),
        ] {
            assert_eq!(response.header(name).as_deref(), Some(value), "{origin}");
        }
        assert!(response.header("vary").unwrap().contains("Origin"));
        assert_eq!(response.header("content-length"), None);
    }
    let other = preflight(&fixture, PAGE, "DELETE");
    assert_eq!(other.header("access-control-allow-methods").as_deref(), Some("GET, HEAD, POST"));
}

#[test]
fn a_page_of_another_origin_has_its_preflight_refused() {
    let fixture = Fixture::start();
    fixture.set(json!({ "cors": { "origins": [PAGE, "https://*.pages.example:8443"] } }));
    for origin in [
        "https://app.example.evil.example",
        "http://app.example",
        "https://app.example:444",
        "https://pages.example:8443",
        "https://.pages.example:8443",
        "https://evil.example/.pages.example:8443",
        "https://evil.example#.pages.example:8443",
        "null",
    ] {
        let response = preflight(&fixture, origin, "GET");
        assert_eq!((response.status, allowed_origin(&response)), (403, None), "{origin}");
    }
}

#[test]
fn a_page_may_read_the_errors_of_the_front() {
    let fixture = Fixture::start();
    fixture.set(json!({
        "cors": { "origins": [PAGE], "credentials": true },
        "auth": { "api_key": { "header": "X-Api-Key", "keys": [] } },
    }));
    let refused = fixture.front.get("/echo", &from(PAGE));
    assert_eq!((refused.status, allowed_origin(&refused).as_deref()), (401, Some(PAGE)));
    assert_eq!(refused.header("access-control-allow-credentials").as_deref(), Some("true"));
    let delete = format!("DELETE /echo HTTP/1.1\r\nHost: localhost\r\n{}\r\n", from(PAGE));
    let deleted = fixture.front.exchange(delete);
    assert_eq!((deleted.status, allowed_origin(&deleted).as_deref()), (405, Some(PAGE)));
    fixture.set(json!({ "cors": { "origins": [PAGE] }, "body_limit": 10 }));
    let large = fixture.front.post("/echo", &from(PAGE), "x".repeat(11));
    assert_eq!((large.status, allowed_origin(&large).as_deref()), (413, Some(PAGE)));
}

#[test]
fn a_page_may_read_that_its_request_exceeded_the_deadline() {
    let fixture = Fixture::start();
    let never = fixture.front.scripted("whole", |frames| while frames.receive().is_some() {});
    let late = get("/echo").limit("timeoutMs", 50).policies(json!({ "cors": { "origins": [PAGE] } }));
    fixture.front.serve(&never, [late]);
    let response = fixture.front.get("/echo", &from(PAGE));
    assert_eq!((response.status, allowed_origin(&response).as_deref()), (504, Some(PAGE)));
    fixture.front.logged("request exceeded its deadline");
}

#[test]
fn a_page_gets_the_headers_of_the_policy_instead_of_those_of_the_handler_and_others_get_none() {
    let fixture = Fixture::start();
    fixture.set(json!({ "cors": { "origins": [PAGE], "expose": ["X-Exposed"] } }));
    let answer = "X-Answer: Access-Control-Allow-Origin: https://evil.example\r\n";
    let response = fixture.front.get("/echo", &(from(PAGE) + answer));
    assert_eq!((response.status, allowed_origin(&response).as_deref()), (200, Some(PAGE)));
    assert_eq!(response.header("access-control-expose-headers").as_deref(), Some("X-Exposed"));
    let other = fixture.front.get("/echo", &(from("https://evil.example") + answer));
    assert_eq!((other.status, allowed_origin(&other)), (200, None));
    assert_eq!(other.header("vary").as_deref(), Some("Origin"));
}

#[test]
fn a_page_gets_no_headers_for_a_method_that_the_policy_does_not_name() {
    let fixture = Fixture::start();
    for origin in [PAGE, "*"] {
        fixture.set(json!({ "cors": { "origins": [origin], "methods": ["GET"] } }));
        for (method, may_send) in [("GET", true), ("HEAD", true), ("POST", false)] {
            let asked = preflight(&fixture, PAGE, method);
            assert_eq!(asked.status, if may_send { 204 } else { 403 }, "{method}");
            let methods = asked.header("access-control-allow-methods");
            assert_eq!(methods.as_deref(), may_send.then_some("GET, HEAD"), "{method}");
            let request = format!("{method} /echo HTTP/1.1\r\nHost: localhost\r\n{}\r\n", from(PAGE));
            let response = fixture.front.connect().send(request).response_to_head();
            let expected = (200, may_send.then(|| origin.to_owned()));
            assert_eq!((response.status, allowed_origin(&response)), expected, "{method}");
        }
    }
}

#[test]
fn a_preflight_without_the_policy_is_a_method_that_the_path_does_not_have() {
    let fixture = Fixture::start();
    let response = preflight(&fixture, PAGE, "GET");
    assert_eq!((response.status, allowed_origin(&response)), (405, None));
}

#[test]
fn a_page_is_told_only_of_methods_whose_own_policies_let_it_use_them_in_the_same_way() {
    let internal = "https://internal.example";
    let (of_get, of_both, of_post) = (json!("GET, HEAD"), json!("GET, HEAD, POST"), json!("POST"));
    let refused = json!(403);
    let both = |origins: &[&str]| json!({ "origins": origins, "max_age_seconds": 600 });
    let with = |name: &str, value: Value| {
        let mut cors = both(&[PAGE]);
        cors[name] = value;
        cors
    };
    let fixture = Fixture::start();
    // What GET and POST get, first with the origin of the page, then with the other one.
    for (cors, expected) in [
        (both(&[internal]), [&of_get, &refused, &refused, &of_post]),
        (both(&[internal, PAGE]), [&of_both, &of_both, &refused, &of_post]),
        (both(&["*"]), [&of_both, &of_both, &refused, &of_post]),
        (with("methods", json!(["PUT"])), [&of_get, &refused, &refused, &refused]),
        (with("max_age_seconds", json!(5)), [&of_get, &of_post, &refused, &refused]),
        (with("credentials", json!(true)), [&of_get, &of_post, &refused, &refused]),
        (with("headers", json!(["x-own"])), [&of_get, &of_post, &refused, &refused]),
        (Value::Null, [&of_get, &json!(405), &refused, &json!(405)]),
    ] {
        let of_post = if cors.is_null() { json!({}) } else { json!({ "cors": cors }) };
        fixture.set_each(json!({ "cors": both(&[PAGE]) }), of_post);
        let asked = [(PAGE, "GET"), (PAGE, "POST"), (internal, "GET"), (internal, "POST")];
        let answers = asked.map(|(origin, method)| {
            let response = preflight(&fixture, origin, method);
            let methods = response.header("access-control-allow-methods");
            if response.status == 204 { json!(methods) } else { json!(response.status) }
        });
        assert_eq!(answers.each_ref(), expected, "{cors}");
    }
}

#[test]
fn preflights_wake_no_handler_and_use_up_no_rate() {
    let fixture = Fixture::start();
    let rule = json!({ "id": "one", "requests": 1, "window_seconds": 3600, "by": "address" });
    let policies = json!({ "cors": { "origins": [PAGE] }, "rate_limits": [rule] });
    fixture.front.apply([get("/echo").policies(policies.clone()).serving(json!({ "kind": "asleep" }))]);
    for number in 0..100 {
        assert_eq!(preflight(&fixture, PAGE, "GET").status, 204);
        assert_eq!(preflight(&fixture, &format!("https://{number}.evil.example"), "GET").status, 403);
    }
    // One request of an endpoint that sleeps would be reported before its answer.
    let handler = fixture.front.handler(|_| Answer::new(200, "awake"));
    fixture.front.serve(&handler, [post("/other")]);
    assert_eq!(fixture.front.post("/other", "", "").status, 200);
    assert!(fixture.front.supervisor.reports(|report| report["type"] == "wake").is_empty());
    let figures = fixture.front.metrics();
    assert_eq!([&figures["policies"]["preflight"], &figures["policies"]["cors"]], [100, 100]);
    fixture.front.serve(&fixture.handler, [get("/echo").policies(policies)]);
    assert_eq!([fixture.status(""), fixture.status("")], [200, 429]);
}
