//! The bridge between JSON and the types of a handler, with as little code in the handler's own crate as possible.
//!
//! A handler is compiled on every change, and most of that time went into serde code instantiated for the handler's
//! types: serde_json's parser and writers are generic. Here, everything that does not depend on those types is an
//! ordinary function, compiled once into this crate. What remains generic is a few calls for each field:
//!
//! - reading: [`de::De`] reads from a parsed tree ([`node::Node`]) that owns nothing the handler would have to drop,
//!   and its [`error::Error`] is empty, so that no handler carries code to move or drop it;
//! - writing: [`write`](mod@write) has serde_json write an `erased_serde::Serialize`.

mod de;
mod error;
pub mod macros;
mod node;
pub mod write;

use crate::error::HandlerError;
use error::{take_context, Context, Error, Problem};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::HashMap;

/// Reads `bytes` as a `T`. An empty body reads as `null`.
///
/// # Errors
/// [`HandlerError::BadRequest`] with what is wrong and where.
#[doc(hidden)]
pub fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, HandlerError> {
    let mut value = Err(Error);
    read(bytes, &mut |node| value = T::deserialize(node));
    match value {
        Ok(value) => Ok(value),
        Err(Error) => Err(bad_request(bytes)),
    }
}

/// Calls `visit` with the parsed document, or sets the error context if it cannot be parsed.
#[inline(never)]
fn read(bytes: &[u8], visit: &mut dyn FnMut(de::De<'_>)) {
    let text = if bytes.is_empty() { b"null" } else { bytes };
    match serde_json::from_slice::<node::Node<'_>>(text) {
        Ok(node) => visit(de::De(&node)),
        Err(error) => error::syntax(&error),
    }
}

/// What is wrong with a body, in words for who has sent it.
#[inline(never)]
fn bad_request(bytes: &[u8]) -> HandlerError {
    let Context { path, problem, message } = take_context();
    HandlerError::BadRequest(match (problem, path.as_str()) {
        _ if bytes.is_empty() => "Expected a JSON body, but the request has no body".to_owned(),
        (Problem::Syntax, _) if !begins_like_json(bytes) => {
            format!("Expected a JSON body, but it {}", beginning(bytes))
        }
        (Problem::Syntax, _) => format!("The body is not valid JSON: {message}"),
        (Problem::Missing, "") => format!("Missing field: {message}"),
        (Problem::Missing, path) => format!("Missing field: {path}.{message}"),
        (Problem::Value, "") => format!("Invalid body: {message}"),
        (Problem::Value, path) => format!("Invalid value for field {path}: {message}"),
    })
}

/// Whether a body may be meant as JSON.
fn begins_like_json(bytes: &[u8]) -> bool {
    let text = bytes.trim_ascii_start();
    let words: [&[u8]; 3] = [b"true", b"false", b"null"];
    matches!(text.first(), None | Some(b'{' | b'[' | b'"' | b'-' | b'0'..=b'9'))
        || words.iter().any(|word| text.starts_with(word))
}

fn beginning(bytes: &[u8]) -> String {
    const SHOWN: usize = 20;
    match std::str::from_utf8(bytes) {
        Err(_) => "is not text".to_owned(),
        Ok(text) => format!("begins with {:?}", text.trim_start().chars().take(SHOWN).collect::<String>()),
    }
}

/// Reads a row of a database as a `T`.
///
/// # Errors
/// A sentence that says what does not fit, and where.
#[doc(hidden)]
pub fn from_row<T: DeserializeOwned>(row: &HashMap<String, Value>) -> Result<T, String> {
    from_node(&node::Node::of_row(row))
}

/// Reads a value of a database as a `T`.
///
/// # Errors
/// A sentence that says what does not fit, and where.
#[doc(hidden)]
pub fn from_column<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    from_node(&node::Node::of_column(value))
}

fn from_node<T: DeserializeOwned>(node: &node::Node<'_>) -> Result<T, String> {
    match T::deserialize(de::De(node)) {
        Ok(value) => Ok(value),
        Err(Error) => Err(mismatch()),
    }
}

#[inline(never)]
fn mismatch() -> String {
    let Context { path, problem, message } = take_context();
    let reason = match problem {
        Problem::Missing => format!("it has no {message}"),
        Problem::Syntax | Problem::Value => message,
    };
    match path.as_str() {
        "" => reason,
        path => format!("{path}: {reason}"),
    }
}
