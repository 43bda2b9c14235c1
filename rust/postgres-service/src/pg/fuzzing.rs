//! Bytes of servers.
use std::sync::Arc;

use edge_service::memory::MemoryBudget;

use super::certificate::Certificate;
use super::connection::Common;
use super::messages::{Split, split};
use super::statement::{Progress, Sink};

const LIMIT: usize = 1 << 20;

/// Whatever a server answers, the result is JSON, or a failure.
pub fn answers(bytes: &[u8]) {
    let memory = Arc::new(MemoryBudget::new(64 * LIMIT));
    let common = Common::new(LIMIT, memory);
    let mut progress = Progress::new(Sink::Json, None, &common);
    let mut rest = bytes;
    while let Ok(Split::Message { tag, body, bytes }) = split(rest, LIMIT) {
        if progress.on_message(tag, body, &common.types).is_err() {
            return;
        }
        rest = &rest[bytes..];
    }
    let answered = progress.finish();
    let affected = answered.rows_affected();
    if let Some(text) = answered.text.and_then(|text| text.finish(affected).ok()) {
        // Numbers in JSON of a database may be larger than those of `serde_json::Value`.
        serde_json::from_slice::<serde::de::IgnoredAny>(&text)
            .unwrap_or_else(|error| panic!("{error}: {}", text.escape_ascii()));
    }
}

pub fn certificates(bytes: &[u8]) {
    if let Some(certificate) = Certificate::read(bytes) {
        certificate.is_self_issued();
        certificate.has_common_name("db.example.com");
    }
}
