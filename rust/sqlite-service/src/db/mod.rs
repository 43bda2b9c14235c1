//! SQLite itself: an open file, its statements, and its limits.
mod authorizer;
mod database;
mod failure;
mod limits;
mod path;
mod prepared;
mod statement;

#[cfg(fuzzing)]
pub use authorizer::{prepare, restrict};
pub use database::{Access, Database, ResultWithMemory};
pub use failure::Failure;
pub use limits::{FileLimits, abortable, give_back_memory, limit_heap};
pub use path::resolve;
