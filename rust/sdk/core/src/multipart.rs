//! Multipart forms (RFC 7578), read from bytes: a file may contain anything, also parts of the boundary.

use crate::error::HandlerError;
use crate::pairs::Pairs;
use crate::values::Place;
use memchr::memmem;
use serde::ser::{Serialize, SerializeStruct, Serializer};
use std::collections::HashMap;

/// Most parts of one form: millions of empty parts would be an attack on memory.
const MAX_PARTS: usize = 10_000;

/// A parsed form. Of several parts with one name, `fields` and `files` have the last; [`MultipartData::fields_named`]
/// and [`MultipartData::files_named`] have all.
#[derive(Debug, Clone, Default)]
pub struct MultipartData {
    /// Text fields by name.
    pub fields: HashMap<String, String>,
    /// Uploaded files by the name of their field.
    pub files: HashMap<String, MultipartFile>,
    /// The parts before the last one of their name.
    earlier_fields: Vec<(String, String)>,
    earlier_files: Vec<(String, MultipartFile)>,
}

/// A file of a form. Written as JSON, it is its name, its type and its size: `{"filename", "content_type", "bytes"}`.
#[derive(Debug, Clone)]
pub struct MultipartFile {
    /// The file name that the client gave. Do not trust it as a path.
    pub filename: String,
    /// The content type that the client gave, or `application/octet-stream`.
    pub content_type: String,
    /// The bytes.
    pub data: Vec<u8>,
}

impl MultipartData {
    /// Reads a form that is text. [`crate::Request::multipart`] is the usual way, and reads any form.
    ///
    /// # Errors
    /// [`HandlerError::BadRequest`] if the body is not well formed.
    pub fn parse(body: &str, boundary: &str) -> Result<Self, HandlerError> {
        parse(body.as_bytes(), boundary)
    }

    /// Reads a form, with the boundary taken from the value of its `Content-Type` header.
    pub(crate) fn parse_bytes(body: &[u8], content_type: &str) -> Result<Self, HandlerError> {
        match parameter(content_type, "boundary") {
            Some(boundary) => parse(body, &boundary),
            None => Err(malformed("the Content-Type header names no boundary")),
        }
    }

    /// A text field.
    pub fn field(&self, name: &str) -> Option<&String> {
        self.fields.get(name)
    }

    /// A text field that must be there.
    ///
    /// # Errors
    /// [`HandlerError::BadRequest`] if it is missing.
    pub fn require_field(&self, name: &str) -> Result<&String, HandlerError> {
        let missing = || HandlerError::BadRequest(format!("Missing required field: {name}"));
        self.field(name).ok_or_else(missing)
    }

    /// All text fields with this name, in their order.
    pub fn fields_named(&self, name: &str) -> Vec<&str> {
        named(&self.earlier_fields, self.field(name), name).into_iter().map(String::as_str).collect()
    }

    /// All uploaded files with this name of their field, in their order.
    pub fn files_named(&self, name: &str) -> Vec<&MultipartFile> {
        named(&self.earlier_files, self.file(name), name)
    }

    /// All uploaded files with this name of their field, of which there must be one.
    ///
    /// # Errors
    /// [`HandlerError::BadRequest`] if there is none.
    pub fn require_files_named(&self, name: &str) -> Result<Vec<&MultipartFile>, HandlerError> {
        self.require_file(name)?;
        Ok(self.files_named(name))
    }

    /// All text: the fields, and the files of JSON, which is how browsers send the parts that scripts give a type.
    pub fn pairs(&self) -> Pairs {
        let text = |(name, file): (&String, &MultipartFile)| {
            let is_json = file.content_type.contains("json");
            is_json.then(|| (name.clone(), String::from_utf8_lossy(&file.data).into_owned()))
        };
        let earlier_files = self.earlier_files.iter().map(|(name, file)| (name, file));
        let files = earlier_files.chain(&self.files).filter_map(text);
        let fields = self.fields.iter().map(|(name, value)| (name.clone(), value.clone()));
        Pairs::new(Place::Field, files.chain(self.earlier_fields.iter().cloned()).chain(fields).collect())
    }

    /// An uploaded file, by the name of its field.
    pub fn file(&self, name: &str) -> Option<&MultipartFile> {
        self.files.get(name)
    }

    /// An uploaded file that must be there.
    ///
    /// # Errors
    /// [`HandlerError::BadRequest`] if it is missing.
    pub fn require_file(&self, name: &str) -> Result<&MultipartFile, HandlerError> {
        let missing = || HandlerError::BadRequest(format!("Missing required file: {name}"));
        self.file(name).ok_or_else(missing)
    }
}

/// The last of its name goes into the map, those before it into the list.
fn keep<T>(last: &mut HashMap<String, T>, earlier: &mut Vec<(String, T)>, name: String, value: T) {
    if let Some(before) = last.insert(name.clone(), value) {
        earlier.push((name, before));
    }
}

fn named<'a, T>(earlier: &'a [(String, T)], last: Option<&'a T>, name: &str) -> Vec<&'a T> {
    earlier.iter().filter(|(key, _)| key == name).map(|(_, value)| value).chain(last).collect()
}

impl Serialize for MultipartFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut file = serializer.serialize_struct("MultipartFile", 3)?;
        file.serialize_field("filename", &self.filename)?;
        file.serialize_field("content_type", &self.content_type)?;
        file.serialize_field("bytes", &self.data.len())?;
        file.end()
    }
}

