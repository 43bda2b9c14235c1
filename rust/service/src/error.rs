//! The error of a call.
use std::fmt;

/// What went wrong; the names are those of `docs/SERVICE-PROTOCOL.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Unauthenticated,
    Inactive,
    Unavailable,
    Deadline,
    Busy,
    Backend,
    Invalid,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Unauthenticated => "unauthenticated",
            Kind::Inactive => "inactive",
            Kind::Unavailable => "unavailable",
            Kind::Deadline => "deadline",
            Kind::Busy => "busy",
            Kind::Backend => "backend",
            Kind::Invalid => "invalid",
        }
    }
}

/// The error of a call, as the handler gets it.
#[derive(Clone, Debug)]
pub struct CallError {
    pub kind: Kind,
    pub message: String,
}

impl CallError {
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}
