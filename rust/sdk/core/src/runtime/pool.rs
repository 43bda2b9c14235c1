//! The threads that run handlers, shared by all connections.

use super::gateway_connection::GatewayConnection;
use super::threads::lock;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// An idle thread ends after this long.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
/// Reserved address space; memory is used only as deep as a handler's calls go.
const STACK_BYTES: usize = 2 * 1024 * 1024;

/// Works for a connection until another thread reads it and nothing is left to do, or it is closed.
pub type Serve = dyn Fn(&Arc<GatewayConnection>) + Send + Sync;

/// The pool.
pub struct Pool {
    serve: Box<Serve>,
    state: Mutex<PoolState>,
    work: Condvar,
    max: usize,
    /// Whether no thread can be had now. Beside the state, to be read without its lock.
    exhausted: AtomicBool,
}

#[derive(Default)]
struct PoolState {
    /// Connections that wait for an idle thread, at most one for each.
    assigned: VecDeque<Arc<GatewayConnection>>,
    idle: usize,
    total: usize,
}

impl Pool {
    /// A pool of at most `max` threads that `serve`, with none yet.
    pub fn new(max: usize, serve: Box<Serve>) -> Self {
        Pool { serve, state: Mutex::default(), work: Condvar::new(), max, exhausted: AtomicBool::new(false) }
    }

    /// The most threads that there may be, but for connections that would have none.
    pub fn max(&self) -> usize {
        self.max
    }

    /// Whether [`Pool::add`] would fail.
    pub fn is_exhausted(&self) -> bool {
        self.exhausted.load(Relaxed)
    }

    /// Sends a thread to the connection, an idle one if possible. `false` if there is none and none may be started.
    pub fn add(&'static self, connection: &Arc<GatewayConnection>) -> bool {
        self.send(connection, self.max)
    }

    /// The same without a bound.
    pub fn add_always(&'static self, connection: &Arc<GatewayConnection>) -> bool {
        self.send(connection, usize::MAX)
    }

    fn send(&'static self, connection: &Arc<GatewayConnection>, max: usize) -> bool {
        let mut state = lock(&self.state);
        if state.idle > state.assigned.len() {
            state.assigned.push_back(connection.clone());
            self.update_exhausted(&state);
            drop(state);
            self.work.notify_one();
            return true;
        }
        if state.total >= max {
            return false;
        }
        state.total += 1;
        self.update_exhausted(&state);
        drop(state);
        let connection = connection.clone();
        let builder = thread::Builder::new().name("handler".to_owned()).stack_size(STACK_BYTES);
        match builder.spawn(move || self.work(connection)) {
            Ok(_) => true,
            Err(error) => {
                eprintln!("edge-gateway-sdk: cannot start another thread: {error}");
                let mut state = lock(&self.state);
                state.total -= 1;
                self.update_exhausted(&state);
                false
            }
        }
    }

    /// What a thread does.
    fn work(&self, first: Arc<GatewayConnection>) {
        let mut next = Some(first);
        while let Some(connection) = next {
            (self.serve)(&connection);
            // Not held while idle: dropping the last reference closes it.
            drop(connection);
            next = self.wait();
        }
    }

    /// The next connection to work for; `None` when the thread is to end.
    fn wait(&self) -> Option<Arc<GatewayConnection>> {
        let mut state = lock(&self.state);
        state.idle += 1;
        self.update_exhausted(&state);
        loop {
            if let Some(connection) = state.assigned.pop_front() {
                state.idle -= 1;
                self.update_exhausted(&state);
                return Some(connection);
            }
            let (guard, waited) =
                self.work.wait_timeout(state, IDLE_TIMEOUT).unwrap_or_else(std::sync::PoisonError::into_inner);
            state = guard;
            if waited.timed_out() && state.assigned.is_empty() {
                state.idle -= 1;
                state.total -= 1;
                self.update_exhausted(&state);
                return None;
            }
        }
    }

    fn update_exhausted(&self, state: &PoolState) {
        let none_free = state.idle <= state.assigned.len();
        self.exhausted.store(none_free && state.total >= self.max, Relaxed);
    }
}
