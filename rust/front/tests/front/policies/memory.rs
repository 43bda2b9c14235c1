//! What is made of policies has bounded memory, and is made again.
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::echo;
use crate::support::{Front, get};

const LIMIT: usize = 24 << 20;
/// The number of endpoints, each with a policy of its own.
const ENDPOINTS: usize = 12;

/// Parameters with patterns that others do not have. Each takes 2 MiB.
fn policy(number: usize) -> Value {
    let names = ["a", "b", "c"];
    let pattern = |name: &&str| {
        let pattern = format!("^\\p{{L}}{{40}}{name}{number}$");
        json!({ "type": ["string"], "pattern": [pattern, pattern, 4_000] })
    };
    let parameter = |(at, name): (usize, &&str)| {
        json!({
            "in": "query", "name": name, "required": false, "style": "form", "explode": true, "allowEmpty": false,
            "isJson": false, "shape": { "schema": at, "types": ["string"] },
        })
    };
    let parameters: Vec<_> = names.iter().enumerate().map(parameter).collect();
    let schemas: Vec<_> = names.iter().map(pattern).collect();
    json!({ "validate": json!({ "mode": "enforce", "parameters": parameters, "schemas": schemas }).to_string() })
}

#[test]
fn policies_of_a_domain_do_not_grow_beyond_their_memory_and_are_enforced_all_the_same() {
    let front = Front::with(json!({ "policyMemoryBytes": LIMIT }));
    let handler = front.handler(echo);
    let endpoints = std::array::from_fn(|number| get(&format!("/{number}")).policies(policy(number)));
    front.serve::<ENDPOINTS>(&handler, endpoints);
    let before = front.memory();
    for number in (0..ENDPOINTS).chain(0..2) {
        let fits = format!("/{number}?a={}a{number}", "x".repeat(40));
        assert_eq!(front.get(&fits, "").status, 200);
        assert_eq!(front.get(&format!("/{number}?b={}", "x".repeat(40)), "").status, 400);
    }
    // Each policy takes more than 6 MiB, and one may be made while others are not yet forgotten.
    let grown = front.memory() - before;
    assert!(grown < 2 * LIMIT, "it has grown by {grown} bytes");
}

/// Endpoints that are told at a time, as the supervisor does it.
const BATCH: usize = 500;

/// Header lines of 240 KB.
fn large_headers() -> String {
    let set: BTreeMap<_, _> = (0..60).map(|number| (format!("X-{number}"), "x".repeat(4_000))).collect();
    json!({ "response": { "set": set } }).to_string()
}

#[test]
fn what_all_endpoints_of_a_domain_share_is_in_memory_once() {
    let front = Front::start();
    let handler = front.handler(echo);
    let texts = json!({ "d": large_headers() });
    // Each has a policy of its own besides.
    let endpoint = |number: usize| {
        let policies = json!({ "body_limit": number, "parts": { "headers": "d" } });
        get(&format!("/{number}")).named_policies(policies).served_by(&handler)
    };
    let numbers: Vec<_> = (0..5_000).collect();
    let before = front.memory();
    for batch in numbers.chunks(BATCH) {
        front.apply_with(texts.clone(), batch.iter().map(|&number| endpoint(number)));
    }
    for number in [0, 2_500, 4_999] {
        assert_eq!(front.get(&format!("/{number}"), "").header("x-59"), Some("x".repeat(4_000)));
    }
    // If each had its own, it would be 1.2 GB.
    let grown = front.memory() - before;
    assert!(grown < 64 << 20, "it has grown by {grown} bytes");
}

#[test]
fn an_endpoint_whose_policies_have_not_come_is_refused_until_they_do() {
    let front = Front::start();
    let handler = front.handler(echo);
    let state = || get("/").named_policies(json!({ "parts": { "headers": "d" } })).served_by(&handler);
    front.apply([state()]);
    let refused = front.get("/", "");
    assert_eq!(refused.status, 503);
    assert!(refused.text().contains("cannot be enforced"), "{}", refused.text());
    front.apply_with(json!({ "d": large_headers() }), [state()]);
    assert_eq!(front.get("/", "").status, 200);
    // Another has the text already.
    front.apply([get("/other").named_policies(json!({ "parts": { "headers": "d" } })).served_by(&handler)]);
    assert_eq!(front.get("/other", "").status, 200);
}

#[test]
fn policies_of_a_supervisor_of_the_version_before_are_enforced() {
    let front = Front::start();
    let handler = front.handler(echo);
    let whole = json!({ "headers": { "response": { "set": { "X-A": "1" } } }, "auth": { "basic": {
        "realm": "r", "users": [] } } });
    front.serve(&handler, [get("/").named_policies(whole)]);
    let refused = front.get("/", "");
    assert_eq!((refused.status, refused.header("x-a")), (401, Some("1".into())));
}
