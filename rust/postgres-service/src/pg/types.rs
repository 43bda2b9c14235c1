//! Converts values of PostgreSQL from text format to JSON; the table is in `docs/SERVICE-PROTOCOL.md`.
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use edge_service::sql::json::write_escaped;
use serde::de::IgnoredAny;

/// Looks types up. The element is null when it is not an array; domains are resolved.
pub const CATALOG: &str = "
  SELECT t.oid, CASE WHEN e.typbasetype <> 0 THEN e.typbasetype ELSE e.oid END AS element,
         coalesce(e.typdelim, ',')::text AS delimiter
  FROM pg_catalog.pg_type t
  LEFT JOIN pg_catalog.pg_type e ON t.typcategory = 'A' AND e.oid = t.typelem
  WHERE t.oid = ANY ($1::oid[])";

/// A server that has more types than this, or invents them, has them looked up again.
const MAX_LEARNED: usize = 20_000;
/// The longest integer, of 64 bits.
const INTEGER_BYTES: usize = 20;
/// The most dimensions of an array; PostgreSQL has no more (`MAXDIM`).
const MAX_DIMENSIONS: u8 = 6;
/// Arrays of arrays, which domains make possible, are read recursively. Deeper ones are texts.
const MAX_DEPTH: u8 = 8;

/// Converts a value from text format to JSON.
#[derive(Clone, Debug)]
pub enum Encoder {
    Boolean,
    Bytea,
    Integer,
    Json,
    /// Quotes NaN, Infinity and -Infinity.
    Float,
    /// `2026-01-31 23:59:59.5`; also `infinity`, and `... BC`.
    Timestamp,
    /// The session is in UTC, so the offset is always this.
    Timestamptz,
    Escaped,
    Array(Rc<ArrayEncoder>),
}

#[derive(Debug)]
pub struct ArrayEncoder {
    element: Encoder,
    delimiter: u8,
    depth: u8,
}

/// The encoders of one database. Its own types are looked up in the catalog on first use.
#[derive(Default)]
pub struct Types {
    learned: RefCell<HashMap<u32, Encoder>>,
}

/// A row of the catalog.
pub struct CatalogRow {
    pub oid: u32,
    pub element: Option<u32>,
    pub delimiter: u8,
}

impl Types {
    /// `None` for an unknown type, which must be looked up.
    pub fn encoder(&self, oid: u32) -> Option<Encoder> {
        built_in(oid).or_else(|| self.learned.borrow().get(&oid).cloned())
    }

    /// Adds the types that were looked up; those that the catalog does not have are texts.
    pub fn learn(&self, oids: &[u32], rows: &[CatalogRow]) {
        if self.learned.borrow().len() > MAX_LEARNED {
            self.learned.borrow_mut().clear();
        }
        let found: HashMap<u32, &CatalogRow> = rows.iter().map(|row| (row.oid, row)).collect();
        for oid in oids {
            let array = found.get(oid).and_then(|row| Some((row.element?, row.delimiter)));
            let encoder = match array {
                None => Encoder::Escaped,
                Some((element, delimiter)) => array_of(self.encoder(element).unwrap_or(Encoder::Escaped), delimiter),
            };
            self.learned.borrow_mut().insert(*oid, encoder);
        }
    }
}

fn array_of(element: Encoder, delimiter: u8) -> Encoder {
    let depth = 1 + if let Encoder::Array(inner) = &element { inner.depth } else { 0 };
    if depth > MAX_DEPTH {
        return Encoder::Escaped;
    }
    Encoder::Array(Rc::new(ArrayEncoder { element, delimiter, depth }))
}

