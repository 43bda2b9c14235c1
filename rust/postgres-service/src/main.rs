//! The process of one PostgreSQL service.
#![cfg_attr(fuzzing, no_main, allow(dead_code))]
#[cfg(fuzzing)]
mod fuzzing;
mod pg;
mod sql;

#[cfg(not(fuzzing))]
fn main() {
    edge_service::run::<pg::Postgres>();
}

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::run(bytes));
