//! Changed headers, redirects and maintenance.
use serde_json::json;

use super::Fixture;

fn names_of_headers(echoed: &serde_json::Value) -> Vec<String> {
    echoed["headers"].as_object().unwrap().keys().cloned().collect()
}

fn set_request_headers(fixture: &Fixture) {
    fixture.set(json!({
        "headers": {
            "request": { "remove": ["X-Admin"], "set": { "X-Tenant": "ours" }, "add": { "Via": "the edge" } },
        },
    }));
}

#[test]
fn a_handler_gets_the_headers_that_the_policy_changes() {
    let fixture = Fixture::start();
    set_request_headers(&fixture);
    let lines = "X-Admin: 1\r\nX-ADMIN: 2\r\nX-Tenant: theirs\r\nVia: a proxy\r\nX-Other: kept\r\n";
    let echoed = fixture.front.get("/echo", lines).json();
    let headers = &echoed["headers"];
    assert_eq!([&headers["x-tenant"], &headers["x-other"]], ["ours", "kept"]);
    assert!(!names_of_headers(&echoed).contains(&"x-admin".to_owned()), "{echoed}");
    assert_eq!(headers["via"], "a proxy, the edge");
}

#[test]
fn a_handler_never_gets_a_removed_header_however_it_is_written() {
    let fixture = Fixture::start();
    set_request_headers(&fixture);
    for line in [
        "X-Admin: 1",
        "x-aDmIn: 1",
        "X-Admin:1",
        "X-Admin: 1\r\nX-Admin: 2",
        "X-Admin : 1",
        "X-Admin\t: 1",
        " X-Admin: 1",
        "X-A: b\r\n X-Admin: 1",
        "X-A: b\nX-Admin: 1",
        "X-A: b\rX-Admin: 1",
        "X-Admin\0: 1",
        "Connection: close, X-Tenant\r\nX-Admin: 1",
    ] {
        let response = fixture.front.get("/echo", &format!("{line}\r\n"));
        if response.status != 400 {
            assert_eq!(response.status, 200, "{line:?}");
            let echoed = response.json();
            assert!(!names_of_headers(&echoed).iter().any(|name| name.contains("admin")), "{line:?}: {echoed}");
            assert_eq!(echoed["headers"]["x-tenant"], "ours", "{line:?}");
        }
    }
}

#[test]
fn a_handler_never_gets_a_removed_header_behind_a_body_or_in_a_request_hidden_in_one() {
    let fixture = Fixture::start();
    set_request_headers(&fixture);
    let hidden = "POST /echo HTTP/1.1\r\nHost: localhost\r\nX-Admin: 1\r\n\r\n";
    let length = hidden.len();
    let chunk = format!("{length:x}\r\n{hidden}\r\n0\r\n");
    for (lines, body) in [
        ("Transfer-Encoding: chunked\r\nTrailer: X-Admin", format!("{chunk}X-Admin: 1\r\n\r\n")),
        ("Transfer-Encoding: chunked", format!("{chunk}x-admin: 1\r\nX-Admin : 1\r\n\r\n")),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked", format!("0\r\n\r\n{hidden}")),
        (&format!("Content-Length: 0\r\nContent-Length: {length}"), hidden.to_owned()),
        ("Transfer-Encoding: xchunked", format!("0\r\n\r\n{hidden}")),
        (&format!("Content-Length: {length}"), hidden.to_owned()),
    ] {
        let mut client = fixture.front.connect();
        client.send(format!("POST /echo HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n\r\n{body}"));
        // The one that is last, whatever the front takes for requests.
        client.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let responses = client.rest();
        assert!((1..=2).contains(&responses.len()), "{lines}");
        for response in responses.iter().filter(|response| response.status != 400) {
            assert_eq!(response.status, 200, "{lines}");
            let echoed = response.json();
            assert!(!names_of_headers(&echoed).iter().any(|name| name.contains("admin")), "{lines}: {echoed}");
        }
    }
}

#[test]
fn a_client_gets_the_headers_that_the_policy_changes_also_of_errors_of_the_front() {
    let fixture = Fixture::start();
    let headers = json!({
        "response": { "remove": ["X-Internal"], "set": { "X-Kind": "set" }, "add": { "X-More": "added" } },
        "security_headers": true,
    });
    fixture.set(json!({ "headers": headers }));
    for (line, gone) in [("X-Internal: secret", "x-internal"), ("X-Kind: own", ""), ("X-Frame-Options: SAMEORIGIN", "")]
    {
        let response = fixture.front.get("/echo", &format!("X-Answer: {line}\r\n"));
        let frames = if line.starts_with("X-Frame") { "SAMEORIGIN" } else { "DENY" };
        for (name, value) in [
            ("x-kind", "set"),
            ("x-more", "added"),
            ("x-frame-options", frames),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
        ] {
            assert_eq!(response.header(name).as_deref(), Some(value), "{line}");
        }
        assert!(response.header("strict-transport-security").unwrap().starts_with("max-age="));
        assert_eq!(response.header(gone), None);
    }
    fixture.set(json!({ "headers": headers, "ip": { "deny": ["127.0.0.1"] } }));
    let refused = fixture.front.get("/echo", "");
    assert_eq!(refused.status, 403);
    assert_eq!(refused.header("x-kind").as_deref(), Some("set"));
    assert_eq!(refused.header("x-frame-options").as_deref(), Some("DENY"));
}

