//! Statements of handlers: their checks, and placeholders.
#[cfg(fuzzing)]
pub mod fuzzing;
#[cfg(test)]
mod golden;
mod refuse;
mod scan;

use std::sync::Arc;

use edge_service::error::CallError;
use edge_service::sql::{self, Params, number};

/// The protocol limits the number of parameters to 16 bits.
const MAX_PARAMS: usize = 65_535;

/// A statement that may be sent to the server.
#[derive(Debug)]
pub struct Statement {
    /// The text, with `$n` as placeholders. The same text is the same `Arc` as long as it is cached.
    pub sql: Arc<str>,
    pub params: Vec<Param>,
}

/// A value, in the format in which it is sent; the server infers its type.
#[derive(Debug, PartialEq)]
pub enum Param {
    Null,
    /// A value in text format.
    Text(String),
    /// A value in binary format.
    Bytes(Vec<u8>),
}

impl sql::Param for Param {
    const MAX: usize = MAX_PARAMS;

    fn null() -> Self {
        Self::Null
    }

    fn boolean(value: bool) -> Self {
        Self::Text(value.to_string())
    }

    fn number(json: &str) -> Self {
        Self::Text(number::printed(json))
    }

    fn integer(digits: String) -> Self {
        Self::Text(digits)
    }

    fn text(text: String) -> Self {
        Self::Text(text)
    }

    fn bytes(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

/// Reads the payload of a call, `{"sql", "params"}`, and checks the statement.
///
/// # Errors
///
/// `invalid`, naming the wrong member, or saying why the statement is refused.
pub fn parse(payload: &[u8], in_transaction: bool) -> Result<Statement, CallError> {
    sql::parse(payload, |sql, params: Params<Param>| {
        let sql = check(sql, params.count, in_transaction)?;
        Ok(Statement { sql, params: params.values })
    })
}

/// Returns the statement as it is sent, or why it is refused.
fn check(sql: &str, params: usize, in_transaction: bool) -> Result<Arc<str>, String> {
    let scanned = scan::scan(sql);
    let refused = if in_transaction { scanned.refused_in_transaction } else { scanned.refused };
    if let Some(refusal) = refused {
        return Err(refusal.message());
    }
    if scanned.placeholders != params as f64 {
        let hint = if scanned.numbered { "" } else { " (an operator with ? is written with ??)" };
        return Err(format!("{}{hint}", sql::miscounted(scanned.placeholders, params)));
    }
    if params > MAX_PARAMS {
        return Err(format!("a statement can have {MAX_PARAMS} parameters at most"));
    }
    Ok(scanned.sql)
}

#[cfg(test)]
mod tests {
    use edge_service::error::Kind;

    use super::*;

    fn error(payload: &[u8]) -> String {
        parse(payload, false).unwrap_err().message
    }

    #[test]
    fn a_call_has_its_statement_and_values() {
        let Statement { sql, params } = parse(br#"{"sql": "SELECT ?, ?", "params": [1, null]}"#, false).unwrap();
        assert_eq!((&*sql, params), ("SELECT $1, $2", vec![Param::Text("1".to_owned()), Param::Null]));
        let refused = parse(br#"{"sql": "BEGIN"}"#, true).unwrap_err();
        assert_eq!(refused.kind, Kind::Invalid);
    }

    #[test]
    fn bytes_that_are_not_text_are_replaced() {
        let Statement { sql, .. } = parse(b"{\"sql\": \"SELECT '\xff\xe2\x82'\"}", false).unwrap();
        assert_eq!(&*sql, "SELECT '\u{fffd}\u{fffd}'");
    }

    #[test]
    fn parameters_are_counted_up_to_any_number_and_kept_up_to_a_limit() {
        let many = |n: usize| vec!["0"; n].join(",");
        let payload = |sql: &str, n: usize| format!(r#"{{"sql": "{sql}", "params": [{}]}}"#, many(n)).into_bytes();
        assert_eq!(parse(&payload("$65535", MAX_PARAMS), false).unwrap().params.len(), MAX_PARAMS);
        assert_eq!(error(&payload("$65536", 65_536)), "a statement can have 65535 parameters at most");
        assert_eq!(error(&payload(&"? ".repeat(65_536), 65_536)), "a statement can have 65535 parameters at most");
        assert!(error(&payload("$1", 200_000)).ends_with("1 placeholder but 200000 parameters came with it"));
        assert!(error(&payload(&"? ".repeat(200_000), 1)).starts_with("the statement has 200000 placeholders"));
        let many_params = String::from_utf8(payload("", 200_000)).unwrap();
        let read = sql::read::<Param>(&many_params).unwrap();
        assert_eq!(read.params.values.len(), MAX_PARAMS + 1);
        let wrong = format!(r#"{{"sql": "", "params": [{}, []]}}"#, many(100_000));
        assert!(error(wrong.as_bytes()).starts_with("payload.params[100000]: must be null, true"));
    }
}
