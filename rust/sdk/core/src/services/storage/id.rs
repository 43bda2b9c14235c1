//! The ids of records: fit for a row, an object's key and a file's name.

use crate::error::HandlerError;
use std::fs::File;
use std::io::Read;

const MAX_LENGTH: usize = 128;

/// Whether a record can have this id.
pub fn is_valid(id: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=MAX_LENGTH).contains(&id.len()) && !id.starts_with('.') && id.bytes().all(is_allowed)
}

/// Makes sure that a record can have this id.
///
/// # Errors
/// [`HandlerError::ValidationError`].
pub fn check(id: &str) -> Result<(), HandlerError> {
    if is_valid(id) {
        return Ok(());
    }
    let rule = "an id has 1 to 128 letters, digits, -, _ and ., and does not begin with a dot";
    Err(HandlerError::ValidationError(rule.to_owned()))
}

/// A random UUID (version 4).
///
/// # Errors
/// [`HandlerError::InternalError`] when the system gives no random bytes.
pub fn random() -> Result<String, HandlerError> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .map_err(|error| HandlerError::InternalError(format!("no random bytes for an id: {error}")))?;
    let version = (u128::from_be_bytes(bytes) & !(0xf << 76)) | (4 << 76);
    let n = (version & !(0b11 << 62)) | (0b10 << 62);
    let part = |from: u32, digits: usize| {
        let value = (n >> from) & ((1 << (digits * 4)) - 1);
        format!("{value:0digits$x}")
    };
    Ok([part(96, 8), part(80, 4), part(64, 4), part(48, 4), part(0, 12)].join("-"))
}
