//! Serves the handlers of a service: its socket, its calls, and its figures.
mod actor;
mod call_head;
mod calls;
mod connections;
mod deadlines;
mod figures;
#[cfg(fuzzing)]
pub mod fuzzing;
mod host;
mod incoming;
mod line_limiter;
mod listener;
mod outgoing;
mod server;
mod session;
mod session_commands;
mod token;
mod transaction;

use std::cell::{Cell, RefCell};
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use serde::Deserialize;

use crate::backend::{Backend, Limits};
use crate::log::Log;
use actor::Actor;
use connections::Maximums;
pub use figures::Figures;
pub use host::Binding;
use host::{Host, table_of};
pub use listener::Listener;
use server::Server;
use token::TokenReader;

/// A service, and how it is served.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServeRequest {
    pub bindings: Vec<Binding>,
    /// Where handlers connect.
    pub handler_socket: String,
    /// Signs the tokens of handlers; valid for this process only.
    pub key: String,
    /// The folder of the nonces of the handlers that run.
    pub token_folder: PathBuf,
    pub queue_limit: usize,
    pub default_call_ms: u64,
    pub longest_call_ms: u64,
    /// The memory for payloads of calls, and for answers that are not sent yet.
    pub memory_bytes: f64,
    /// Concurrent requests of a handler.
    pub handler_threads: usize,
}

/// A service within its process.
pub struct ServedService<B: Backend> {
    host: Rc<Host<B>>,
    server: Rc<Server<B>>,
}

impl<B: Backend> ServedService<B> {
    /// Serves until it is drained.
    pub async fn start(
        request: ServeRequest,
        config: B::Config,
        limits: Limits,
        log: Log,
        listener: Listener,
    ) -> io::Result<Rc<Self>> {
        let listening = server::listen(&request.handler_socket).await?;
        let memory = limits.memory.clone();
        let host = Rc::new(Host {
            actor: Actor::start(config, limits, request.queue_limit, log.clone(), listener),
            tokens: TokenReader::new(&request.key, request.token_folder),
            bindings: RefCell::new(table_of(&request.bindings)),
            is_draining: Cell::new(false),
            default_call_ms: request.default_call_ms,
            longest_call_ms: request.longest_call_ms,
            memory,
        });
        let maximums = Maximums::of(request.handler_threads);
        let server = Server::start(listening, request.handler_socket, host.clone(), maximums, log);
        Ok(Rc::new(Self { host, server }))
    }

    /// Replaces the bindings.
    pub fn bind(&self, bindings: &[Binding]) {
        *self.host.bindings.borrow_mut() = table_of(bindings);
    }

    /// The figures since the last time.
    pub fn take_figures(&self) -> Figures {
        self.host.actor.take_figures()
    }

    /// Sends new calls elsewhere, and waits up to the limit for those in progress; then closes connections.
    pub async fn drain(&self, limit: Option<Duration>) {
        self.host.is_draining.set(true);
        self.host.actor.drain(limit).await;
        // With a limit, the process is killed after this.
        if limit.is_some() {
            self.server.close_connections().await;
        }
    }

    /// Asks handlers to leave, and resolves when they have.
    pub async fn left(&self) {
        self.server.retire().await;
    }
}
