//! What the processes of services have in common, which an actor host starts (`src/actors/service-process`): a program
//! serves the handlers of one service, or tests a connection. All it knows is in the first request of the actor host.
pub mod backend;
mod control;
pub mod database;
pub mod error;
mod log;
pub mod memory;
mod parent;
mod serve;
pub mod sql;
mod text;

pub use edge_wire::MAX_BODY_BYTES;

/// The main function of such a program.
pub fn run<B: backend::Backend>() {
    memory::give_back_large_blocks();
    parent::ignore_signals();
    parent::watch_if_asked();
    control::run::<B>();
}
