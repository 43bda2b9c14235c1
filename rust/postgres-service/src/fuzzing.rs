//! What a fuzzer calls: answers of a server, its certificate, and frames and statements of handlers. `scripts/fuzz.mjs`
//! builds and runs it.
use std::sync::LazyLock;

use crate::{pg, sql};

static TARGET: LazyLock<String> = LazyLock::new(|| std::env::var("FUZZ_TARGET").unwrap_or_default());

pub fn run(bytes: &[u8]) {
    match &**TARGET {
        "postgres-answers" => pg::fuzzing::answers(bytes),
        "postgres-certificates" => pg::fuzzing::certificates(bytes),
        "service-frames" => edge_service::serve::fuzzing::frames(bytes),
        "postgres-sql" => sql::fuzzing::calls(bytes),
        other => panic!("FUZZ_TARGET is {other:?}, and no target of this program"),
    }
}
