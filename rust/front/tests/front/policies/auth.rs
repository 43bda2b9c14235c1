//! Keys, passwords and signatures of callers.
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::{digest, hmac};
use serde_json::{Value, json};

use super::Fixture;

const SECRET: &str = "It's a Secret to Everybody";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn sha256(text: &str) -> String {
    hex(digest::digest(&digest::SHA256, text.as_bytes()).as_ref())
}

fn signature(text: &str) -> String {
    hex(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes()), text.as_bytes()).as_ref())
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn key(label: &str, key: &str, expires_at: Option<u64>) -> Value {
    json!({ "id": label, "label": label, "hash": sha256(key), "expires_at": expires_at })
}

fn set_keys(fixture: &Fixture, keys: &[Value]) {
    fixture.set(json!({ "auth": { "api_key": { "header": "X-Api-Key", "keys": keys } } }));
}

fn status_with_key(fixture: &Fixture, key: &str) -> u16 {
    fixture.status(&format!("X-Api-Key: {key}\r\n"))
}

#[test]
fn a_caller_with_a_key_is_let_in_and_the_handler_and_the_log_get_the_label_of_the_key() {
    const KEY: &str = "egk_abcdefghijklmnopqrstuvwxyz";
    let fixture = Fixture::start();
    set_keys(&fixture, &[key("the team of Ada", KEY, None)]);
    let echoed = fixture.echoed(&format!("X-Api-Key: {KEY}\r\nKey-Label: Mallory\r\nSubject: Mallory\r\n"));
    assert_eq!(echoed["auth"]["key_label"], "the team of Ada");
    assert_eq!(echoed["auth"].get("subject"), None);
    let entry = fixture.front.supervisor.report("an entry of the log", |report| report["type"] == "request");
    assert_eq!(entry["keyLabel"], "the team of Ada");
    assert!(!entry.to_string().contains(KEY));
    for wrong in ["", "egk_", &KEY[..KEY.len() - 1], &KEY.to_uppercase(), &"x".repeat(5_000)] {
        assert_eq!(status_with_key(&fixture, wrong), 401, "{wrong}");
    }
    assert_eq!(status_with_key(&fixture, &format!("{KEY} ")), 200);
    assert_eq!(fixture.status(""), 401);
    // Twice the header is none.
    assert_eq!(fixture.status(&format!("X-Api-Key: {KEY}\r\nx-api-key: {KEY}\r\n")), 401);
}

#[test]
fn a_caller_is_refused_once_its_key_is_revoked_or_has_expired() {
    let fixture = Fixture::start();
    set_keys(&fixture, &[key("short", "the key", None)]);
    assert_eq!(status_with_key(&fixture, "the key"), 200);
    set_keys(&fixture, &[]);
    assert_eq!(status_with_key(&fixture, "the key"), 401);
    set_keys(&fixture, &[key("expiring", "the key", Some(now() + 300))]);
    assert_eq!(status_with_key(&fixture, "the key"), 200);
    set_keys(&fixture, &[key("expired", "the key", Some(now() - 1))]);
    assert_eq!(status_with_key(&fixture, "the key"), 401);
}

#[test]
fn callers_with_keys_have_rates_of_their_own() {
    let fixture = Fixture::start();
    let keys = [key("first", "one", None), key("second", "two", None)];
    let rule = json!({ "id": "domain key", "requests": 1, "window_seconds": 3600, "by": "key" });
    fixture.set(json!({ "auth": { "api_key": { "header": "X-Own-Key", "keys": keys } }, "rate_limits": [rule] }));
    let status = |key: &str| fixture.status(&format!("X-Own-Key: {key}\r\n"));
    assert_eq!(["one", "one", "two", "wrong"].map(status), [200, 429, 200, 401]);
}

fn basic(text: &str) -> String {
    format!("Authorization: Basic {}\r\n", BASE64.encode(text))
}

#[test]
fn a_caller_with_the_password_of_a_name_is_let_in() {
    let fixture = Fixture::start();
    let users = json!([{ "name": "ada", "hash": sha256("pass:wörd") }]);
    fixture.set(json!({ "auth": { "basic": { "realm": "tests", "users": users } } }));
    assert_eq!(fixture.echoed(&basic("ada:pass:wörd"))["auth"]["subject"], "ada");
    let none = fixture.front.get("/echo", "");
    assert_eq!(none.status, 401);
    assert_eq!(none.header("www-authenticate").as_deref(), Some("Basic realm=\"tests\", charset=\"UTF-8\""));
    for wrong in ["ada:", "ada:pass", "ada", ":pass:wörd", "Ada:pass:wörd", "adam:pass:wörd"] {
        assert_eq!(fixture.status(&basic(wrong)), 401, "{wrong}");
    }
    for wrong in ["Basic", "Basic %%%", "Bearer x", "basic"] {
        assert_eq!(fixture.status(&format!("Authorization: {wrong}\r\n")), 401, "{wrong}");
    }
}

#[test]
fn nobody_is_let_in_where_a_secret_is_missing() {
    let fixture = Fixture::start();
    fixture.set(json!({ "broken": "the secret ADA_PASSWORD is not set" }));
    assert_eq!(fixture.status(&basic("ada:")), 503);
}

#[test]
fn a_webhook_is_let_in_by_the_signature_that_github_makes_of_its_body() {
    let fixture = Fixture::start();
    fixture.set(json!({ "auth": { "hmac": { "style": "github", "secret": SECRET, "tolerance_seconds": 300 } } }));
    let status = |body: &str, signature: &str| {
        let line = if signature.is_empty() { String::new() } else { format!("X-Hub-Signature-256: {signature}\r\n") };
        fixture.front.post("/echo", &line, body).status
    };
    // The example of GitHub's documentation.
    let right = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    assert_eq!(right, format!("sha256={}", signature("Hello, World!")));
    assert_eq!(status("Hello, World!", right), 200);
    for (body, wrong) in [
        ("Hello, World?", right),
        ("", right),
        ("Hello, World!", ""),
        ("Hello, World!", &right.replace("sha256", "sha1")),
        ("Hello, World!", &right[..right.len() - 2]),
        ("Hello, World!", "sha256="),
        ("Hello, World!", &format!("{right}, {right}")),
    ] {
        assert_eq!(status(body, wrong), 401, "{body} {wrong}");
    }
}

#[test]
fn a_webhook_is_let_in_by_the_signature_that_stripe_makes_of_its_body_while_that_is_new() {
    let fixture = Fixture::start();
    fixture.set(json!({ "auth": { "hmac": { "style": "stripe", "secret": SECRET, "tolerance_seconds": 60 } } }));
    let body = r#"{"id":"evt_1"}"#;
    let sign = |time: u64| signature(&format!("{time}.{body}"));
    let status = |header: &str| fixture.front.post("/echo", &format!("Stripe-Signature: {header}\r\n"), body).status;
    let now = now();
    assert_eq!(status(&format!("t={now},v1={},v0=x", sign(now))), 200);
    assert_eq!(status(&format!("t={now},v1={},v1={}", "0".repeat(64), sign(now))), 200);
    for wrong in [
        format!("t={},v1={}", now - 120, sign(now - 120)),
        format!("t={},v1={}", now + 120, sign(now + 120)),
        format!("t={now},v1={}", sign(now - 1)),
        format!("t={now},t={},v1={}", now - 120, sign(now)),
        format!("v1={}", sign(now)),
        format!("t={now},v0={}", sign(now)),
        format!("t=x,v1={}", sign(now)),
    ] {
        assert_eq!(status(&wrong), 401, "{wrong}");
    }
}