fn malformed(why: &str) -> HandlerError {
    HandlerError::BadRequest(format!("Invalid multipart form: {why}"))
}

fn parse(body: &[u8], boundary: &str) -> Result<MultipartData, HandlerError> {
    // RFC 2046 5.1.1: 1 to 70 characters. An empty one would match everywhere.
    if boundary.is_empty() || boundary.len() > 70 {
        return Err(malformed("a boundary has 1 to 70 characters"));
    }
    let delimiter = format!("\r\n--{boundary}");
    let finder = memmem::Finder::new(&delimiter);
    // The first delimiter needs no line break before it; what precedes it is a preamble to skip.
    let first = match body.strip_prefix(&delimiter.as_bytes()[2..]) {
        Some(after) => line_end(after),
        None => None,
    };
    let mut next = match first {
        Some(next) => next,
        None => next_delimiter(body, &finder).ok_or_else(|| malformed("its boundary does not occur in it"))?.1,
    };
    let mut form = MultipartData::default();
    for _ in 0..MAX_PARTS {
        let Next::Part(rest) = next else { return Ok(form) };
        let (part, after) = next_delimiter(rest, &finder)
            .ok_or_else(|| malformed("it ends before its closing boundary; was the upload cut off?"))?;
        form.add(part)?;
        next = after;
    }
    Err(malformed(&format!("it has more than {MAX_PARTS} parts")))
}

/// What a delimiter announces.
enum Next<'a> {
    Part(&'a [u8]),
    End,
}

/// What precedes the next delimiter, and what that announces. Text that only begins like one belongs to the part.
fn next_delimiter<'a>(bytes: &'a [u8], finder: &memmem::Finder<'_>) -> Option<(&'a [u8], Next<'a>)> {
    for at in finder.find_iter(bytes) {
        if let Some(next) = line_end(&bytes[at + finder.needle().len()..]) {
            return Some((&bytes[..at], next));
        }
    }
    None
}

/// A delimiter is followed by `--` if it is the last, or else by nothing but blanks and a line break (RFC 2046 5.1.1).
fn line_end(after: &[u8]) -> Option<Next<'_>> {
    if after.starts_with(b"--") {
        return Some(Next::End);
    }
    let blanks = after.iter().take_while(|&&b| b == b' ' || b == b'\t').count();
    after[blanks..].strip_prefix(b"\r\n").map(Next::Part)
}

impl MultipartData {
    fn add(&mut self, part: &[u8]) -> Result<(), HandlerError> {
        let (headers, data) = split_headers(part).ok_or_else(|| malformed("a part has no end of headers"))?;
        let headers = String::from_utf8_lossy(headers);
        let header = |name: &str| {
            headers.split("\r\n").find_map(|line| {
                let (key, value) = line.split_once(':')?;
                key.trim().eq_ignore_ascii_case(name).then(|| value.trim())
            })
        };
        let disposition = header("content-disposition").unwrap_or("");
        let Some(name) = parameter(disposition, "name") else {
            return Err(malformed("a part has no name in its Content-Disposition"));
        };
        match parameter(disposition, "filename") {
            None => {
                let text = String::from_utf8_lossy(data).into_owned();
                keep(&mut self.fields, &mut self.earlier_fields, name, text);
            }
            Some(filename) => {
                let content_type = header("content-type").unwrap_or("application/octet-stream").to_owned();
                let data = data.to_vec();
                let file = MultipartFile { filename, content_type, data };
                keep(&mut self.files, &mut self.earlier_files, name, file);
            }
        }
        Ok(())
    }
}

/// The headers of a part and its data.
fn split_headers(part: &[u8]) -> Option<(&[u8], &[u8])> {
    if let Some(data) = part.strip_prefix(b"\r\n") {
        return Some((b"", data));
    }
    let at = memmem::find(part, b"\r\n\r\n")?;
    Some((&part[..at], &part[at + 4..]))
}

/// The parameter `name` of a header value such as `form-data; name="a"; filename="b"`.
fn parameter(value: &str, name: &str) -> Option<String> {
    let mut rest = &value[value.find(';')?..];
    while let Some(after) = rest.strip_prefix(';') {
        let (key, after) = after.split_once('=')?;
        let (text, after) = parameter_value(after.trim_start());
        if key.trim().eq_ignore_ascii_case(name) {
            return Some(text);
        }
        rest = after.trim_start();
    }
    None
}

/// One value and what follows it. In quotes, browsers write `"` and line breaks as `%22`, `%0D` and `%0A` (WHATWG HTML,
/// multipart/form-data), other clients a backslash before the quote; a backslash before anything else is a Windows
/// path.
fn parameter_value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(';').unwrap_or(text.len());
        return (text[..end].trim_end().to_owned(), &text[end..]);
    };
    let mut out = String::new();
    let mut chars = quoted.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (decode_browser_escapes(&out), &quoted[at + 1..]),
            '\\' if matches!(chars.peek(), Some((_, '"'))) => out.extend(chars.next().map(|(_, quote)| quote)),
            other => out.push(other),
        }
    }
    (out, "")
}

fn decode_browser_escapes(text: &str) -> String {
    text.replace("%22", "\"").replace("%0D", "\r").replace("%0A", "\n")
}
