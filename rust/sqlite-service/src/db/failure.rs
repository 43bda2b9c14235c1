//! What goes wrong in SQLite, and how it is told to handlers and operators.
use edge_service::MAX_BODY_BYTES;
use edge_service::error::{CallError, Kind};
use rusqlite::{Connection, ffi};

use super::limits::FileLimits;
use super::statement::{Code, last_error};

/// An error of a statement.
#[derive(Debug)]
pub enum Failure {
    Sqlite {
        /// The extended one.
        code: i32,
        message: String,
        /// The error number of the operating system.
        errno: i32,
        /// Whether the statement reads only, so that what it could not write is a temporary file.
        only_reads: bool,
    },
    /// The error of the call.
    Call(CallError),
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

/// The failure of what `rusqlite` does: opening, and settings.
impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        let code = error.sqlite_error().map_or(ffi::SQLITE_ERROR, |error| error.extended_code);
        Self::Sqlite { code, message: error.to_string(), errno: 0, only_reads: false }
    }
}

impl Failure {
    /// What the connection says about a function that has just failed.
    pub fn of(connection: &Connection, Code(code): Code, only_reads: bool) -> Self {
        let (extended, errno, message) = last_error(connection);
        // What the connection says is about this error, not about one before.
        if extended & 0xff == code & 0xff {
            return Self::Sqlite { code: extended, message, errno, only_reads };
        }
        Self::Sqlite { code, message: ffi::code_to_str(code).to_owned(), errno: 0, only_reads }
    }

    pub fn is_out_of_memory(&self) -> bool {
        matches!(self, Self::Sqlite { code, .. } if code & 0xff == ffi::SQLITE_NOMEM)
    }

    /// The error of a call: `unavailable` when the file cannot be used any more.
    ///
    /// `memory_mb` is what this process may use.
    pub fn into_call_error(self, file: &FileLimits, memory_mb: usize) -> CallError {
        let (code, message, errno, only_reads) = match self {
            Self::Call(error) => return error,
            Self::Sqlite { code, message, errno, only_reads } => (code, message, errno, only_reads),
        };
        let (kind, text) = match code & 0xff {
            ffi::SQLITE_FULL => {
                let limit = format!("{} MiB (max_size_mb in the config of the service)", file.database_mb);
                (Kind::Backend, format!("the file may have {limit}, or the disk is full"))
            }
            ffi::SQLITE_TOOBIG => {
                let limit = MAX_BODY_BYTES / (1024 * 1024);
                (Kind::Invalid, format!("a value or row is larger than {limit} MiB, the maximum"))
            }
            ffi::SQLITE_NOMEM => {
                let limit = format!("the process may use {memory_mb} MiB");
                (Kind::Backend, format!("the statement needs too much memory: {limit}"))
            }
            ffi::SQLITE_IOERR if file.is_wal_full() => {
                let reason =
                    "a large transaction, or another program that reads the file, keeps it from becoming shorter";
                (Kind::Backend, format!("the write-ahead log has {} MiB, the maximum: {reason}", file.any_mb))
            }
            ffi::SQLITE_IOERR if errno == libc::EFBIG || (only_reads && code == ffi::SQLITE_IOERR_WRITE) => {
                let limit = format!("a temporary file may have {} MiB", file.any_mb);
                (Kind::Backend, format!("disk I/O error: {limit}; sort and store less at a time"))
            }
            primary => {
                let is_lost = matches!(primary, ffi::SQLITE_IOERR | ffi::SQLITE_CANTOPEN | ffi::SQLITE_NOTADB);
                let kind = if is_lost { Kind::Unavailable } else { Kind::Backend };
                (kind, format!("{message} ({})", name(primary)))
            }
        };
        CallError::new(kind, text)
    }
}

/// The name of a primary code.
fn name(code: i32) -> &'static str {
    const NAMES: [&str; 27] = [
        "SQLITE_OK",
        "SQLITE_ERROR",
        "SQLITE_INTERNAL",
        "SQLITE_PERM",
        "SQLITE_ABORT",
        "SQLITE_BUSY",
        "SQLITE_LOCKED",
        "SQLITE_NOMEM",
        "SQLITE_READONLY",
        "SQLITE_INTERRUPT",
        "SQLITE_IOERR",
        "SQLITE_CORRUPT",
        "SQLITE_NOTFOUND",
        "SQLITE_FULL",
        "SQLITE_CANTOPEN",
        "SQLITE_PROTOCOL",
        "SQLITE_EMPTY",
        "SQLITE_SCHEMA",
        "SQLITE_TOOBIG",
        "SQLITE_CONSTRAINT",
        "SQLITE_MISMATCH",
        "SQLITE_MISUSE",
        "SQLITE_NOLFS",
        "SQLITE_AUTH",
        "SQLITE_FORMAT",
        "SQLITE_RANGE",
        "SQLITE_NOTADB",
    ];
    usize::try_from(code).ok().and_then(|code| NAMES.get(code)).copied().unwrap_or("SQLITE_ERROR")
}
