//! A front: see the library.
#![cfg_attr(fuzzing, no_main)]

#[cfg(not(fuzzing))]
fn main() {
    edge_front::run(None);
}

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| edge_front::fuzzing::run(bytes));
