//! Errors of calls, as the handler's error. Every message names the pool.

use crate::error::HandlerError;
use std::io::{self, ErrorKind};
use std::time::Duration;

/// Why a connection cannot be used any more.
pub enum ConnectionError {
    /// It failed before any of the call was written.
    Unsent(io::Error),
    /// It failed while the call was being written.
    Sending(io::Error),
    /// It failed while the answer was awaited.
    Receiving(io::Error),
    /// The actor host closed it instead of answering.
    Closed,
    /// No answer in time.
    TimedOut(Duration),
    /// The actor host does not take the connection: it does not know the token, or has too many.
    Refused { kind: String, message: String },
    /// What was received is no answer.
    ProtocolViolation(String),
}

impl ConnectionError {
    /// Whether nothing has been done because the other side does not take the connection: it may be made elsewhere.
    pub fn is_not_made(&self) -> bool {
        match self {
            ConnectionError::Unsent(_) => true,
            ConnectionError::Refused { kind, .. } => kind == "unauthenticated",
            _ => false,
        }
    }

    /// Reading failed.
    pub fn reading(error: io::Error) -> ConnectionError {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => ConnectionError::TimedOut(Duration::ZERO),
            _ => ConnectionError::Receiving(error),
        }
    }
}

/// Which error a refusal of the backend becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    Database,
    Redis,
    Cache,
    Storage,
    Email,
    Http,
}

impl Family {
    /// The error for a `kind` of failure of the protocol.
    #[cold]
    pub fn error(self, pool: &str, kind: &str, message: &str) -> HandlerError {
        let text = format!("the pool {pool:?}: {message}");
        match kind {
            "unbound" | "unauthenticated" => HandlerError::PoolNotBound(text),
            "inactive" => HandlerError::ServiceInactive(text),
            "unavailable" => HandlerError::BackendUnavailable(text),
            "deadline" => HandlerError::DeadlineExceeded(text),
            "busy" => HandlerError::ServiceBusy(text),
            _ => self.refused(text),
        }
    }

    fn refused(self, text: String) -> HandlerError {
        match self {
            Family::Database => HandlerError::DatabaseError(text),
            Family::Redis => HandlerError::RedisError(text),
            Family::Cache => HandlerError::CacheError(text),
            Family::Storage => HandlerError::StorageError(text),
            Family::Email => HandlerError::EmailError(text),
            Family::Http => HandlerError::HttpError(text),
        }
    }

    /// The process has no socket and token.
    #[cold]
    pub fn no_access(self, pool: &str) -> HandlerError {
        self.error(pool, "unbound", "this handler was started without access to services")
    }

    /// The actor host cannot be reached.
    #[cold]
    pub fn unreachable(self, pool: &str, error: &io::Error) -> HandlerError {
        self.error(pool, "unavailable", &format!("the actor host of this machine cannot be reached: {error}"))
    }

    /// The connection failed.
    #[cold]
    pub fn disconnected(self, pool: &str, error: ConnectionError) -> HandlerError {
        use ConnectionError::*;
        const UNKNOWN: &str = "what the call did is not known";
        let (kind, message) = match error {
            Unsent(error) => return self.unreachable(pool, &error),
            Sending(error) => {
                ("unavailable", format!("the connection with the actor host broke while a call was sent: {error}"))
            }
            Receiving(error) => {
                ("unavailable", format!("the connection with the actor host broke, {UNKNOWN}: {error}"))
            }
            Closed => ("unavailable", format!("the actor host closed the connection, {UNKNOWN}")),
            TimedOut(limit) => {
                ("deadline", format!("the actor host did not answer within {} ms, {UNKNOWN}", limit.as_millis()))
            }
            Refused { kind, message } => return self.error(pool, &kind, &message),
            ProtocolViolation(why) => {
                ("unavailable", format!("the actor host violated the protocol, {UNKNOWN}: {why}"))
            }
        };
        self.error(pool, kind, &message)
    }

    /// The arguments of a call cannot be sent.
    #[cold]
    pub fn invalid(self, pool: &str, why: &str) -> HandlerError {
        self.error(pool, "invalid", why)
    }
}
