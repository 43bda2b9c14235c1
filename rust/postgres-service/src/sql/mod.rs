//! Statements of handlers: the payload of a call, its checks, and placeholders.
use std::rc::Rc;

use crate::error::CallError;

/// A statement that may be sent to the server.
#[derive(Debug)]
pub struct Statement {
    /// With `$n` as placeholders. The same text is the same `Rc` as long as it is cached.
    pub sql: Rc<str>,
    pub params: Vec<Param>,
}

/// A value, in the format in which it is sent; the server infers its type.
#[derive(Debug, PartialEq)]
pub enum Param {
    Null,
    /// In text format.
    Text(String),
    /// In binary format.
    Bytes(Vec<u8>),
}

/// Reads the payload of a call, `{"sql", "params"}`, and checks the statement.
///
/// # Errors
///
/// `invalid`, naming the wrong member, or saying why the statement is refused.
pub fn parse(_payload: &[u8], _in_transaction: bool) -> Result<Statement, CallError> {
    todo!()
}
