//! A sink that writes compact JSON text.

use super::ser::Sink;
use super::trouble::Failed;
use serde::Serialize;
use std::fmt::Display;

/// JSON text being written.
pub struct Text {
    out: Vec<u8>,
    in_key: bool,
    raw: bool,
    extended: bool,
}

/// The largest integer that a double holds exactly, as do all smaller ones.
const EXACT: u64 = (1 << 53) - 1;

impl Text {
    pub fn new() -> Self {
        Text { out: Vec::with_capacity(128), in_key: false, raw: false, extended: false }
    }

    /// MongoDB's Extended JSON.
    pub fn extended() -> Self {
        Text { extended: true, ..Self::new() }
    }

    /// An integer that a double does not hold, as Extended JSON has it.
    #[cold]
    fn long(&mut self, value: i128) -> Result<(), Failed> {
        if i64::try_from(value).is_err() {
            return Err(Failed::because(&format_args!("{value} is too large for an integer of MongoDB")));
        }
        self.separate();
        self.out.extend_from_slice(format!("{{\"$numberLong\":\"{value}\"}}").as_bytes());
        Ok(())
    }

    fn is_long(&self, magnitude: u64) -> bool {
        self.extended && magnitude > EXACT && !self.in_key
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// A comma, unless this is the first thing of its kind: the last byte of a finished value is never one of these.
    fn separate(&mut self) {
        if !matches!(self.out.last(), None | Some(b'[' | b'{' | b':')) {
            self.out.push(b',');
        }
    }

    /// A value that serde_json writes in one piece. As a key it stands in quotes.
    fn scalar<T: Serialize>(&mut self, value: T) -> Result<(), Failed> {
        if self.in_key {
            self.out.push(b'"');
        } else {
            self.separate();
        }
        serde_json::to_writer(&mut self.out, &value).map_err(|error| Failed::because(&error as &dyn Display))?;
        if self.in_key {
            self.out.push(b'"');
        }
        Ok(())
    }

    fn open(&mut self, bracket: u8) -> Result<(), Failed> {
        self.refuse_in_key()?;
        self.separate();
        self.out.push(bracket);
        Ok(())
    }

    fn refuse_in_key(&self) -> Result<(), Failed> {
        match self.in_key {
            true => Err(Failed::because(&"the keys of a map must be strings, numbers or booleans")),
            false => Ok(()),
        }
    }
}

impl Sink for Text {
    fn null(&mut self) -> Result<(), Failed> {
        self.refuse_in_key()?;
        self.scalar(())
    }

    fn bool(&mut self, value: bool) -> Result<(), Failed> {
        self.scalar(value)
    }

    fn signed(&mut self, value: i64) -> Result<(), Failed> {
        if self.is_long(value.unsigned_abs()) {
            return self.long(value.into());
        }
        self.scalar(value)
    }

    fn unsigned(&mut self, value: u64) -> Result<(), Failed> {
        if self.is_long(value) {
            return self.long(value.into());
        }
        self.scalar(value)
    }

    fn big_signed(&mut self, value: i128) -> Result<(), Failed> {
        if self.is_long(u64::try_from(value.unsigned_abs()).unwrap_or(u64::MAX)) {
            return self.long(value);
        }
        self.scalar(value)
    }

    fn big_unsigned(&mut self, value: u128) -> Result<(), Failed> {
        if self.is_long(u64::try_from(value).unwrap_or(u64::MAX)) {
            return self.long(i128::try_from(value).unwrap_or(i128::MAX));
        }
        self.scalar(value)
    }

    fn short_float(&mut self, value: f32) -> Result<(), Failed> {
        self.scalar(value)
    }

    fn float(&mut self, value: f64) -> Result<(), Failed> {
        self.scalar(value)
    }

    fn text(&mut self, value: &str) -> Result<(), Failed> {
        // begin_key() has separated already.
        if !self.in_key {
            self.separate();
        }
        if std::mem::take(&mut self.raw) {
            self.out.extend_from_slice(value.as_bytes());
            return Ok(());
        }
        serde_json::to_writer(&mut self.out, value).map_err(|error| Failed::because(&error as &dyn Display))
    }

    fn next_is_raw(&mut self) {
        self.raw = true;
    }

    fn begin_list(&mut self) -> Result<(), Failed> {
        self.open(b'[')
    }

    fn end_list(&mut self) -> Result<(), Failed> {
        self.out.push(b']');
        Ok(())
    }

    fn begin_object(&mut self) -> Result<(), Failed> {
        self.open(b'{')
    }

    fn end_object(&mut self) -> Result<(), Failed> {
        self.out.push(b'}');
        Ok(())
    }

    fn begin_key(&mut self) -> Result<(), Failed> {
        self.separate();
        self.in_key = true;
        Ok(())
    }

    fn end_key(&mut self) -> Result<(), Failed> {
        self.in_key = false;
        self.out.push(b':');
        Ok(())
    }

    fn key(&mut self, key: &str) -> Result<(), Failed> {
        self.text(key)?;
        self.out.push(b':');
        Ok(())
    }
}
