//! The table of odd requests, `test/golden/requests.json`, which tests of the management API read too.
//!
//! A text is a string, or a list of strings and of `[times, string]`. Its characters are bytes. `{get}`, `{post}` and
//! `{host}` are where it is sent, and `{smuggled}` is a request that must never be one of its own.
use std::fs;

use serde_json::Value;

use super::http2::Field;

pub struct Table(Value);

impl Table {
    pub fn read() -> Self {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../test/golden/requests.json");
        Self(serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap())
    }

    /// The rows of a section.
    pub fn section(&self, title: &str) -> &[Value] {
        let mut sections = self.0["sections"].as_array().unwrap().iter();
        let section = sections.find(|section| section["title"] == title).unwrap();
        section["rows"].as_array().unwrap()
    }

    /// The rows of all sections.
    pub fn rows(&self) -> impl Iterator<Item = &Value> {
        self.0["sections"].as_array().unwrap().iter().flat_map(|section| section["rows"].as_array().unwrap())
    }

    pub fn row(&self, input: &str) -> &Value {
        self.rows().find(|row| row["input"] == input).unwrap()
    }

    pub fn only_http2(&self) -> &[Value] {
        self.0["onlyHttp2"].as_array().unwrap()
    }

    /// The status of an outcome.
    pub fn status(&self, outcome: &str) -> u16 {
        if outcome == "taken" { 200 } else { self.0["statuses"][outcome].as_u64().unwrap() as u16 }
    }

    pub fn smuggled(&self) -> &str {
        self.0["smuggled"].as_str().unwrap()
    }

    pub fn bytes(&self, text: &Value) -> Vec<u8> {
        let pieces: Vec<String> = match text {
            Value::Array(pieces) => pieces.iter().map(repeated).collect(),
            text => vec![repeated(text)],
        };
        let filled = pieces.concat().replace("{smuggled}", self.smuggled());
        let filled = filled.replace("{get}", "/odd/get").replace("{post}", "/odd/post").replace("{host}", "localhost");
        filled.chars().map(|byte| u8::try_from(byte).unwrap()).collect()
    }

    /// Fields are `[name, text]`, or `[name, text, times]`.
    pub fn fields(&self, fields: &Value) -> Vec<Field> {
        let mut all = Vec::new();
        for field in fields.as_array().unwrap() {
            let times = field.get(2).map_or(1, |times| times.as_u64().unwrap());
            let field = (self.bytes(&field[0]), self.bytes(&field[1]));
            all.extend((0..times).map(|_| field.clone()));
        }
        all
    }
}

fn repeated(piece: &Value) -> String {
    match piece {
        Value::Array(pair) => pair[1].as_str().unwrap().repeat(pair[0].as_u64().unwrap() as usize),
        piece => piece.as_str().unwrap().to_owned(),
    }
}
