//! A sink that builds a `serde_json::Value`.

use super::ser::Sink;
use super::trouble::Failed;
use serde_json::{Map, Value};
use std::fmt::Display;

/// A value being built.
pub struct Tree {
    /// The lists and objects that are open, the innermost last.
    open: Vec<Open>,
    done: Value,
    in_key: bool,
    raw: bool,
}

enum Open {
    List(Vec<Value>),
    /// The members so far, and the key of the next.
    Object(Map<String, Value>, String),
}

impl Tree {
    pub fn new() -> Self {
        Tree { open: Vec::new(), done: Value::Null, in_key: false, raw: false }
    }

    pub fn into_value(self) -> Value {
        self.done
    }

    fn put(&mut self, value: Value) -> Result<(), Failed> {
        if self.in_key {
            return self.put_key(value);
        }
        match self.open.last_mut() {
            None => self.done = value,
            Some(Open::List(values)) => values.push(value),
            Some(Open::Object(members, key)) => {
                members.insert(std::mem::take(key), value);
            }
        }
        Ok(())
    }

    fn put_key(&mut self, value: Value) -> Result<(), Failed> {
        let text = match value {
            Value::String(text) => text,
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            _ => return Err(Failed::because(&"the keys of a map must be strings, numbers or booleans")),
        };
        if let Some(Open::Object(_, key)) = self.open.last_mut() {
            *key = text;
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), Failed> {
        let value = match self.open.pop() {
            Some(Open::List(values)) => Value::Array(values),
            Some(Open::Object(members, _)) => Value::Object(members),
            None => Value::Null,
        };
        self.put(value)
    }

    fn open(&mut self, open: Open) -> Result<(), Failed> {
        if self.in_key {
            return self.put_key(Value::Null);
        }
        self.open.push(open);
        Ok(())
    }
}

impl Sink for Tree {
    fn null(&mut self) -> Result<(), Failed> {
        self.put(Value::Null)
    }

    fn bool(&mut self, value: bool) -> Result<(), Failed> {
        self.put(Value::Bool(value))
    }

    fn signed(&mut self, value: i64) -> Result<(), Failed> {
        self.put(value.into())
    }

    fn unsigned(&mut self, value: u64) -> Result<(), Failed> {
        self.put(value.into())
    }

    fn big_signed(&mut self, value: i128) -> Result<(), Failed> {
        self.big(&value, serde_json::Number::from_i128(value))
    }

    fn big_unsigned(&mut self, value: u128) -> Result<(), Failed> {
        self.big(&value, serde_json::Number::from_u128(value))
    }

    fn short_float(&mut self, value: f32) -> Result<(), Failed> {
        self.put(value.into())
    }

    fn float(&mut self, value: f64) -> Result<(), Failed> {
        self.put(value.into())
    }

    fn text(&mut self, value: &str) -> Result<(), Failed> {
        if std::mem::take(&mut self.raw) {
            let value = serde_json::from_str(value).map_err(|error| Failed::because(&error as &dyn Display))?;
            return self.put(value);
        }
        self.put(value.into())
    }

    fn next_is_raw(&mut self) {
        self.raw = true;
    }

    fn begin_list(&mut self) -> Result<(), Failed> {
        self.open(Open::List(Vec::new()))
    }

    fn end_list(&mut self) -> Result<(), Failed> {
        self.close()
    }

    fn begin_object(&mut self) -> Result<(), Failed> {
        self.open(Open::Object(Map::new(), String::new()))
    }

    fn end_object(&mut self) -> Result<(), Failed> {
        self.close()
    }

    fn begin_key(&mut self) -> Result<(), Failed> {
        self.in_key = true;
        Ok(())
    }

    fn end_key(&mut self) -> Result<(), Failed> {
        self.in_key = false;
        Ok(())
    }

    fn key(&mut self, key: &str) -> Result<(), Failed> {
        self.in_key = true;
        self.put(key.into())?;
        self.in_key = false;
        Ok(())
    }
}

impl Tree {
    fn big(&mut self, value: &dyn Display, number: Option<serde_json::Number>) -> Result<(), Failed> {
        match number {
            Some(number) => self.put(Value::Number(number)),
            None => Err(Failed::because(&format_args!("{value} is too large for a JSON value"))),
        }
    }
}
