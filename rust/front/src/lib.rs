//! The front of a gateway: serves the public port, and sends requests to handlers. The supervisor (`src/gateway`)
//! starts it, gives it the listening socket, and tells it which endpoints there are and what serves them.
mod accept;
mod challenges;
mod client_ip;
mod control;
mod dates;
mod durations;
mod endpoint_state;
mod entries;
mod event_loop;
mod figures;
#[cfg(fuzzing)]
pub mod fuzzing;
mod guard;
mod http;
mod internal;
mod intervals;
mod memory;
mod messages;
mod policies;
mod request;
pub mod routes;
mod scratch;
mod supervisor;
mod thread;
mod tls;
mod upstream;
mod workers;

use std::sync::Arc;

pub use tls::{Certificate, Handshake, SecureStream, Tls};

/// The main function of the program. With `tls`, it has a second port.
pub fn run(tls: Option<Arc<dyn Tls>>) {
    memory::give_back_large_blocks();
    control::run(tls);
}
