//! What goes wrong between this process and the server, and how it is told to handlers and operators: the same words
//! as those of the other drivers (`src/actors/failures.ts`).
use std::io::{self, ErrorKind};

use edge_service::MAX_BODY_BYTES;
use edge_service::error::{CallError, Kind};

use super::target::Target;

/// Received bytes after which the result is certainly too large: JSON is never more compact than this.
pub const MAX_RECEIVED_BYTES: usize = MAX_BODY_BYTES / 2 * 5;

/// The text fields of an error response.
#[derive(Clone, Debug, Default)]
pub struct ServerError {
    pub severity: String,
    pub code: String,
    pub message: String,
    pub detail: String,
    pub hint: String,
}

impl ServerError {
    /// `duplicate key ... (23505): Key (id)=(1) already exists. Hint: ...`
    pub fn describe(&self) -> String {
        let Self { code, message, detail, hint, .. } = self;
        let mut text = format!("{message} ({code})");
        if !detail.is_empty() {
            text = format!("{text}: {detail}");
        }
        if !hint.is_empty() {
            text = format!("{text} Hint: {hint}");
        }
        text
    }

    pub fn ends_connection(&self) -> bool {
        matches!(&*self.severity, "FATAL" | "PANIC") || self.code.starts_with("57P") || self.code.starts_with("08")
    }

    /// Whether a prepared statement is stale: its result type has changed, or it does not exist any more.
    fn is_stale_plan(&self) -> bool {
        self.code == "26000" || (self.code == "0A000" && self.message.contains("cached plan"))
    }
}

/// An error of a connection.
#[derive(Debug)]
pub enum Failure {
    /// What the server has answered.
    Server(Box<ServerError>),
    /// The server has closed the connection.
    Closed,
    Io(io::Error),
    /// The host name is unknown; or cannot be looked up at the moment.
    UnknownHost {
        is_temporary: bool,
    },
    NoTls,
    /// Why the certificate was not accepted.
    Certificate(String),
    NoPassword,
    /// What the server has sent cannot be.
    Garbled,
    /// Any other problem with the server.
    Other(String),
    /// The error of the call, whose connection is of no use any more.
    Call(CallError),
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::WriteZero => Self::Closed,
            _ => Self::Io(error),
        }
    }
}

impl Failure {
    pub fn is_stale_plan(&self) -> bool {
        matches!(self, Self::Server(error) if error.is_stale_plan())
    }

    /// Whether the server has no TLS, or its rules refuse this client with (or without) encryption.
    pub fn may_connect_otherwise(&self) -> bool {
        match self {
            Self::NoTls => true,
            Self::Server(error) => error.code == "28000",
            _ => false,
        }
    }

    /// Whether the network failed, rather than the server refused.
    pub fn is_network_failure(&self) -> bool {
        match self {
            Self::UnknownHost { .. } => true,
            Self::Io(error) => network_reason(error, "").is_some(),
            _ => false,
        }
    }

    /// The error of opening a connection.
    pub fn into_connect_error(self, target: &Target) -> CallError {
        let at = &target.address;
        let reason = match self {
            Self::NoTls => {
                format!("the server at {at} does not offer TLS, but ssl_mode is \"{}\"", target.config.ssl_mode.name())
            }
            Self::NoPassword => format!("{}: it asks for a password, and none is set", login(at)),
            Self::Server(error) => match &*error.code {
                "28P01" => login(at),
                "28000" => format!(
                    "the server at {at} did not accept the username, or does not let it in from here: {}",
                    error.message
                ),
                "3D000" => {
                    format!(
                        "unknown database: the server at {at} has none with the name \"{}\"",
                        target.config.database
                    )
                }
                _ => format!("the server at {at} refused: {}", error.describe()),
            },
            other => return other.into_call_error(target),
        };
        CallError::new(Kind::Unavailable, reason)
    }

    /// The error of a call: `unavailable` when its connection is of no use any more.
    pub fn into_call_error(self, target: &Target) -> CallError {
        let at = &target.address;
        let reason = match self {
            Self::Call(error) => return error,
            Self::Server(error) if !error.ends_connection() => {
                return CallError::new(Kind::Backend, error.describe());
            }
            Self::Server(error) => format!("{at} ended the connection: {}", error.describe()),
            Self::Closed => closed(at),
            Self::Io(error) => network_reason(&error, at).unwrap_or_else(|| format!("{at}: {error}")),
            Self::UnknownHost { is_temporary: false } => format!("unknown host: the name in {at} does not exist"),
            Self::UnknownHost { is_temporary: true } => {
                format!("unknown host: the name in {at} cannot be looked up at the moment")
            }
            Self::Certificate(problem) => format!("the certificate of {at} was not accepted: {problem}"),
            Self::Garbled => format!("{at} does not keep to the protocol"),
            Self::Other(message) => format!("{at}: {message}"),
            error @ (Self::NoTls | Self::NoPassword) => return error.into_connect_error(target),
        };
        CallError::new(Kind::Unavailable, reason)
    }
}

fn login(at: &str) -> String {
    format!("the server at {at} did not accept the username or the password")
}

pub fn closed(at: &str) -> String {
    format!("{at} closed the connection")
}

pub fn closed_here(at: &str) -> CallError {
    CallError::new(Kind::Unavailable, format!("the connection to {at} is closed"))
}

fn network_reason(error: &io::Error, at: &str) -> Option<String> {
    Some(match error.kind() {
        ErrorKind::ConnectionRefused => format!("the connection to {at} was refused: is the server running there?"),
        ErrorKind::TimedOut => format!("{at} did not answer in time"),
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => format!("there is no route to {at}"),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => closed(at),
        ErrorKind::NotFound => format!("{at} does not exist"),
        _ => return None,
    })
}
