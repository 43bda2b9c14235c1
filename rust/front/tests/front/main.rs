//! Tests of the front as a process: what clients get for what they send, with handlers that do as a test says.
//!
//! There is no database and no supervisor but the test. What the real ones do with a front is tested in `test/`.
mod client_ip;
mod connections;
mod handler_protocol;
mod hostile_requests;
mod http2;
mod http2_limits;
mod policies;
mod streams;
mod support;
mod uploads;
mod websockets;
