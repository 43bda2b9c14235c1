//! Parameters as JSON text. Not generic: what [`super::param_types`] says of types ends in one of the few methods here.

use crate::json_bridge::write::MAX_EXACT_INTEGER;
use base64::{engine::general_purpose::STANDARD as BASE64, Engine};
use serde_json::Value;

/// What the parameters are for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Sql,
    /// Every argument is text or bytes.
    Redis,
}

/// A list of parameters being made: what a [`super::ToParam`] adds itself to.
pub struct Params {
    out: Vec<u8>,
    count: usize,
    dialect: Dialect,
    problem: Option<String>,
}

impl Params {
    /// The beginning of a statement: `{"sql": ..., "params": [`.
    fn of_statement(sql: &str) -> Self {
        let mut out = Vec::with_capacity(sql.len() + 128);
        out.extend_from_slice(b"{\"sql\":");
        write_text(&mut out, sql);
        out.extend_from_slice(b",\"params\":[");
        Params { out, count: 0, dialect: Dialect::Sql, problem: None }
    }

    /// The beginning of a Redis command: `[`.
    pub(super) fn of_command() -> Self {
        Params { out: b"[".to_vec(), count: 0, dialect: Dialect::Redis, problem: None }
    }

    /// The finished JSON text.
    ///
    /// # Errors
    /// A sentence: one of the values cannot be a parameter.
    pub(super) fn finish(mut self) -> Result<Vec<u8>, String> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        self.out.extend_from_slice(match self.dialect {
            Dialect::Sql => b"]}",
            Dialect::Redis => b"]",
        });
        Ok(self.out)
    }

    /// Adds NULL.
    #[inline(never)]
    pub fn null(&mut self) {
        self.next();
        match self.dialect {
            Dialect::Sql => self.out.extend_from_slice(b"null"),
            Dialect::Redis => self.refuse("Redis has no null"),
        }
    }

    /// Adds a boolean.
    #[inline(never)]
    pub fn bool(&mut self, value: bool) {
        self.next();
        match self.dialect {
            Dialect::Sql => self.out.extend_from_slice(if value { b"true" } else { b"false" }),
            Dialect::Redis => self.refuse("Redis has no booleans"),
        }
    }

    /// Adds an integer.
    #[inline(never)]
    pub fn integer(&mut self, value: i64) {
        self.next();
        self.number(&value, value.unsigned_abs() <= MAX_EXACT_INTEGER);
    }

    /// Adds an integer that is not negative.
    #[inline(never)]
    pub fn unsigned(&mut self, value: u64) {
        self.next();
        self.number(&value, value <= MAX_EXACT_INTEGER);
    }

    /// Adds a number. JSON has none for NaN and the infinities: they are refused when the call is made.
    #[inline(never)]
    pub fn float(&mut self, value: f64) {
        self.next();
        match (value.is_finite(), self.dialect) {
            (false, _) => self.refuse("NaN and infinite numbers cannot be sent"),
            (true, Dialect::Sql) => serde_json::to_writer(&mut self.out, &value).expect("a number is always JSON"),
            (true, Dialect::Redis) => write_text(&mut self.out, &value.to_string()),
        }
    }

    /// Adds a text.
    #[inline(never)]
    pub fn text(&mut self, value: &str) {
        self.next();
        write_text(&mut self.out, value);
    }

    /// Adds bytes.
    #[inline(never)]
    pub fn blob(&mut self, value: &[u8]) {
        self.next();
        self.out.extend_from_slice(match self.dialect {
            Dialect::Sql => b"{\"blob\":\"",
            Dialect::Redis => b"{\"base64\":\"",
        });
        let at = self.out.len();
        self.out.resize(at + value.len().div_ceil(3) * 4, 0);
        let written = BASE64.encode_slice(value, &mut self.out[at..]).expect("base64 takes four bytes for three");
        self.out.truncate(at + written);
        self.out.extend_from_slice(b"\"}");
    }

    /// Adds a JSON value: a scalar as what it is, an array or object as JSON.
    #[inline(never)]
    pub fn json(&mut self, value: &Value) {
        match value {
            Value::Null => self.null(),
            Value::Bool(value) => self.bool(*value),
            Value::String(text) => self.text(text),
            Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(integer), ..) => self.integer(integer),
                (_, Some(integer), _) => self.unsigned(integer),
                (.., Some(float)) => self.float(float),
                _ => self.text(&number.to_string()),
            },
            Value::Array(_) | Value::Object(_) => self.document(&value.to_string()),
        }
    }

    /// Adds all elements of a JSON array; `null` is an empty one.
    #[inline(never)]
    pub(super) fn json_list(&mut self, list: &Value) {
        match list {
            Value::Null => {}
            Value::Array(values) => values.iter().for_each(|value| self.json(value)),
            _ => {
                self.next();
                self.refuse("a list of parameters given as JSON must be an array");
            }
        }
    }

    fn document(&mut self, json: &str) {
        match self.dialect {
            Dialect::Redis => self.text(json),
            Dialect::Sql => {
                self.next();
                self.out.extend_from_slice(b"{\"json\":");
                write_text(&mut self.out, json);
                self.out.push(b'}');
            }
        }
    }

    fn number(&mut self, value: &dyn std::fmt::Display, is_exact: bool) {
        let text = value.to_string();
        let (before, after) = match self.dialect {
            Dialect::Redis => ("\"", "\""),
            Dialect::Sql if is_exact => ("", ""),
            Dialect::Sql => ("{\"int\":\"", "\"}"),
        };
        for part in [before, &text, after] {
            self.out.extend_from_slice(part.as_bytes());
        }
    }

    fn next(&mut self) {
        if self.count > 0 {
            self.out.push(b',');
        }
        self.count += 1;
    }

    #[cold]
    fn refuse(&mut self, why: &str) {
        let text = format!("parameter {}: {why}", self.count);
        self.problem.get_or_insert(text);
    }
}

/// A statement and its parameters as the payload of a call, or why they cannot be one.
#[inline(never)]
pub(super) fn statement(sql: &str, add: &dyn Fn(&mut Params)) -> Result<Vec<u8>, String> {
    let mut params = Params::of_statement(sql);
    add(&mut params);
    params.finish()
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("a string is always JSON");
}
