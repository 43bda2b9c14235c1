//! [`HandlerError`]: what a handler returns instead of a response, and what the helpers of [`crate::Request`] fail with.

use crate::Response;
use std::fmt;

/// An error that is also an HTTP answer: `{"error": "<text>"}` with the status of its kind.
///
/// A handler registered with [`crate::handler_loop_result!`] returns it with `?`; elsewhere, turn it into a
/// [`Response`] with `.into()` or [`HandlerError::to_response`].
///
/// The text reaches the client, that of the 5xx kinds too: put into it what a client may read.
#[derive(Debug)]
pub enum HandlerError {
    /// 400: the request cannot be understood (bad JSON, a missing or malformed parameter).
    BadRequest(String),
    /// 400: the request is understood but its values are not acceptable.
    ValidationError(String),
    /// 401: who asks is not known.
    Unauthorized(String),
    /// 403: who asks is known and may not.
    Forbidden(String),
    /// 404, with no more to say.
    NotFound,
    /// 404, saying what was not found.
    NotFoundMessage(String),
    /// 405.
    MethodNotAllowed(String),
    /// 409: the request collides with the state of the resource.
    Conflict(String),
    /// 413.
    PayloadTooLarge(String),
    /// 500: talking to the gateway failed.
    IpcError(String),
    /// 500: a value could not be turned into JSON, or stored JSON could not be read.
    SerializationError(serde_json::Error),
    /// 500: a database call failed.
    DatabaseError(String),
    /// 500: a Redis call failed.
    RedisError(String),
    /// 500: a call to object or file storage failed.
    StorageError(String),
    /// 500: anything else.
    InternalError(String),
    /// 500: a shorter name for [`HandlerError::InternalError`].
    Internal(String),
    /// 503: something this handler needs is away for now.
    ServiceUnavailable(String),
}

impl HandlerError {
    /// The HTTP status of this kind of error.
    pub fn status_code(&self) -> u16 {
        use HandlerError::*;
        match self {
            BadRequest(_) | ValidationError(_) => 400,
            Unauthorized(_) => 401,
            Forbidden(_) => 403,
            NotFound | NotFoundMessage(_) => 404,
            MethodNotAllowed(_) => 405,
            Conflict(_) => 409,
            PayloadTooLarge(_) => 413,
            IpcError(_)
            | SerializationError(_)
            | DatabaseError(_)
            | RedisError(_)
            | StorageError(_)
            | InternalError(_)
            | Internal(_) => 500,
            ServiceUnavailable(_) => 503,
        }
    }

    /// The response a client gets: [`HandlerError::status_code`] and `{"error": "<this error's text>"}`.
    pub fn to_response(&self) -> Response {
        Response::error(self.status_code(), &self.to_string())
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use HandlerError::*;
        let (kind, text) = match self {
            BadRequest(text) => ("Bad request", text),
            ValidationError(text) => ("Validation error", text),
            Unauthorized(text) => ("Unauthorized", text),
            Forbidden(text) => ("Forbidden", text),
            NotFound => return f.write_str("Not found"),
            NotFoundMessage(text) => ("Not found", text),
            MethodNotAllowed(text) => ("Method not allowed", text),
            Conflict(text) => ("Conflict", text),
            PayloadTooLarge(text) => ("Payload too large", text),
            IpcError(text) => ("IPC error", text),
            SerializationError(error) => return write!(f, "Serialization error: {error}"),
            DatabaseError(text) => ("Database error", text),
            RedisError(text) => ("Redis error", text),
            StorageError(text) => ("Storage error", text),
            InternalError(text) | Internal(text) => ("Internal error", text),
            ServiceUnavailable(text) => ("Service unavailable", text),
        };
        write!(f, "{kind}: {text}")
    }
}

impl std::error::Error for HandlerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            HandlerError::SerializationError(error) => Some(error),
            _ => None,
        }
    }
}

impl From<serde_json::Error> for HandlerError {
    fn from(error: serde_json::Error) -> Self {
        HandlerError::SerializationError(error)
    }
}

impl From<HandlerError> for Response {
    fn from(error: HandlerError) -> Self {
        error.to_response()
    }
}
