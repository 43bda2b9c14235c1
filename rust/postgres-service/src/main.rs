//! The process of one PostgreSQL service, which an actor host starts (`src/actors/service-process`): serves its
//! handlers, or tests a connection. All it knows is in the first request of the actor host.
mod control;
mod error;
mod log;
mod pg;
mod serve;
mod sql;
mod wire;

fn main() {
    control::run();
}
