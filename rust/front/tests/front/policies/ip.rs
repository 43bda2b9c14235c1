//! Networks that may call an endpoint, also behind proxies.
use serde_json::json;

use super::Fixture;

fn front() -> Fixture {
    // The tests come from 127.0.0.1, as a trusted proxy.
    Fixture::with(json!({ "trustedProxies": ["127.0.0.1", "192.0.2.0/24"] }))
}

fn status_from(fixture: &Fixture, forwarded: &str) -> u16 {
    fixture.status(&format!("X-Forwarded-For: {forwarded}\r\n"))
}

#[test]
fn a_client_is_let_in_by_the_address_that_trusted_proxies_tell() {
    let fixture = front();
    fixture.set(json!({
        "ip": { "allow": ["198.51.100.0/24", "2001:db8::/32"], "deny": ["198.51.100.7", "2001:db8:bad::/48"] },
    }));
    for (address, status) in [
        ("198.51.100.1", 200),
        ("198.51.100.7", 403),
        ("198.51.101.1", 403),
        ("2001:db8::1", 200),
        ("2001:db8:bad::1", 403),
        ("2001:db9::1", 403),
        ("::ffff:198.51.100.1", 200),
        ("::ffff:198.51.100.7", 403),
        // The client comes through two proxies.
        ("198.51.100.1, 192.0.2.9", 200),
        // A stranger says that it is somebody else.
        ("198.51.100.1, 203.0.113.9", 403),
        ("nonsense", 403),
    ] {
        assert_eq!(status_from(&fixture, address), status, "{address}");
    }
    assert_eq!(fixture.status(""), 403);
}

#[test]
fn a_stranger_that_is_no_proxy_is_not_believed() {
    let fixture = Fixture::with(json!({ "trustedProxies": ["127.0.0.2"] }));
    fixture.set(json!({ "ip": { "allow": ["198.51.100.0/24"] } }));
    assert_eq!(fixture.status("X-Forwarded-For: 198.51.100.1\r\nForwarded: for=198.51.100.1\r\n"), 403);
}

#[test]
fn a_refused_client_is_in_the_log_and_in_the_figures() {
    let fixture = front();
    fixture.set(json!({ "ip": { "deny": ["203.0.113.0/24"] } }));
    assert_eq!(status_from(&fixture, "203.0.113.5"), 403);
    let entry = fixture.front.supervisor.report("an entry of the log", |report| report["policy"] == "ip");
    assert_eq!(entry["error"], "This address may not call this endpoint.");
    assert_eq!(entry["isKept"], true);
    assert_eq!(fixture.front.metrics()["policies"]["ip"], 1);
}
