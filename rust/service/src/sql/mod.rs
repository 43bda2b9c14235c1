//! What statements of all databases have in common: the payload of a call, the texts of its errors, and its result.
mod cache;
pub mod json;
pub mod number;
mod payload;
mod result;
pub mod source;

pub use cache::Cache;
pub use payload::{Param, Params, Payload, read};
pub use result::{ResultText, no_memory, too_large};

use crate::error::{CallError, Kind};

/// Why a statement of transaction control is refused.
pub const TRANSACTION: &str = "use a transaction: begin, commit and rollback are operations of their own";
/// Why a statement about the session is refused.
pub const SESSION: &str = "it would change a connection that others use, too";

/// Reads the payload of a call, `{"sql", "params"}`. Bytes that are not text are replaced.
///
/// # Errors
///
/// `invalid`, naming the wrong member.
pub fn parse<P: Param, S>(
    payload: &[u8],
    check: impl FnOnce(&str, Params<P>) -> Result<S, String>,
) -> Result<S, CallError> {
    let text = String::from_utf8_lossy(payload);
    let checked = read(&text).and_then(|Payload { sql, params }| check(&sql, params));
    checked.map_err(|message| CallError::new(Kind::Invalid, message))
}

/// The problem of a statement whose placeholders are not as many as its parameters.
pub fn miscounted(placeholders: f64, params: usize) -> String {
    let (placeholders, params) = (count(placeholders, "placeholder"), count(params as f64, "parameter"));
    format!("the statement has {placeholders} but {params} came with it")
}

fn count(n: f64, thing: &str) -> String {
    format!("{} {thing}{}", number::print(n), if n == 1.0 { "" } else { "s" })
}
