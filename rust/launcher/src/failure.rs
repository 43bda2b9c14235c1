//! Why a program could not be started, as a sentence for whoever started it.
use std::fmt::{self, Display, Formatter};

#[derive(Debug)]
pub struct Failure(String);

pub type Result<T> = std::result::Result<T, Failure>;

impl Display for Failure {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

pub fn of(text: impl Into<String>) -> Failure {
    Failure(text.into())
}

/// Names what was attempted when it fails.
pub trait Context<T> {
    /// # Errors
    /// The same, with what was attempted in front of it.
    fn context(self, what: impl Display) -> Result<T>;
}

impl<T, E: Display> Context<T> for std::result::Result<T, E> {
    fn context(self, what: impl Display) -> Result<T> {
        self.map_err(|error| Failure(format!("{what}: {error}")))
    }
}

/// The result of a system call that `nix` does not have.
///
/// # Errors
/// `errno`, with what was attempted in front of it.
pub fn check(result: i64, what: impl Display) -> Result<i64> {
    nix::errno::Errno::result(result).context(what)
}
