//! What a fuzzer calls: what reads heads, chunks and WebSocket frames of clients, frames of handlers, policies, and
//! requests that one of them checks. `scripts/fuzz.mjs` builds and runs it. A target panics where something is wrong.
use std::sync::LazyLock;

use crate::{http, policies, upstream};

/// The name of the target that this process runs.
static TARGET: LazyLock<String> = LazyLock::new(|| std::env::var("FUZZ_TARGET").unwrap_or_default());

pub fn run(bytes: &[u8]) {
    match &**TARGET {
        "heads" => http::fuzzing::heads(bytes),
        "chunks" => http::fuzzing::chunks(bytes),
        "web-socket-frames" => http::websocket::fuzzing::frames(bytes),
        "frames" => upstream::fuzzing::frames(bytes),
        "response-heads" => upstream::fuzzing::response_heads(bytes),
        "policies" => policies::fuzzing::policies(bytes),
        "validate" => policies::fuzzing::validate(bytes),
        other => panic!("FUZZ_TARGET is {other:?}, and no target of this program"),
    }
}
