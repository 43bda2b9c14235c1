//! What is made of policies has bounded memory, and is made again.
use serde_json::{Value, json};

use super::echo;
use crate::support::{Front, get};

const LIMIT: usize = 24 << 20;
/// Of endpoints, each with a policy of its own.
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