#[test]
fn a_handler_decides_about_the_whole_host_only_where_the_policy_allows_it() {
    let fixture = Fixture::start();
    let answered = |name: &str| {
        let response = fixture.front.get("/echo", &format!("X-Answer: {name}: \"storage\"\r\n"));
        assert_eq!(response.status, 200, "{name}");
        response.header(&name.to_ascii_lowercase())
    };
    let names = ["Clear-Site-Data", "alt-svc", "SERVICE-WORKER-ALLOWED", "NEL", "Report-To", "Accept-CH"];
    let none = [None, None, None, None, None, None];
    assert_eq!(names.map(answered), none);
    fixture.set(json!({ "headers": { "response": { "allow": [] }, "security_headers": true } }));
    assert_eq!(names.map(answered), none);
    fixture.set(json!({ "headers": { "response": { "allow": ["Clear-Site-Data", "NEL"] } } }));
    assert_eq!(names.map(|name| answered(name).is_some()), [true, false, false, true, false, false]);
    let removed = json!({ "allow": ["NEL"], "remove": ["NEL"] });
    fixture.set(json!({ "headers": { "response": removed } }));
    assert_eq!(answered("NEL"), None);
    fixture.set(json!({ "headers": { "response": { "set": { "Clear-Site-Data": "\"cache\"" } } } }));
    assert_eq!(answered("Clear-Site-Data").as_deref(), Some("\"cache\""));
}

#[test]
fn a_client_is_redirected_with_or_without_its_path_and_query() {
    let fixture = Fixture::start();
    fixture.set(json!({ "redirect": { "to": "https://new.example/v2/", "status": 308, "keep_path": true } }));
    let kept = fixture.front.get("/echo?a=%20b", "");
    assert_eq!((kept.status, kept.text()), (308, ""));
    assert_eq!(kept.header("location").as_deref(), Some("https://new.example/v2/echo?a=%20b"));
    fixture.set(json!({ "redirect": { "to": "https://new.example/" }, "maintenance": {} }));
    let left = fixture.front.get("/echo?a=b", "");
    assert_eq!((left.status, left.header("location").as_deref()), (307, Some("https://new.example/")));
}

#[test]
fn a_client_that_may_come_in_is_told_of_maintenance() {
    let fixture = Fixture::start();
    fixture.set(json!({ "maintenance": { "message": "Back at noon.", "retry_after_seconds": 90 } }));
    let response = fixture.front.get("/echo", "");
    assert_eq!((response.status, response.text()), (503, r#"{"error":"Back at noon."}"#));
    assert_eq!(response.header("retry-after").as_deref(), Some("90"));
    fixture.set(json!({ "maintenance": {}, "auth": { "api_key": { "header": "X-Api-Key", "keys": [] } } }));
    assert_eq!(fixture.status(""), 401);
    fixture.set(json!({}));
    assert_eq!(fixture.status(""), 200);
}

#[test]
fn a_handler_neither_gets_nor_sets_the_session_of_who_is_signed_in_at_the_api() {
    let fixture = Fixture::start();
    // Browsers send the cookies of a host to all its ports.
    assert_eq!(fixture.echoed("Cookie: a=b; egw_session=secret; c=d\r\n")["headers"]["cookie"], "a=b; c=d");
    let alone = fixture.echoed("Cookie: egw_session=secret; egw_sign_in=secret; __Host-egw_session=secret\r\n");
    assert!(!names_of_headers(&alone).contains(&"cookie".to_owned()));

    let set = |cookie: &str| {
        let response = fixture.front.get("/echo", &format!("X-Answer: Set-Cookie: {cookie}\r\n"));
        response.header("set-cookie")
    };
    assert_eq!(set("mine=1; Path=/").as_deref(), Some("mine=1; Path=/"));
    for planted in [
        "egw_session=mine; Path=/",
        "=egw_session=mine",
        " egw_session =; Max-Age=0",
        "egw_sign_in=x",
        "__Host-egw_session=mine; Path=/; Secure",
    ] {
        assert_eq!(set(planted), None, "{planted}");
    }
    fixture.set(json!({ "headers": { "response": { "set": { "Set-Cookie": "egw_session=mine" } } } }));
    assert_eq!(fixture.front.get("/echo", "").header("set-cookie"), None);
}
