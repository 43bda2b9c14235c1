//! Between JSON and the types of a handler, with as little code in the handler's own crate as possible.
//!
//! A handler is compiled on every change, and most of the time that took went into serde code instantiated for the
//! handler's types: serde_json's parser and writers are generic. Here, everything that does not depend on those types
//! is an ordinary function, compiled once into this crate. What remains generic is a few calls per field:
//!
//! - [`de::De`] reads from a parsed tree ([`node::Node`]) that owns nothing the handler would have to drop;
//! - [`ser::To`] writes to a [`ser::Sink`] behind a pointer: JSON text, or a `serde_json::Value`;
//! - [`trouble::Failed`], the error of both, is empty: no handler carries code to move or drop it.

mod de;
pub mod macros;
mod node;
mod ser;
mod text;
mod tree;
mod trouble;

use crate::{HandlerError, Response};
use serde::de::DeserializeOwned;
use serde::Serialize;
use serde_json::{Map, Value};
use trouble::Failed;

/// Reads `bytes` as a `T`. An empty body reads as `null`.
///
/// # Errors
/// [`HandlerError::BadRequest`] with what is wrong and where.
#[doc(hidden)]
pub fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, HandlerError> {
    let mut value = Err(Failed);
    read(bytes, &mut |node| value = T::deserialize(node));
    match value {
        Ok(value) => Ok(value),
        Err(Failed) => Err(refusal(bytes)),
    }
}

/// Calls `visit` with the parsed document, or notes why there is none.
#[inline(never)]
fn read(bytes: &[u8], visit: &mut dyn FnMut(de::De<'_>)) {
    let text = if bytes.is_empty() { b"null" } else { bytes };
    match serde_json::from_slice::<node::Node<'_>>(text) {
        Ok(node) => visit(de::De(&node)),
        Err(error) => {
            Failed::because(&error);
        }
    }
}

#[inline(never)]
fn refusal(bytes: &[u8]) -> HandlerError {
    let (path, message) = trouble::take();
    HandlerError::BadRequest(match path.as_str() {
        _ if bytes.is_empty() => "Invalid JSON: the request has no body".to_owned(),
        "" => format!("Invalid JSON: {message}"),
        path => format!("Invalid JSON at {path}: {message}"),
    })
}

/// Reads a row of a database as a `T`.
///
/// # Errors
/// A sentence that says what does not fit, and where.
#[doc(hidden)]
pub fn from_row<T: DeserializeOwned>(row: &Map<String, Value>) -> Result<T, String> {
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
        Err(Failed) => Err(misfit()),
    }
}

#[inline(never)]
fn misfit() -> String {
    match trouble::take() {
        (path, message) if path.is_empty() => message,
        (path, message) => format!("{path}: {message}"),
    }
}

/// Any value as JSON text, in which integers that a double does not hold are MongoDB's `{"$numberLong": "..."}`.
///
/// # Errors
/// A sentence: it cannot be JSON, or has an integer that MongoDB does not know.
#[doc(hidden)]
pub fn to_extended_json<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, String> {
    build_extended(&mut |to| value.serialize(to))
}

#[inline(never)]
fn build_extended(write: &mut dyn FnMut(ser::To<'_>) -> Result<(), Failed>) -> Result<Vec<u8>, String> {
    let mut sink = text::Text::extended();
    match write(ser::To(&mut sink)) {
        Ok(()) => Ok(sink.into_bytes()),
        Err(Failed) => Err(trouble::take().1),
    }
}

/// A JSON response whose body is what `write` writes; a 500 that says why if it fails.
#[inline(never)]
pub(crate) fn to_response(status: u16, write: &mut dyn FnMut(ser::To<'_>) -> Result<(), Failed>) -> Response {
    let mut sink = text::Text::new();
    match write(ser::To(&mut sink)) {
        Ok(()) => Response::json_text(status, sink.into_bytes()),
        Err(Failed) => {
            let (_, message) = trouble::take();
            eprintln!("edge-gateway-sdk: a response body cannot be written as JSON: {message}");
            Response::error(500, &format!("The response cannot be written as JSON: {message}"))
        }
    }
}

/// Any value as a [`serde_json::Value`]. What `json!(expression)` becomes.
///
/// # Panics
/// If `value` cannot be JSON: a map whose keys are not strings, or a `Serialize` that fails.
#[doc(hidden)]
pub fn to_value<T: Serialize + ?Sized>(value: &T) -> serde_json::Value {
    build_value(&mut |to| value.serialize(to))
}

#[inline(never)]
fn build_value(write: &mut dyn FnMut(ser::To<'_>) -> Result<(), Failed>) -> serde_json::Value {
    let mut sink = tree::Tree::new();
    match write(ser::To(&mut sink)) {
        Ok(()) => sink.into_value(),
        Err(Failed) => panic!("json!: {}", trouble::take().1),
    }
}
