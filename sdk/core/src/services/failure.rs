//! What went wrong, as the handler's error. Every message names the pool.

use super::connection::Broken;
use crate::HandlerError;
use std::io;

/// Which error stands for a refusal of the backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    Database,
    Redis,
    Cache,
    Storage,
    Email,
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

    /// The connection broke.
    #[cold]
    pub fn broken(self, pool: &str, broken: Broken) -> HandlerError {
        const UNKNOWN: &str = "what the call did is not known";
        let (kind, message) = match broken {
            Broken::Unsent(error) => return self.unreachable(pool, &error),
            Broken::Sending(error) => {
                ("unavailable", format!("the connection with the actor host broke while a call was sent: {error}"))
            }
            Broken::Receiving(error) => {
                ("unavailable", format!("the connection with the actor host broke, {UNKNOWN}: {error}"))
            }
            Broken::Ended => ("unavailable", format!("the actor host closed the connection, {UNKNOWN}")),
            Broken::TimedOut(limit) => {
                ("deadline", format!("the actor host did not answer within {} ms, {UNKNOWN}", limit.as_millis()))
            }
            Broken::Refused { kind, message } => return self.error(pool, &kind, &message),
            Broken::Nonsense(why) => {
                ("unavailable", format!("the actor host sent what is no answer, {UNKNOWN}: {why}"))
            }
        };
        self.error(pool, kind, &message)
    }
}
