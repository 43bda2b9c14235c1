//! Writes values as JSON. A type's `Serialize` is compiled once, for `erased_serde`, whatever is being written.

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter};
use serde_json::{Serializer, Value};
use std::fmt::Display;
use std::io;

/// The largest integer that a double holds exactly, as do all smaller ones.
pub const MAX_EXACT_INTEGER: u64 = (1 << 53) - 1;

/// Any value as a [`serde_json::Value`]. What `json!(expression)` becomes.
///
/// # Panics
/// If `value` cannot be JSON: a map whose keys are not strings, or a `Serialize` that fails.
#[doc(hidden)]
pub fn to_value<T: Serialize + ?Sized>(value: &T) -> Value {
    value_of(&value)
}

#[inline(never)]
fn value_of(value: &dyn erased_serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_else(|error| panic!("json!: {error}"))
}

/// Any value as JSON text.
///
/// # Errors
/// It cannot be JSON.
#[doc(hidden)]
pub fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, serde_json::Error> {
    json_of(&value)
}

#[inline(never)]
fn json_of(value: &dyn erased_serde::Serialize) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(value)
}

/// Any value as JSON text, in which integers that a double does not hold are MongoDB's `{"$numberLong": "..."}`.
///
/// # Errors
/// A sentence: it cannot be JSON, or has an integer that MongoDB does not know.
#[doc(hidden)]
pub fn to_extended_json<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, String> {
    extended_json_of(&value)
}

#[inline(never)]
fn extended_json_of(value: &dyn erased_serde::Serialize) -> Result<Vec<u8>, String> {
    let mut text = Vec::with_capacity(128);
    let mut serializer = Serializer::with_formatter(&mut text, ExtendedJson { in_key: false });
    match value.serialize(&mut serializer) {
        Ok(()) => Ok(text),
        Err(error) => Err(error.to_string()),
    }
}

/// MongoDB's Extended JSON.
struct ExtendedJson {
    /// Integers that are keys stay what they are.
    in_key: bool,
}

impl ExtendedJson {
    fn write_integer<N>(&self, out: &mut (impl io::Write + ?Sized), value: N) -> io::Result<()>
    where
        N: Copy + Display + TryInto<i64>,
    {
        match value.try_into() {
            _ if self.in_key => write!(out, "{value}"),
            Ok(long) if long.unsigned_abs() <= MAX_EXACT_INTEGER => write!(out, "{long}"),
            Ok(long) => write!(out, "{{\"$numberLong\":\"{long}\"}}"),
            Err(_) => Err(io::Error::other(format!("{value} is too large for an integer of MongoDB"))),
        }
    }
}

// Smaller integers are written as in any other JSON.
impl Formatter for ExtendedJson {
    fn write_i64<W: io::Write + ?Sized>(&mut self, out: &mut W, value: i64) -> io::Result<()> {
        self.write_integer(out, value)
    }

    fn write_u64<W: io::Write + ?Sized>(&mut self, out: &mut W, value: u64) -> io::Result<()> {
        self.write_integer(out, value)
    }

    fn write_i128<W: io::Write + ?Sized>(&mut self, out: &mut W, value: i128) -> io::Result<()> {
        self.write_integer(out, value)
    }

    fn write_u128<W: io::Write + ?Sized>(&mut self, out: &mut W, value: u128) -> io::Result<()> {
        self.write_integer(out, value)
    }

    fn begin_object_key<W: io::Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.in_key = true;
        CompactFormatter.begin_object_key(out, first)
    }

    fn end_object_key<W: io::Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.in_key = false;
        CompactFormatter.end_object_key(out)
    }
}
