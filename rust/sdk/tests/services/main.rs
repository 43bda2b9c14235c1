//! The service handles: what they send, and what they make of answers.

mod databases;
mod handles;
mod mongo;
mod moves;
mod object_streams;
mod params;
mod server;
mod storage;

use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Makes a call to a separate pool, with the given answer. Returns head and payload that were sent, and the result.
fn exchange<T>(answer: fn() -> server::Answer, call: impl FnOnce(String) -> T) -> (Value, Vec<u8>, T) {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let pool = format!("pool {}", COUNT.fetch_add(1, Ordering::SeqCst));
    server::on(&pool, move |_| answer());
    let outcome = call(pool.clone());
    let calls = server::calls(&pool);
    assert_eq!(calls.len(), 1, "one call is made");
    let mut head = calls[0].head.clone();
    head.as_object_mut().unwrap().remove("pool");
    (head, calls[0].payload.clone(), outcome)
}

/// The payload as JSON.
fn json_of(payload: &[u8]) -> Value {
    serde_json::from_slice(payload).unwrap()
}
