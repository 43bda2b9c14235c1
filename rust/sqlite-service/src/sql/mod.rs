//! Statements of handlers, as their calls have them.
mod verb;

use std::sync::Arc;

use edge_service::error::CallError;
use edge_service::sql::{self, Params, number};

pub use verb::{Verb, after_blanks};

/// The largest integer that a double, and all smaller ones, represent.
const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

/// A statement that SQLite has not read.
#[derive(Debug)]
pub struct Statement {
    pub sql: Arc<str>,
    pub verb: Verb,
    pub params: Vec<Value>,
    /// How many came; no more are kept than a statement can have, and one.
    pub param_count: usize,
}

/// A parameter.
#[derive(Debug, PartialEq)]
pub enum Value {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
    /// The digits of an integer that does not fit in 64 bits.
    TooLarge(String),
}

impl sql::Param for Value {
    const MAX: usize = 32_766;

    fn null() -> Self {
        Self::Null
    }

    fn boolean(value: bool) -> Self {
        Self::Integer(value.into())
    }

    /// An integer where the number has no fraction and is exact, as `1e3` is.
    fn number(json: &str) -> Self {
        if let Ok(integer) = json.parse::<i64>() {
            if integer.unsigned_abs() as f64 <= MAX_SAFE_INTEGER {
                return Self::Integer(integer);
            }
        }
        // JSON is a subset of what is parsed here.
        match json.parse::<f64>() {
            Ok(value) if value.fract() == 0.0 && value.abs() <= MAX_SAFE_INTEGER => Self::Integer(value as i64),
            Ok(value) => Self::Real(value),
            Err(_) => Self::Null,
        }
    }

    fn integer(digits: String) -> Self {
        digits.parse().map_or(Self::TooLarge(digits), Self::Integer)
    }

    fn text(text: String) -> Self {
        Self::Text(text)
    }

    fn bytes(bytes: Vec<u8>) -> Self {
        Self::Blob(bytes)
    }
}

impl Value {
    /// Why it cannot be bound.
    fn problem(&self) -> Option<String> {
        match self {
            Self::TooLarge(digits) => Some(format!("the integer {digits} does not fit in 64 bits")),
            Self::Text(text) if text.contains('\0') => {
                Some("a text with the character U+0000 is cut there by SQLite: send it as blob".to_owned())
            }
            _ => None,
        }
    }
}

/// Reads the payload of a call, `{"sql", "params"}`.
///
/// # Errors
///
/// `invalid`, naming the wrong member or parameter.
pub fn parse(payload: &[u8]) -> Result<Statement, CallError> {
    sql::parse(payload, |sql, Params { values: params, count: param_count, .. }: Params<Value>| {
        match params.iter().find_map(Value::problem) {
            Some(problem) => Err(problem),
            None => Ok(Statement { sql: sql.into(), verb: Verb::of(sql), params, param_count }),
        }
    })
}

/// A number as it is written in rows; those that JSON has not are texts.
pub fn write_real(value: f64, out: &mut Vec<u8>) {
    let text = number::print(value);
    if value.is_finite() {
        out.extend_from_slice(text.as_bytes());
    } else {
        out.extend_from_slice(format!("\"{text}\"").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use edge_service::sql::Param;

    use super::*;

    #[test]
    fn a_call_has_its_statement_and_values() {
        let payload = br#"{"sql": "SELECT ?, :a", "params": [1, null]}"#;
        let Statement { sql, verb, params, param_count } = parse(payload).unwrap();
        assert_eq!((&*sql, verb, param_count), ("SELECT ?, :a", Verb::Select, 2));
        assert_eq!(params, [Value::Integer(1), Value::Null]);
    }

    #[test]
    fn numbers_are_integers_where_they_are_exact() {
        let integer = Value::Integer;
        for (json, value) in [
            ("1", integer(1)),
            ("-0", integer(0)),
            ("-0.0", integer(0)),
            ("1e3", integer(1_000)),
            ("9007199254740991", integer(9_007_199_254_740_991)),
            ("-9007199254740991", integer(-9_007_199_254_740_991)),
            ("9007199254740992", Value::Real(9_007_199_254_740_992.0)),
            ("9223372036854775808", Value::Real(9_223_372_036_854_775_808.0)),
            ("0.5", Value::Real(0.5)),
            ("1e400", Value::Real(f64::INFINITY)),
        ] {
            assert_eq!(Value::number(json), value, "{json}");
        }
        assert_eq!(Value::integer("-9223372036854775808".to_owned()), integer(i64::MIN));
    }

    #[test]
    fn what_sqlite_would_change_is_refused() {
        let error = |params: &str| {
            parse(format!(r#"{{"sql": "SELECT ?", "params": [{params}]}}"#).as_bytes()).unwrap_err().message
        };
        let large = r#"{"int": "9223372036854775808"}"#;
        assert_eq!(error(large), "the integer 9223372036854775808 does not fit in 64 bits");
        assert!(error(r#""a\u0000b""#).contains("U+0000"));
        assert!(error(r#"{"json": "a\u0000b"}"#).contains("U+0000"));
    }
}
