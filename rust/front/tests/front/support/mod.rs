//! What tests of the front need: the front itself, as a process (`front.rs`), with this process as its supervisor
//! (`supervisor.rs`), handlers in threads of this process (`handler.rs`), and clients that send any bytes
//! (`client.rs`, `http2.rs`).
//!
//! A test fails when it has waited for something for [`PATIENCE`].
mod client;
mod endpoint;
mod frames;
mod front;
pub mod golden;
mod handler;
pub mod http2;
mod stream;
mod supervisor;

use std::io::{self, ErrorKind, Read};
use std::net::TcpStream;
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

/// A limit in milliseconds that is not to be met, although things that are together longer come in time: a machine may
/// stand still for seconds.
pub const UNMET_MS: u32 = 5_000;

/// As many pieces with this pause between them take longer than [`UNMET_MS`].
pub const LASTING_PIECES: usize = 60;
pub const PIECE_PAUSE: Duration = Duration::from_millis(100);

/// The time between two looks at what cannot be waited for otherwise.
const PAUSE: Duration = Duration::from_millis(1);

/// Reads what has come. A read with a time limit ends when the machine stood still within it (see signal(7)), and then
/// begins again.
fn read_some(stream: &mut TcpStream, piece: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(piece) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// Looks until something is so. `failure` says what is wrong when it does not become so.
pub fn eventually(failure: impl Fn() -> String, condition: impl FnMut() -> bool) {
    eventually_within(PATIENCE, failure, condition);
}

/// The same, where it would become so after a longer time even when something is wrong.
pub fn eventually_within(limit: Duration, failure: impl Fn() -> String, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < limit, "{}", failure());
        thread::sleep(PAUSE);
    }
}
