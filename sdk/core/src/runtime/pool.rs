//! The threads that run handlers, shared by all lanes.

use super::lane::Lane;
use super::{lock, Runtime};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// An idle thread ends after this long.
const IDLE: Duration = Duration::from_secs(10);
/// Reserved address space, touched only as far as a handler's calls go deep.
const STACK_BYTES: usize = 2 * 1024 * 1024;

/// The pool.
pub struct Pool {
    state: Mutex<State>,
    work: Condvar,
    max: usize,
    /// Whether no thread could be got right now; kept beside the state to be read without its lock.
    exhausted: AtomicBool,
}

#[derive(Default)]
struct State {
    /// Lanes that idle threads have been called to, at most one for each idle thread.
    calls: VecDeque<Arc<Lane>>,
    idle: usize,
    total: usize,
}

impl Pool {
    /// A pool of at most `max` threads, with none yet.
    pub fn new(max: usize) -> Self {
        Pool { state: Mutex::default(), work: Condvar::new(), max, exhausted: AtomicBool::new(false) }
    }

    /// Whether [`Pool::add`] would fail.
    pub fn is_exhausted(&self) -> bool {
        self.exhausted.load(Relaxed)
    }

    /// Sends a thread to the lane, an idle one if possible. `false` if there is none and none may be started.
    pub fn add(&self, runtime: &'static Runtime, lane: &Arc<Lane>) -> bool {
        self.send(runtime, lane, self.max)
    }

    /// The same without a bound.
    pub fn add_always(&self, runtime: &'static Runtime, lane: &Arc<Lane>) -> bool {
        self.send(runtime, lane, usize::MAX)
    }

    fn send(&self, runtime: &'static Runtime, lane: &Arc<Lane>, max: usize) -> bool {
        let mut state = lock(&self.state);
        if state.idle > state.calls.len() {
            state.calls.push_back(lane.clone());
            self.note(&state);
            drop(state);
            self.work.notify_one();
            return true;
        }
        if state.total >= max {
            return false;
        }
        state.total += 1;
        self.note(&state);
        drop(state);
        let lane = lane.clone();
        let builder = thread::Builder::new().name("handler".to_owned()).stack_size(STACK_BYTES);
        match builder.spawn(move || runtime.pool.work(runtime, lane)) {
            Ok(_) => true,
            Err(error) => {
                eprintln!("edge-gateway-sdk: cannot start another thread: {error}");
                let mut state = lock(&self.state);
                state.total -= 1;
                self.note(&state);
                false
            }
        }
    }

    /// The life of a thread.
    fn work(&self, runtime: &'static Runtime, first: Arc<Lane>) {
        let mut next = Some(first);
        while let Some(lane) = next {
            runtime.serve(&lane);
            // Not held while idle: the last reference closes the connection.
            drop(lane);
            next = self.wait();
        }
    }

    /// The next lane to work for; `None` when it is time to end.
    fn wait(&self) -> Option<Arc<Lane>> {
        let mut state = lock(&self.state);
        state.idle += 1;
        self.note(&state);
        loop {
            if let Some(lane) = state.calls.pop_front() {
                state.idle -= 1;
                self.note(&state);
                return Some(lane);
            }
            let (guard, waited) =
                self.work.wait_timeout(state, IDLE).unwrap_or_else(std::sync::PoisonError::into_inner);
            state = guard;
            if waited.timed_out() && state.calls.is_empty() {
                state.idle -= 1;
                state.total -= 1;
                self.note(&state);
                return None;
            }
        }
    }

    fn note(&self, state: &State) {
        let none_free = state.idle <= state.calls.len();
        self.exhausted.store(none_free && state.total >= self.max, Relaxed);
    }
}
