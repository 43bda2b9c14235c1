//! What the processes of services have in common, which an actor host starts (`src/actors/service-process`): a program
//! serves the handlers of one service, or tests a connection. All it knows is in the first request of the actor host.
pub mod backend;
mod control;
pub mod database;
pub mod error;
mod log;
pub mod memory;
#[cfg(not(fuzzing))]
mod serve;
#[cfg(fuzzing)]
pub mod serve;
pub mod sql;
mod text;

pub use edge_wire::MAX_BODY_BYTES;

/// The main function of such a program.
pub fn run<B: backend::Backend>() {
    memory::give_back_large_blocks();
    ignore_signals();
    control::run::<B>();
}

/// The actor host ends this process, also when a signal is sent to the whole process group.
fn ignore_signals() {
    // SAFETY: no handler is installed, and no other thread runs yet.
    unsafe {
        libc::signal(libc::SIGINT, libc::SIG_IGN);
        libc::signal(libc::SIGTERM, libc::SIG_IGN);
    }
}
