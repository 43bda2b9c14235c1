//! Limits of bodies.
use serde_json::json;

use super::Fixture;

#[test]
fn a_client_may_send_bodies_up_to_the_policy_and_never_more_than_the_gateway_takes() {
    let fixture = Fixture::with(json!({ "bodyLimit": 2_000 }));
    let status = |length: usize| fixture.front.post("/echo", "", "x".repeat(length)).status;
    fixture.set(json!({ "body_limit": 100 }));
    assert_eq!(status(100), 200);
    let large = fixture.front.post("/echo", "", "x".repeat(101));
    let text = r#"{"error":"The body is larger than the 100 bytes this gateway accepts."}"#;
    assert_eq!((large.status, large.text()), (413, text));
    let chunk = format!("3c\r\n{}\r\n", "x".repeat(60));
    let head = "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(fixture.front.exchange(format!("{head}{chunk}{chunk}0\r\n\r\n")).status, 413);
    fixture.set(json!({ "body_limit": 1_000_000 }));
    assert_eq!([status(2_000), status(2_001)], [200, 413]);
    fixture.set(json!({ "body_limit": 0 }));
    assert_eq!([status(0), status(1)], [200, 413]);
}
