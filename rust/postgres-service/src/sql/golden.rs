//! The cases that the tests of the TypeScript read, too: the statements of all SQL databases are read alike.
use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Param, check};

const CASES: &str = include_str!("../../../../test/golden/statements.json");

#[derive(Deserialize)]
struct Cases {
    statements: Vec<StatementCase>,
    payloads: Vec<PayloadCase>,
}

#[derive(Deserialize)]
struct StatementCase {
    sql: String,
    params: usize,
    in_transaction: bool,
    sent: Option<String>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct PayloadCase {
    payload: String,
    sql: Option<String>,
    sent: Option<Vec<Value>>,
    error: Option<String>,
}

fn cases() -> Cases {
    serde_json::from_str(CASES).unwrap()
}

#[test]
fn statements_are_translated_and_refused_alike() {
    let mut differences = String::new();
    for StatementCase { sql, params, in_transaction, sent, error } in cases().statements {
        let expected = sent.ok_or_else(|| error.unwrap());
        // Twice: from the cache, too.
        for _ in 0..2 {
            let outcome = check(&sql, params, in_transaction).map(|sent| sent.to_string());
            if outcome != expected {
                writeln!(differences, "{sql:?} ({in_transaction}): {outcome:?}, not {expected:?}").unwrap();
            }
        }
    }
    assert!(differences.is_empty(), "\n{differences}");
}

#[test]
fn payloads_are_read_alike() {
    let mut differences = String::new();
    for PayloadCase { payload, sql, sent, error } in cases().payloads {
        let expected = sent.map(|sent| (sql.unwrap(), sent)).ok_or_else(|| error.unwrap());
        let outcome = match edge_service::sql::read(&payload) {
            Ok(read) => Ok((read.sql.into_owned(), read.params.values.iter().map(as_json).collect())),
            // What is wrong with it is in the words of the parser.
            Err(error) if error.starts_with("payload: must be JSON: ") => Err("payload: must be JSON: ".to_owned()),
            Err(error) => Err(error),
        };
        if outcome != expected {
            writeln!(differences, "{payload}: {outcome:?}, not {expected:?}").unwrap();
        }
    }
    assert!(differences.is_empty(), "\n{differences}");
}

fn as_json(param: &Param) -> Value {
    match param {
        Param::Null => Value::Null,
        Param::Text(text) => json!(text),
        Param::Bytes(bytes) => json!({ "base64": STANDARD.encode(bytes) }),
    }
}
