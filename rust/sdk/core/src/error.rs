//! [`HandlerError`]: what a handler returns instead of a response, and the error of [`crate::Request`]'s helpers.

use crate::response::Response;
use crate::runtime::records;
use std::fmt;
use std::panic::Location;

/// An error that is also an HTTP answer: `{"error": "<text>"}` with the status of its kind.
///
/// A handler registered with [`crate::handler_loop_result!`] returns it with `?`; elsewhere, turn it into a
/// [`Response`] with `.into()` or [`HandlerError::to_response`].
///
/// The text reaches the client: put into it what a client may read. But for the kinds that calls of services fail with,
/// from [`HandlerError::DatabaseError`] to [`HandlerError::ServiceBusy`]: what a backend says may name tables, hosts
/// and values, so the client reads the kind only, and the whole text goes to the endpoint's log. (So does that of all
/// others with a status of 500 or more.) A handler that wants
/// to send it has it from `to_string()`.
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
    /// 500: a database refused a call. The client reads "Database error".
    DatabaseError(String),
    /// 500: Redis refused a call. The client reads "Redis error".
    RedisError(String),
    /// 500: object or file storage refused a call. The client reads "Storage error".
    StorageError(String),
    /// 500: memcached refused a call. The client reads "Cache error".
    CacheError(String),
    /// 500: a mail was refused. The client reads "Email error".
    EmailError(String),
    /// 502: an HTTP server broke off, or the service does not allow the request. The client reads "Bad gateway".
    HttpError(String),
    /// 500: no service is bound to the endpoint under this `pool_id`. The client reads "Service not bound".
    PoolNotBound(String),
    /// 503: the service is not active, or is being deactivated. The client reads "Service unavailable".
    ServiceInactive(String),
    /// 503: the backend cannot be reached, or its connection broke during the call, which then may have had its effect.
    /// The client reads "Service unavailable".
    BackendUnavailable(String),
    /// 504: the backend did not answer in time; what it did is not known. The client reads "Gateway timeout".
    DeadlineExceeded(String),
    /// 503: too many calls wait for this service already. The client reads "Service unavailable".
    ServiceBusy(String),
    /// 500: anything else.
    InternalError(String),
    /// 500: a shorter name for [`HandlerError::InternalError`].
    Internal(String),
    /// 503: something this handler needs is not available now.
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
            | CacheError(_)
            | EmailError(_)
            | PoolNotBound(_)
            | InternalError(_)
            | Internal(_) => 500,
            HttpError(_) => 502,
            ServiceUnavailable(_) | ServiceInactive(_) | BackendUnavailable(_) | ServiceBusy(_) => 503,
            DeadlineExceeded(_) => 504,
        }
    }

    /// The response a client gets: [`HandlerError::status_code`] and `{"error": "<this error's text>"}`.
    ///
    /// With a status of 500 or more, the text is an error in the endpoint's log, too. Of an error of a service, the
    /// client gets its kind only.
    #[track_caller]
    pub fn to_response(&self) -> Response {
        let text = self.to_string();
        let status = self.status_code();
        if status >= 500 {
            records::error_at(Location::caller(), &text);
        }
        Response::error(status, self.public_text().unwrap_or(&text))
    }

    /// What a client reads of an error of a service; `None` for the others, whose whole text it reads.
    fn public_text(&self) -> Option<&'static str> {
        use HandlerError::*;
        Some(match self {
            DatabaseError(_) => "Database error",
            RedisError(_) => "Redis error",
            StorageError(_) => "Storage error",
            CacheError(_) => "Cache error",
            EmailError(_) => "Email error",
            HttpError(_) => "Bad gateway",
            PoolNotBound(_) => "Service not bound",
            ServiceInactive(_) | BackendUnavailable(_) | ServiceBusy(_) => "Service unavailable",
            DeadlineExceeded(_) => "Gateway timeout",
            _ => return None,
        })
    }
}

impl HandlerError {
    /// What [`HandlerError::to_string`] begins with, and its text, if it has one.
    fn kind_and_text(&self) -> (&'static str, Option<&str>) {
        use HandlerError::*;
        let (kind, text) = match self {
            NotFound => return ("Not found", None),
            SerializationError(_) => return ("Serialization error", None),
            BadRequest(text) => ("Bad request", text),
            ValidationError(text) => ("Validation error", text),
            Unauthorized(text) => ("Unauthorized", text),
            Forbidden(text) => ("Forbidden", text),
            NotFoundMessage(text) => ("Not found", text),
            MethodNotAllowed(text) => ("Method not allowed", text),
            Conflict(text) => ("Conflict", text),
            PayloadTooLarge(text) => ("Payload too large", text),
            IpcError(text) => ("IPC error", text),
            DatabaseError(text) => ("Database error", text),
            RedisError(text) => ("Redis error", text),
            StorageError(text) => ("Storage error", text),
            CacheError(text) => ("Cache error", text),
            EmailError(text) => ("Email error", text),
            HttpError(text) => ("HTTP error", text),
            PoolNotBound(text) => ("Service not bound", text),
            ServiceInactive(text) => ("Service inactive", text),
            BackendUnavailable(text) => ("Backend unavailable", text),
            DeadlineExceeded(text) => ("Deadline exceeded", text),
            ServiceBusy(text) => ("Service busy", text),
            InternalError(text) | Internal(text) => ("Internal error", text),
            ServiceUnavailable(text) => ("Service unavailable", text),
        };
        (kind, Some(text))
    }

    /// The kind of error, in words.
    pub(crate) fn kind(&self) -> &'static str {
        self.kind_and_text().0
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let HandlerError::SerializationError(error) = self {
            return write!(f, "{}: {error}", self.kind());
        }
        match self.kind_and_text() {
            (kind, Some(text)) => write!(f, "{kind}: {text}"),
            (kind, None) => f.write_str(kind),
        }
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

impl From<std::io::Error> for HandlerError {
    /// That of a call of a service is what it was. The body of a request that does not come to its end is the client's
    /// doing; all else is [`Self::InternalError`].
    fn from(error: std::io::Error) -> Self {
        match error.downcast::<Self>() {
            Ok(error) => error,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionAborted => Self::BadRequest(error.to_string()),
            Err(error) => Self::InternalError(error.to_string()),
        }
    }
}

impl From<HandlerError> for Response {
    #[track_caller]
    fn from(error: HandlerError) -> Self {
        error.to_response()
    }
}
