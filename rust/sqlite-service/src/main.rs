//! The process of one sqlite service.
#![cfg_attr(fuzzing, no_main, allow(dead_code))]
mod db;
#[cfg(fuzzing)]
mod fuzzing;
mod link;
mod service;
mod sql;

#[cfg(not(fuzzing))]
fn main() {
    edge_service::run::<service::Sqlite>();
}

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::run(bytes));
