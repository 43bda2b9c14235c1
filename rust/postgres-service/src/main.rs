//! The process of one PostgreSQL service, which an actor host starts (`src/actors/service-process`): serves its
//! handlers, or tests a connection. All it knows is in the first request of the actor host.
mod control;
mod error;
mod log;
mod memory;
mod parent;
mod pg;
mod serve;
mod sql;
mod text;
mod wire;

fn main() {
    memory::give_back_large_blocks();
    parent::ignore_signals();
    parent::watch_if_asked();
    control::run();
}
