//! Closes connections of clients that are too slow, and idle ones. Checks all connections of a thread from time to
//! time: timers of each connection would cost more than the rest of what is done for a request.
//!
//! While the front waits for a client, bytes are counted over windows of `stall_timeout`; in each, a minimum has to be
//! transferred. Time in which the front itself does not read, or has nothing to send, does not count.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;

use slab::Slab;

use crate::messages::Settings;

/// Time to receive a whole body.
const RECEIVE_LIMIT: Duration = Duration::from_secs(300);
/// While the front drains, idle connections are closed after this. A client that keeps connections open, such as a load
/// balancer, may be sending a request while the server closes one, and cannot know whether it was handled. So
/// connections in use are closed by a response with `Connection: close`, and only idle ones without.
const DRAINING_IDLE: Duration = Duration::from_secs(2);

/// What the front waits for on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It waits for nothing that the client does, or with a time limit of its own.
    Unwatched,
    /// It waits for a request, after another one.
    Idle,
    /// It waits for the rest of a head, or for the first one.
    Head,
    /// It waits for a whole body.
    Body,
    /// It waits for more of a body that the handler reads meanwhile.
    Piece,
    /// It waits until the client takes a response.
    Response,
}

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// It has had no request for too long.
    Idle,
    /// A request arrives too slowly.
    SlowSender,
    /// A response is taken too slowly.
    SlowReceiver,
}

/// A connection, as the guard sees it.
pub struct Watch {
    phase: Cell<Phase>,
    /// How long the phase has lasted; `None` until the next check, because it may have begun just before that.
    waited: Cell<Option<Duration>>,
    /// How long the current window has lasted, and the bytes that were transferred before it.
    window: Cell<(Duration, u64)>,
    /// Bytes transferred in this phase.
    bytes: Cell<u64>,
    close_reason: Cell<Option<CloseReason>>,
    waker: Waker,
}

impl Watch {
    pub fn phase(&self) -> Phase {
        self.phase.get()
    }

    /// A reason that belongs to the phase before counts no more: what was waited for has come after all.
    pub fn begin(&self, phase: Phase) {
        self.phase.set(phase);
        self.close_reason.set(None);
        self.waited.set(None);
        self.window.set((Duration::ZERO, 0));
        self.bytes.set(0);
    }

    pub fn transferred(&self, bytes: usize) {
        self.bytes.set(self.bytes.get() + bytes as u64);
    }

    /// Why the connection is to be closed. This is asked before waiting for the client.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.close_reason.get()
    }

    fn end(&self, close_reason: CloseReason) {
        if self.close_reason.replace(Some(close_reason)).is_none() {
            self.waker.wake_by_ref();
        }
    }
}

/// A watched connection. It is not watched any more when this is dropped.
pub struct WatchedConnection {
    guard: Rc<Guard>,
    key: usize,
    pub watch: Rc<Watch>,
}

impl Drop for WatchedConnection {
    fn drop(&mut self) {
        self.guard.watches.borrow_mut().remove(self.key);
    }
}

pub struct Guard {
    head: Duration,
    idle: Duration,
    stall: Duration,
    min_bytes_per_second: u64,
    watches: RefCell<Slab<Rc<Watch>>>,
    is_draining: Cell<bool>,
}

impl Guard {
    pub fn new(settings: &Settings) -> Rc<Self> {
        Rc::new(Self {
            head: Duration::from_millis(settings.head_timeout_ms),
            idle: Duration::from_millis(settings.idle_timeout_ms),
            stall: Duration::from_millis(settings.stall_timeout_ms),
            min_bytes_per_second: settings.min_bytes_per_second,
            watches: RefCell::default(),
            is_draining: Cell::default(),
        })
    }

    /// Watches the connection of the task with this waker.
    pub fn watch(self: &Rc<Self>, waker: Waker) -> WatchedConnection {
        let watch = Rc::new(Watch {
            phase: Cell::new(Phase::Unwatched),
            waited: Cell::default(),
            window: Cell::default(),
            bytes: Cell::default(),
            close_reason: Cell::default(),
            waker,
        });
        let key = self.watches.borrow_mut().insert(watch.clone());
        WatchedConnection { guard: self.clone(), key, watch }
    }

    /// From now on connections are closed after their current request. Those that are idle have their time from now on,
    /// however long they have been: a client that loses the ones it uses takes these next.
    pub fn drain(&self) {
        self.is_draining.set(true);
        for (_, watch) in &*self.watches.borrow() {
            if watch.phase() == Phase::Idle {
                watch.waited.set(None);
            }
            // A client of HTTP/2 is told at once.
            watch.waker.wake_by_ref();
        }
    }

    pub fn is_draining(&self) -> bool {
        self.is_draining.get()
    }

    /// Checks all connections, `passed` after the last time.
    pub fn check(&self, passed: Duration) {
        for (_, watch) in &*self.watches.borrow() {
            if let Some(close_reason) = self.check_connection(watch, passed) {
                watch.end(close_reason);
            }
        }
    }

