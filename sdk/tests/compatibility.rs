//! Handlers in the style of the Rust Edge Gateway SDK 0.1. That they compile is the test.

#![allow(dead_code, clippy::field_reassign_with_default)]

#[cfg(feature = "async")]
#[path = "handlers/asynchronous.rs"]
mod asynchronous;
#[path = "handlers/closures.rs"]
mod closures;
#[path = "handlers/crud.rs"]
mod crud;
#[path = "handlers/forms.rs"]
mod forms;
#[path = "handlers/results.rs"]
mod results;
