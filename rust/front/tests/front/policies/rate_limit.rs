//! Limits of rates, exact over all threads of the front.
use std::thread;

use serde_json::{Value, json};

use super::Fixture;
use crate::support::eventually;

fn front() -> Fixture {
    Fixture::with(json!({ "trustedProxies": ["127.0.0.1"], "threads": 4 }))
}

/// A rule of the owner of this id: who has the same counts together.
fn rule(owner: &str, requests: u32, by: &str, window_seconds: u32) -> Value {
    json!({
        "id": format!("{owner} {by} {window_seconds}"),
        "requests": requests,
        "window_seconds": window_seconds,
        "by": by,
    })
}

fn limit(fixture: &Fixture, rules: &[Value]) {
    fixture.set_each(json!({ "rate_limits": rules }), json!({}));
}

fn status_from(fixture: &Fixture, address: &str) -> u16 {
    fixture.status(&format!("X-Forwarded-For: {address}\r\n"))
}

#[test]
fn exactly_as_many_requests_of_a_caller_are_let_through_over_all_threads_as_the_rule_says() {
    let fixture = front();
    limit(&fixture, &[rule("one", 100, "address", 3_600)]);
    let from_one = "X-Forwarded-For: 198.51.100.1\r\n";
    let first = fixture.front.get("/echo", from_one);
    assert_eq!(first.header("ratelimit-policy").as_deref(), Some("\"address-3600s\";q=100;w=3600"));
    assert_eq!(first.header("ratelimit").as_deref(), Some("\"address-3600s\";r=99;t=3600"));
    let ask_many = || (0..23).map(|_| fixture.front.get("/echo", from_one)).collect::<Vec<_>>();
    let responses = thread::scope(|scope| {
        let clients: Vec<_> = (0..13).map(|_| scope.spawn(ask_many)).collect();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(responses.iter().filter(|response| response.status == 200).count(), 99);
    let refused: Vec<_> = responses.iter().filter(|response| response.status == 429).collect();
    assert_eq!(refused.len(), 200);
    let retry_after: u32 = refused[0].header("retry-after").unwrap().parse().unwrap();
    assert!((3_500..=3_600).contains(&retry_after));
    assert!(refused[0].header("ratelimit").unwrap().starts_with("\"address-3600s\";r=0;t="));
    assert_eq!(status_from(&fixture, "198.51.100.2"), 200);
}

#[test]
fn a_caller_has_used_up_its_rate_also_when_other_policies_change() {
    let fixture = front();
    let rules = [rule("one", 1, "address", 3_600)];
    limit(&fixture, &rules);
    assert_eq!([status_from(&fixture, "198.51.100.1"), status_from(&fixture, "198.51.100.1")], [200, 429]);
    fixture.set_each(json!({ "rate_limits": rules, "ip": { "deny": ["10.0.0.0/8"] } }), json!({}));
    assert_eq!(status_from(&fixture, "198.51.100.1"), 429);
}

#[test]
fn a_caller_is_let_through_again_when_the_window_is_over() {
    let fixture = front();
    limit(&fixture, &[rule("one", 2, "address", 3_600)]);
    assert_eq!([(); 3].map(|()| status_from(&fixture, "::1")), [200, 200, 429]);
    // In so short a window, three requests in a row may fall into two of them.
    limit(&fixture, &[rule("one", 2, "address", 1)]);
    for status in [200, 429, 200] {
        eventually(|| format!("never {status}"), || status_from(&fixture, "::1") == status);
    }
}

#[test]
fn callers_are_told_apart_by_their_networks_of_ipv6_or_by_a_header() {
    let fixture = front();
    limit(&fixture, &[rule("one", 1, "address", 3_600)]);
    let addresses = ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"];
    assert_eq!(addresses.map(|address| status_from(&fixture, address)), [200, 429, 200]);
    limit(&fixture, &[rule("one", 1, "header:X-Tenant", 3_600)]);
    let tenant = |name: &str| fixture.status(&format!("X-Forwarded-For: 10.0.0.1\r\nX-Tenant: {name}\r\n"));
    assert_eq!(["a", "a", "b"].map(tenant), [200, 429, 200]);
}

#[test]
fn endpoints_with_the_same_rules_count_together_and_each_rule_counts() {
    let fixture = front();
    let rules = [rule("domain", 3, "address", 3_600), rule("domain", 2, "header:x-tenant", 3_600)];
    fixture.set(json!({ "rate_limits": rules }));
    let lines = |tenant: &str| format!("X-Forwarded-For: 192.0.2.77\r\nX-Tenant: {tenant}\r\n");
    let get = |tenant: &str| fixture.status(&lines(tenant));
    let post = |tenant: &str| fixture.front.post("/echo", &lines(tenant), "").status;
    assert_eq!([get("1"), post("1"), get("1")], [200, 200, 429]);
    assert_eq!(post("2"), 429);
}

#[test]
fn a_caller_is_not_believed_what_it_says_of_where_it_comes_from_before_the_proxy() {
    let fixture = front();
    limit(&fixture, &[rule("one", 1, "address", 3_600)]);
    assert_eq!(status_from(&fixture, "6.6.6.6, 203.0.113.50"), 200);
    assert_eq!(status_from(&fixture, "7.7.7.7, 203.0.113.50"), 429);
}

#[test]
fn a_stranger_that_is_no_proxy_is_counted_by_its_own_address_whatever_it_says() {
    let fixture = Fixture::with(json!({ "trustedProxies": ["127.0.0.2"] }));
    limit(&fixture, &[rule("one", 2, "address", 3_600)]);
    let said = ["6.6.6.6", "7.7.7.7", "127.0.0.1", "8.8.8.8, 127.0.0.2"];
    let lines = |said: &str| {
        let first = said.split(',').next().unwrap();
        format!("X-Forwarded-For: {said}\r\nForwarded: for={first}\r\nX-Real-IP: 9.9.9.9\r\n")
    };
    assert_eq!(said.map(|said| fixture.status(&lines(said))), [200, 200, 429, 429]);
}

#[test]
fn a_caller_that_has_no_more_is_refused_without_asking_again_where_others_count() {
    let fixture = shared_front();
    limit(&fixture, &[rule("one", 2, "address", 3_600)]);
    let answers = thread::scope(|scope| {
        let asking = scope.spawn(|| [(); 4].map(|()| fixture.front.get("/echo", "")));
        for (admitted, taken) in [(true, 1), (true, 2), (false, 2)] {
            tell_taken(&fixture, &json!([{ "isAdmitted": admitted, "taken": taken, "endsMs": 60_000 }]));
        }
        asking.join().unwrap()
    });
    assert_eq!(answers.each_ref().map(|answer| answer.status), [200, 200, 429, 429]);
    for refused in &answers[2..] {
        assert!(refused.header("ratelimit").unwrap().starts_with("\"address-3600s\";r=0;t="));
    }
    assert!(fixture.front.supervisor.reports(|report| report["type"] == "take").is_empty());
    // What it has used up is another limit's.
    limit(&fixture, &[rule("one", 3, "address", 3_600)]);
    thread::scope(|scope| {
        let asking = scope.spawn(|| fixture.status(""));
        tell_taken(&fixture, &json!([{ "isAdmitted": true, "taken": 3, "endsMs": 60_000 }]));
        assert_eq!(asking.join().unwrap(), 200);
    });
}

#[test]
fn a_front_counts_a_caller_by_itself_that_others_do_not_count() {
    let fixture = shared_front();
    limit(&fixture, &[rule("one", 2, "address", 3_600)]);
    let statuses = thread::scope(|scope| {
        let asking = scope.spawn(|| [(); 3].map(|()| fixture.status("")));
        for _ in 0..3 {
            tell_taken(&fixture, &json!([null]));
        }
        asking.join().unwrap()
    });
    assert_eq!(statuses, [200, 200, 429]);
}

#[test]
fn what_refuses_a_request_already_does_so_also_when_nobody_can_count_it() {
    let fixture = shared_front();
    let rules = [rule("one", 2, "address", 3_600)];
    fixture.set_each(json!({ "rate_limits": rules, "maintenance": {} }), json!({}));
    fixture.front.supervisor.request(json!({ "type": "handOver" }));
    let status = thread::scope(|scope| {
        let asking = scope.spawn(|| fixture.status(""));
        tell_taken(&fixture, &json!([null]));
        asking.join().unwrap()
    });
    assert_eq!(status, 503);
}

fn shared_front() -> Fixture {
    Fixture::with(json!({ "sharesRates": true }))
}

/// Answers the next request for counts.
fn tell_taken(fixture: &Fixture, taken: &Value) {
    let asked = fixture.front.supervisor.report("what it asks", |report| report["type"] == "take");
    fixture.front.supervisor.send(&json!({ "type": "taken", "id": asked["id"], "taken": taken }));
}