/// Fixed oids of base types and their arrays.
fn built_in(oid: u32) -> Option<Encoder> {
    Some(match oid {
        16 => Encoder::Boolean,
        17 => Encoder::Bytea,
        // int8, int2, int4, oid
        20 | 21 | 23 | 26 => Encoder::Integer,
        // json, jsonb
        114 | 3802 => Encoder::Json,
        700 | 701 => Encoder::Float,
        1114 => Encoder::Timestamp,
        1184 => Encoder::Timestamptz,
        // numeric, date, time, timetz, interval, uuid
        1700 | 1082 | 1083 | 1266 | 1186 | 2950
        // "char", name, text, bpchar, varchar, unknown, cidr, macaddr, inet
        | 18 | 19 | 25 | 1042 | 1043 | 705 | 650 | 829 | 869 => Encoder::Escaped,
        1000 => array_of(Encoder::Boolean, b','),
        1001 => array_of(Encoder::Bytea, b','),
        1016 | 1005 | 1007 | 1028 => array_of(Encoder::Integer, b','),
        199 | 3807 => array_of(Encoder::Json, b','),
        1021 | 1022 => array_of(Encoder::Float, b','),
        1115 => array_of(Encoder::Timestamp, b','),
        1185 => array_of(Encoder::Timestamptz, b','),
        1231 | 1182 | 1183 | 1270 | 1187 | 2951 | 1002 | 1003 | 1009 | 1014 | 1015 | 651 | 1040 | 1041 => {
            array_of(Encoder::Escaped, b',')
        }
        _ => return None,
    })
}

impl Encoder {
    /// Adds a value as JSON, whatever the server says: what is not of its type is a text.
    pub fn write(&self, value: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Boolean => out.extend_from_slice(if value == b"t" { b"true" } else { b"false" }),
            Self::Bytea => write_base64(value.get(2..).unwrap_or_default(), out),
            Self::Integer if is_integer(value) && value.len() <= INTEGER_BYTES => out.extend_from_slice(value),
            Self::Float if is_number(value) => out.extend_from_slice(value),
            Self::Json if serde_json::from_slice::<IgnoredAny>(value).is_ok() => out.extend_from_slice(value),
            Self::Integer | Self::Float | Self::Json | Self::Escaped => write_escaped(value, out),
            Self::Timestamp => write_timestamp(value, b"", out),
            Self::Timestamptz => match without_offset(value) {
                Some((timestamp, era)) => write_timestamp(timestamp, era, out),
                None => write_timestamp(value, b"", out),
            },
            Self::Array(array) => array.write(value, out),
        }
    }
}

