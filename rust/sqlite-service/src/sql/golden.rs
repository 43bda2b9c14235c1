//! Statements, and what became of them before they were read here. Handlers rely on it.
use std::fmt::Write;

use serde::Deserialize;

use super::check;

const CASES: &str = include_str!("../../../../test/golden/sqlite-statements.json");

#[derive(Deserialize)]
struct Cases {
    statements: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    sql: String,
    params: usize,
    in_transaction: bool,
    sent: Option<String>,
    error: Option<String>,
}

#[test]
fn statements_are_translated_and_refused_as_ever() {
    let cases: Cases = serde_json::from_str(CASES).unwrap();
    let mut differences = String::new();
    for Case { sql, params, in_transaction, sent, error } in cases.statements {
        let expected = sent.ok_or_else(|| error.unwrap());
        // Twice: from the cache, too.
        for _ in 0..2 {
            let outcome = check(&sql, params, in_transaction).map(|(sent, _)| sent.to_string());
            if outcome != expected {
                writeln!(differences, "{sql:?} ({in_transaction}): {outcome:?}, not {expected:?}").unwrap();
            }
        }
    }
    assert!(differences.is_empty(), "\n{differences}");
}
