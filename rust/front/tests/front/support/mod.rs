//! What tests of the front need: the front itself, as a process (`front.rs`), with this process as its supervisor
//! (`supervisor.rs`), handlers in threads of this process (`handler.rs`), and clients that send any bytes
//! (`client.rs`, `http2.rs`).
//!
//! Whatever is waited for comes, or the test fails after [`PATIENCE`].
mod client;
mod endpoint;
mod frames;
mod front;
pub mod golden;
mod handler;
pub mod http2;
mod stream;
mod supervisor;

use std::thread;
use std::time::{Duration, Instant};

pub use client::{Client, Response};
pub use endpoint::{Endpoint, get, post};
pub use frames::Frames;
pub use front::Front;
pub use handler::{Answer, Gate, Handler, Request, anything};
pub use http2::Http2;
pub use stream::Stream;

/// How long a test waits for what does not come. Nothing is expected to take that long, so it may be long.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks at what cannot be waited for otherwise.
const PAUSE: Duration = Duration::from_millis(1);

/// Looks until something is so. `shown` says how it is when it does not become so.
fn eventually(shown: impl Fn() -> String, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "{}", shown());
        thread::sleep(PAUSE);
    }
}