/// Whether it is an integer of JSON: without zeros in front.
fn is_integer(value: &[u8]) -> bool {
    match value.strip_prefix(b"-").unwrap_or(value) {
        [b'0'] => true,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// Whether it is a number of JSON that is one of a handler, too.
fn is_number(value: &[u8]) -> bool {
    let exponent = value.iter().position(|byte| matches!(byte, b'e' | b'E')).unwrap_or(value.len());
    let (mantissa, exponent) = value.split_at(exponent);
    let point = mantissa.iter().position(|&byte| byte == b'.').unwrap_or(mantissa.len());
    let (integer, fraction) = mantissa.split_at(point);
    let are_digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let exponent = exponent.get(1..).map(|text| text.strip_prefix(b"+").or(text.strip_prefix(b"-")).unwrap_or(text));
    // Parsed only where it may be too large.
    let is_short = exponent.is_none() && value.len() <= INTEGER_BYTES;
    let is_in_range = || std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).is_some_and(f64::is_finite);
    is_integer(integer)
        && fraction.get(1..).is_none_or(are_digits)
        && exponent.is_none_or(are_digits)
        && (is_short || is_in_range())
}

fn write_timestamp(value: &[u8], end: &[u8], out: &mut Vec<u8>) {
    let begin = out.len();
    write_escaped(value, out);
    if let Some(space) = out[begin..].iter().position(|&byte| byte == b' ') {
        out[begin + space] = b'T';
    }
    // The end is written before the closing quote.
    out.pop();
    out.extend_from_slice(end);
    out.push(b'"');
}

/// Splits `+00` at the end, or before ` BC`.
fn without_offset(value: &[u8]) -> Option<(&[u8], &'static [u8])> {
    if let Some(timestamp) = value.strip_suffix(b"+00") {
        return Some((timestamp, b"Z"));
    }
    Some((value.strip_suffix(b"+00 BC")?, b"Z BC"))
}

/// Adds bytes that came as hexadecimal digits; they end at the first that is none.
fn write_base64(digits: &[u8], out: &mut Vec<u8>) {
    /// A multiple of 3, so that only the last part is padded.
    const PART: usize = 3 * 256;
    let mut bytes = [0; PART];
    let mut text = [0; PART / 3 * 4];
    out.push(b'"');
    for part in digits.chunks(2 * PART) {
        let mut count = 0;
        for (byte, pair) in bytes.iter_mut().zip(part.chunks_exact(2)) {
            let (high, low) = (DIGITS[usize::from(pair[0])], DIGITS[usize::from(pair[1])]);
            if high | low > 15 {
                break;
            }
            *byte = high << 4 | low;
            count += 1;
        }
        // The text has room for all of them.
        let written = STANDARD.encode_slice(&bytes[..count], &mut text).unwrap_or(0);
        out.extend_from_slice(&text[..written]);
        if count < PART {
            break;
        }
    }
    out.push(b'"');
}

/// The value of each hexadecimal digit; 255 for other characters.
const DIGITS: [u8; 256] = {
    let mut values = [255; 256];
    let mut value = 0;
    while value < 16 {
        values[b"0123456789abcdef"[value] as usize] = value as u8;
        values[b"0123456789ABCDEF"[value] as usize] = value as u8;
        value += 1;
    }
    values
};

/// What may follow in the text of an array.
enum Next {
    /// Or the end of an array without values.
    First,
    Value,
    /// A delimiter, or the end of an array.
    Delimiter,
}

impl ArrayEncoder {
    /// `{1,NULL,"a b",{...}}`, with a prefix for bounds that do not begin at 1: `[0:1]={1,2}`.
    fn write(&self, text: &[u8], out: &mut Vec<u8>) {
        let begin = out.len();
        if self.try_to_write(text, out).is_none() {
            out.truncate(begin);
            write_escaped(text, out);
        }
    }

    /// None when it is not an array.
    fn try_to_write(&self, text: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let mut at = text.iter().position(|&byte| byte == b'{')?;
        let mut unescaped = Vec::new();
        let (mut depth, mut next) = (0, Next::Value);
        while let Some(&character) = text.get(at) {
            at += 1;
            match (character, &next) {
                (b'{', Next::First | Next::Value) if depth < MAX_DIMENSIONS => {
                    out.push(b'[');
                    depth += 1;
                    next = Next::First;
                }
                (b'}', Next::First | Next::Delimiter) => {
                    out.push(b']');
                    depth -= 1;
                    next = Next::Delimiter;
                    if depth == 0 {
                        return (at == text.len()).then_some(());
                    }
                }
                (_, Next::Delimiter) if character == self.delimiter => {
                    out.push(b',');
                    next = Next::Value;
                }
                (b'{' | b'}', _) | (_, Next::Delimiter) => return None,
                _ if character == self.delimiter => return None,
                (b'"', _) => {
                    unescaped.clear();
                    at = unescape(text, at, &mut unescaped);
                    self.element.write(&unescaped, out);
                    next = Next::Delimiter;
                }
                _ => {
                    let begin = at - 1;
                    while text.get(at).is_some_and(|&byte| !self.ends_value(byte)) {
                        at += 1;
                    }
                    match &text[begin..at] {
                        b"NULL" => out.extend_from_slice(b"null"),
                        value => self.element.write(value, out),
                    }
                    next = Next::Delimiter;
                }
            }
        }
        None
    }

    fn ends_value(&self, byte: u8) -> bool {
        matches!(byte, b'"' | b'{' | b'}') || byte == self.delimiter
    }
}

/// Adds a quoted value that begins at `at`; returns where what follows its quote begins.
fn unescape(text: &[u8], mut at: usize, value: &mut Vec<u8>) -> usize {
    while let Some(&byte) = text.get(at) {
        at += 1;
        match (byte, text.get(at)) {
            (b'"', _) => return at,
            (b'\\', Some(&escaped)) => {
                value.push(escaped);
                at += 1;
            }
            _ => value.push(byte),
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(oid: u32, value: &str) -> String {
        let mut out = Vec::new();
        built_in(oid).expect("built in").write(value.as_bytes(), &mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn values_of_each_type_are_written_as_json() {
        assert_eq!(json(16, "t"), "true");
        assert_eq!(json(17, "\\x00ff10"), r#""AP8Q""#);
        assert_eq!(json(17, ""), r#""""#);
        assert_eq!(json(701, "-1e+300"), "-1e+300");
        assert_eq!(json(701, "-Infinity"), r#""-Infinity""#);
        assert_eq!(json(1114, "2026-01-31 23:59:59.5"), r#""2026-01-31T23:59:59.5""#);
        assert_eq!(json(1184, "0044-03-15 12:00:00+00 BC"), r#""0044-03-15T12:00:00Z BC""#);
        assert_eq!(json(25, "a\"\\\u{1f}\n\u{7f}ü"), "\"a\\\"\\\\\\u001f\\n\u{7f}ü\"");
    }

    #[test]
    fn writes_long_bytes_without_padding_in_between() {
        let bytes: Vec<u8> = (0..10_000_u32).map(|i| i as u8).collect();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(json(17, &format!("\\x{hex}")), format!("\"{}\"", STANDARD.encode(&bytes)));
    }

    #[test]
    fn arrays_are_written_as_lists_of_json() {
        assert_eq!(json(1007, "[0:1]={5,NULL}"), "[5,null]");
        assert_eq!(json(1007, "{{1,2},{3,4}}"), "[[1,2],[3,4]]");
        assert_eq!(json(1009, r#"{a,"NULL",NULL,"","q\"b\\c,{}"," "}"#), r#"["a","NULL",null,"","q\"b\\c,{}"," "]"#);
        assert_eq!(json(1009, "{}"), "[]");
    }

    #[test]
    fn writes_values_that_are_none_of_their_type_as_texts() {
        for (oid, value) in [
            (23, "1\u{1}"),
            (23, ""),
            (23, "01"),
            (23, "-"),
            (701, "1.\u{1}"),
            (701, "1e"),
            (701, "NaN"),
            (701, "9e+308"),
            (20, "123456789012345678901"),
            (114, "{\"a\":1}}"),
            (3802, "nul"),
            (1700, "1\"\u{1}"),
            (1114, "2026\"-\u{1}"),
            (1007, ""),
            (1007, "{1,{2}"),
            (1007, "{1,,2}"),
            (1007, "{1}2"),
            (1007, "{{{{{{{1}}}}}}}"),
            (1009, r#"{"a\"#),
            (1009, r#"{a"b"}"#),
        ] {
            let written = json(oid, value);
            assert_eq!(serde_json::from_str::<String>(&written).ok().as_deref(), Some(value), "{written}");
        }
        assert_eq!(json(1007, "{1\u{1},NULL}"), "[\"1\\u0001\",null]");
    }

    #[test]
    fn replaces_what_is_no_text() {
        let mut out = Vec::new();
        Encoder::Escaped.write(b"a\xffb", &mut out);
        assert_eq!(out, "\"a\u{fffd}b\"".as_bytes());
    }

    #[test]
    fn limits_the_depth_of_arrays() {
        let types = Types::default();
        for oid in 100_000..100_020 {
            types.learn(&[oid], &[CatalogRow { oid, element: Some(oid - 1), delimiter: b',' }]);
        }
        assert!(matches!(types.encoder(100_008), Some(Encoder::Escaped | Encoder::Array(_))));
        let mut out = Vec::new();
        types.encoder(100_019).expect("learned").write(b"{1}", &mut out);
    }
}