    fn check_connection(&self, watch: &Watch, passed: Duration) -> Option<CloseReason> {
        let Some(waited) = watch.waited.get() else {
            watch.waited.set(Some(Duration::ZERO));
            watch.window.set((Duration::ZERO, watch.bytes.get()));
            return None;
        };
        let waited = waited + passed;
        watch.waited.set(Some(waited));
        let limit = |limit: Duration| if self.is_draining() { limit.min(DRAINING_IDLE) } else { limit };
        match watch.phase() {
            Phase::Unwatched => None,
            Phase::Idle => (waited >= limit(self.idle)).then_some(CloseReason::Idle),
            Phase::Head => (waited >= limit(self.head)).then_some(CloseReason::SlowSender),
            Phase::Body => (waited >= RECEIVE_LIMIT || self.is_slow(watch, passed)).then_some(CloseReason::SlowSender),
            Phase::Piece => self.is_slow(watch, passed).then_some(CloseReason::SlowSender),
            Phase::Response => self.is_slow(watch, passed).then_some(CloseReason::SlowReceiver),
        }
    }

    fn is_slow(&self, watch: &Watch, passed: Duration) -> bool {
        let (waited, before) = watch.window.get();
        let waited = waited + passed;
        let bytes = watch.bytes.get();
        if waited < self.stall {
            watch.window.set((waited, before));
            return false;
        }
        watch.window.set((Duration::ZERO, bytes));
        ((bytes - before) as f64) < waited.as_secs_f64() * self.min_bytes_per_second as f64
    }
}

#[cfg(test)]
pub mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    pub fn guard() -> Rc<Guard> {
        Guard::new(&Settings {
            threads: 1,
            body_limit: 0,
            memory_bytes: 0,
            policy_memory_bytes: 0,
            connections_limit: 0,
            head_timeout_ms: 3_000,
            idle_timeout_ms: 5_000,
            stall_timeout_ms: 2_000,
            min_bytes_per_second: 10,
            stream_drain_ms: 0,
            trusted_proxies: Vec::new(),
            logs_requests: false,
            shares_rates: false,
            log_requests_per_second: 0,
            figures_every_seconds: 5,
            rate_seed: None,
            traces: None,
            redirect_port: None,
            strict_transport_seconds: 0,
        })
    }

    fn after(guard: &Guard, seconds: u32) {
        for _ in 0..=seconds {
            guard.check(SECOND);
        }
    }

    #[test]
    fn waiting_has_limits() {
        for (phase, seconds, close_reason) in [
            (Phase::Head, 3, CloseReason::SlowSender),
            (Phase::Idle, 5, CloseReason::Idle),
            (Phase::Body, 2, CloseReason::SlowSender),
        ] {
            let guard = guard();
            let watched = guard.watch(Waker::noop().clone());
            watched.watch.begin(phase);
            after(&guard, seconds - 1);
            assert_eq!(watched.watch.close_reason(), None);
            guard.check(SECOND);
            assert_eq!(watched.watch.close_reason(), Some(close_reason));
        }
    }

    #[test]
    fn a_client_that_is_fast_enough_is_kept() {
        let guard = guard();
        let watched = guard.watch(Waker::noop().clone());
        watched.watch.begin(Phase::Response);
        for _ in 0..20 {
            watched.watch.transferred(10);
            guard.check(SECOND);
        }
        assert_eq!(watched.watch.close_reason(), None);
        after(&guard, 3);
        assert_eq!(watched.watch.close_reason(), Some(CloseReason::SlowReceiver));
    }

    #[test]
    fn each_phase_has_a_verdict_of_its_own_that_wakes() {
        struct Wakes(AtomicUsize);
        impl Wake for Wakes {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let wakes = Arc::new(Wakes(AtomicUsize::new(0)));
        let guard = guard();
        let watched = guard.watch(wakes.clone().into());
        watched.watch.begin(Phase::Head);
        after(&guard, 3);
        assert_eq!(watched.watch.close_reason(), Some(CloseReason::SlowSender));
        watched.watch.begin(Phase::Response);
        assert_eq!(watched.watch.close_reason(), None);
        after(&guard, 2);
        assert_eq!(watched.watch.close_reason(), Some(CloseReason::SlowReceiver));
        assert_eq!(wakes.0.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn draining_closes_idle_connections_sooner_but_not_at_once() {
        let guard = guard();
        let watched = guard.watch(Waker::noop().clone());
        watched.watch.begin(Phase::Idle);
        after(&guard, 4);
        guard.drain();
        after(&guard, 1);
        assert_eq!(watched.watch.close_reason(), None);
        guard.check(SECOND);
        assert_eq!(watched.watch.close_reason(), Some(CloseReason::Idle));
    }

    #[test]
    fn time_of_the_front_does_not_count() {
        let guard = guard();
        let watched = guard.watch(Waker::noop().clone());
        watched.watch.begin(Phase::Unwatched);
        after(&guard, 1_000);
        assert_eq!(watched.watch.close_reason(), None);
    }

    #[test]
    fn connections_without_a_request_end_soon_while_the_front_drains() {
        let guard = guard();
        let watched = guard.watch(Waker::noop().clone());
        watched.watch.begin(Phase::Idle);
        guard.drain();
        after(&guard, 2);
        assert_eq!(watched.watch.close_reason(), Some(CloseReason::Idle));
        drop(watched);
        assert!(guard.watches.borrow().is_empty());
    }
}
