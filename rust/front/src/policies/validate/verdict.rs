//! What a check says of a request, or why there is none.
use std::fmt;

use crate::request::Refusal;

/// The name of the policy.
pub const NAME: &str = "validate";

/// What is to be done about a request.
pub enum Verdict {
    Fits,
    /// What is wrong, for the log.
    Reported(String),
    Refused(Refusal),
}

/// Why a request is not checked.
#[derive(Debug, PartialEq, Eq)]
pub enum CheckSkipped {
    /// Its time is over.
    Expired,
    /// So many requests of its endpoint are being checked already.
    Busy,
    /// There is no memory for what is read of its body.
    OutOfMemory,
    /// There is never so much.
    TooLarge,
}

impl CheckSkipped {
    /// What the client gets. `limit_ms`: the time of a request.
    pub fn refusal(&self, limit_ms: u64) -> Refusal {
        match self {
            Self::Expired => {
                let message = format!("The request could not be checked within {limit_ms} ms.").into();
                Refusal { message, ..Refusal::policy(NAME, 504, "") }
            }
            Self::Busy => Refusal::busy(NAME, "Too many requests of this endpoint are being checked."),
            Self::OutOfMemory => Refusal::out_of_memory(),
            Self::TooLarge => {
                let message = "The body has more values than this gateway has memory to check at a time.";
                Refusal::policy(NAME, 413, message)
            }
        }
    }
}

impl fmt::Display for CheckSkipped {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Expired => "it takes too long",
            Self::Busy => "too many requests are being checked",
            Self::OutOfMemory | Self::TooLarge => "there is no memory for it",
        })
    }
}
