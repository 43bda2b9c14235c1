//! An answer as it is read: see `docs/SERVICE-PROTOCOL.md`.

use super::answer_reader::AnswerBody;
use super::failure::{ConnectionError, Family};
use crate::error::HandlerError;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::Deserialize;

/// The head of an answer; `T` is what the operation has as `result`.
#[derive(Deserialize)]
pub struct Head<T> {
    pub ok: bool,
    // Without this, serde wants a default of T.
    #[serde(default = "none")]
    pub result: Option<T>,
    #[serde(default)]
    pub kind: String,
    #[serde(default)]
    pub message: String,
}

fn none<T>() -> Option<T> {
    None
}

/// The answer to a call that was not made, because another process answers for the service.
#[derive(Deserialize)]
pub struct RedirectedCall {
    /// None: the actor host knows.
    pub to: Option<MovedTo>,
}

/// The socket, which lies beside that of the actor host, and the token for it.
#[derive(Deserialize)]
pub struct MovedTo {
    pub socket: String,
    pub token: String,
}

/// Whether a call has to be sent elsewhere.
pub fn moved(head: &[u8]) -> Option<RedirectedCall> {
    // The usual case, without parsing it.
    if !head.starts_with(MOVED) {
        return None;
    }
    serde_json::from_slice(head).ok()
}

/// How such an answer begins.
const MOVED: &[u8] = b"{\"ok\":false,\"kind\":\"moved\"";

/// A successful answer.
pub struct Reply<'a, T> {
    pub result: Option<T>,
    pub body: AnswerBody<'a>,
}

/// Reads the result, which must be there.
pub fn result<T>(reply: Reply<'_, T>) -> Result<T, String> {
    reply.result.ok_or_else(|| "it has no result".to_owned())
}

/// Reads the payload as JSON.
pub fn json<T: DeserializeOwned>(reply: Reply<'_, IgnoredAny>) -> Result<T, String> {
    serde_json::from_slice(reply.body.as_slice()).map_err(|error| error.to_string())
}

/// Reads nothing: it has been done.
pub fn nothing(_: Reply<'_, IgnoredAny>) -> Result<(), String> {
    Ok(())
}

/// The result of `get` in caches and storages.
#[derive(Deserialize)]
pub struct Lookup {
    found: bool,
}

/// The result of `delete` in storages.
#[derive(Deserialize)]
pub struct Deletion {
    pub deleted: bool,
}

/// The payload, if there is one.
pub fn optional_payload(reply: Reply<'_, Lookup>) -> Result<Option<Vec<u8>>, String> {
    match reply.result {
        Some(Lookup { found: true }) => Ok(Some(reply.body.into_vec())),
        Some(Lookup { found: false }) => Ok(None),
        None => Err("it has no result".to_owned()),
    }
}

/// The payload.
pub fn payload(reply: Reply<'_, IgnoredAny>) -> Result<Vec<u8>, String> {
    Ok(reply.body.into_vec())
}

/// Bytes as text.
pub fn text(family: Family, pool_id: &str, what: &str, bytes: Option<Vec<u8>>) -> Result<Option<String>, HandlerError> {
    let not_text = |_| family.error(pool_id, "invalid", &format!("{what:?} is not text in UTF-8; read its bytes"));
    bytes.map(String::from_utf8).transpose().map_err(not_text)
}

/// Reads the answer to a token, of which only a refusal matters.
///
/// # Errors
/// [`ConnectionError::Refused`].
pub fn check_token(head: &[u8]) -> Result<(), ConnectionError> {
    match serde_json::from_slice::<Head<IgnoredAny>>(head) {
        Ok(head) if head.ok => Ok(()),
        Ok(head) => Err(ConnectionError::Refused { kind: head.kind, message: head.message }),
        Err(error) => Err(ConnectionError::ProtocolViolation(error.to_string())),
    }
}
