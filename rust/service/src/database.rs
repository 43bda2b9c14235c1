//! The connection of a service to its backend: when it is lost, it is opened again with exponential backoff. A retired
//! connection is closed when the last call on it has ended.
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::sleep;

use crate::backend::{Backend, Connection, Limits, State, StatementResult};
use crate::error::{CallError, Kind};

/// Less than the 5 s within which the API answers a connection test.
pub const OPEN_TIMEOUT: Duration = Duration::from_millis(4_500);
/// Backoff between attempts: doubled each time, from the minimum to the maximum.
const MIN_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_secs(2);
/// A connection lost within this time counts as a failed attempt.
const MIN_LIFETIME: Duration = Duration::from_secs(5);
/// Spreads the attempts of services that have lost the same backend.
const JITTER: f64 = 0.2;

/// The database of a service: its connection, which is opened again when the backend was away.
pub struct Database<B: Backend> {
    backend: B,
    on_state: Box<dyn Fn(&State)>,
    this: Weak<Self>,
    state: RefCell<State>,
    current: RefCell<Option<Rc<Generation<B::Connection>>>>,
    /// Those that are not closed.
    generations: RefCell<HashMap<u64, Rc<Generation<B::Connection>>>>,
    attempts: Cell<u64>,
    connecting: RefCell<Option<JoinHandle<()>>>,
    /// Notified when the state is no more `Connecting`, and at the end.
    settling: Notify,
    is_ending: Cell<bool>,
    is_verifying: Cell<bool>,
}

/// One connection and the number of its calls.
struct Generation<C> {
    number: u64,
    connection: Rc<C>,
    calls: Cell<usize>,
    is_retired: Cell<bool>,
    since: Instant,
}

/// The connection as long as a call or a transaction uses it.
pub struct ConnectionLease<B: Backend> {
    database: Rc<Database<B>>,
    generation: Rc<Generation<B::Connection>>,
}

impl<B: Backend> Database<B> {
    /// Begins to connect. `on_state` is called with each new state.
    pub fn open(config: B::Config, limits: Limits, on_state: impl Fn(&State) + 'static) -> Rc<Self> {
        let database = Rc::new_cyclic(|this| Self {
            backend: B::new(config, limits),
            on_state: Box::new(on_state),
            this: this.clone(),
            state: RefCell::new(State::Connecting),
            current: RefCell::default(),
            generations: RefCell::default(),
            attempts: Cell::new(0),
            connecting: RefCell::default(),
            settling: Notify::new(),
            is_ending: Cell::new(false),
            is_verifying: Cell::new(false),
        });
        database.begin_to_connect(Duration::ZERO);
        database
    }

    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Resolves when the first attempt to connect, at the start or after a loss, has succeeded or failed.
    pub async fn settled(&self) {
        loop {
            let settled = self.settling.notified();
            if self.is_ending.get() || !matches!(*self.state.borrow(), State::Connecting) {
                return;
            }
            settled.await;
        }
    }

    /// Runs a statement. To drop the future aborts it.
    ///
    /// # Errors
    ///
    /// `unavailable` while there is no connection; it waits for the first attempt to connect. `backend` with the
    /// message of the database.
    pub async fn run(&self, statement: B::Statement, wants_rows: bool) -> Result<StatementResult, CallError> {
        let held = self.hold().await?;
        held.connection().run(statement, wants_rows).await.map_err(|error| held.failed(error))
    }

    /// Opens a transaction. To drop the future aborts it likewise.
    ///
    /// # Errors
    ///
    /// Those of `run`.
    pub async fn begin(&self) -> Result<B::Transaction, CallError> {
        B::begin(self.hold().await?).await
    }

    /// Checks whether the backend still answers, after a call has exceeded its deadline; retires the connection if it
    /// does not.
    pub fn verify(&self) {
        if self.is_verifying.get() {
            return;
        }
        let (Some(generation), Some(this)) = (self.current.borrow().clone(), self.this.upgrade()) else { return };
        self.is_verifying.set(true);
        spawn_local(async move {
            let probed = tokio::select! {
                probed = this.backend.probe() => probed,
                () = this.ended() => Ok(()),
            };
            this.is_verifying.set(false);
            if let Err(error) = probed {
                this.lost(&generation, error.message);
            }
        });
    }

    /// Stops reconnecting and closes all connections; calls that are under way fail.
    pub async fn close(&self) {
        self.is_ending.set(true);
        self.settling.notify_waiters();
        let connecting = self.connecting.take();
        if let Some(task) = connecting {
            // It has no other way to fail than to be cancelled, which it is not.
            let _ = task.await;
        }
        self.current.take();
        let closing: Vec<_> = self.generations.take().into_values().collect();
        for generation in &closing {
            generation.connection.close();
        }
        for generation in closing {
            generation.connection.closed().await;
        }
    }

    /// The connection for a call. Waits for the first attempt to connect, but not while the backend is unreachable.
    async fn hold(&self) -> Result<ConnectionLease<B>, CallError> {
        if let Some(held) = self.hold_now() {
            return Ok(held);
        }
        self.settled().await;
        self.hold_now().ok_or_else(|| not_connected(&self.state.borrow()))
    }

    fn hold_now(&self) -> Option<ConnectionLease<B>> {
        let generation = self.current.borrow().clone()?;
        let database = self.this.upgrade()?;
        generation.calls.set(generation.calls.get() + 1);
        Some(ConnectionLease { database, generation })
    }

    fn begin_to_connect(&self, pause: Duration) {
        let Some(this) = self.this.upgrade() else { return };
        let task = spawn_local(async move { this.connect(pause).await });
        self.connecting.replace(Some(task));
    }

    async fn connect(&self, mut pause: Duration) {
        let mut next = MIN_BACKOFF;
        while !self.is_ending.get() {
            if !pause.is_zero() {
                tokio::select! {
                    () = sleep(pause.mul_f64(jitter())) => {}
                    () = self.ended() => return,
                }
            }
            tokio::select! {
                is_connected = self.attempt() => if is_connected { return },
                () = self.ended() => return,
            }
            pause = pause.max(next);
            next = (next * 2).min(MAX_BACKOFF);
        }
    }

    async fn attempt(&self) -> bool {
        let number = self.attempts.get();
        self.attempts.set(number + 1);
        let this = self.this.clone();
        let on_lost = move |error: CallError| {
            let Some(database) = this.upgrade() else { return };
            let generation = database.generations.borrow().get(&number).cloned();
            if let Some(generation) = generation {
                database.lost(&generation, error.message);
            }
        };
        match self.backend.open(OPEN_TIMEOUT, on_lost).await {
            Ok(mut opened) => {
                let Some(connection) = opened.take() else { return false };
                let (calls, is_retired, since) = (Cell::new(0), Cell::new(false), Instant::now());
                let generation = Rc::new(Generation { number, connection, calls, is_retired, since });
                self.generations.borrow_mut().insert(number, generation.clone());
                self.current.replace(Some(generation));
                let (message, latency_ms) = (opened.round_trip.message.clone(), opened.round_trip.latency_ms);
                self.set_state(State::Connected { message, latency_ms });
                true
            }
            Err(error) => {
                self.set_state(State::Unreachable { reason: error.message });
                false
            }
        }
    }

    /// Resolves when this is closed.
    async fn ended(&self) {
        loop {
            let notified = self.settling.notified();
            if self.is_ending.get() {
                return;
            }
            notified.await;
        }
    }

    fn lost(&self, generation: &Rc<Generation<B::Connection>>, reason: String) {
        if generation.is_retired.replace(true) {
            return;
        }
        self.close_if_unused(generation);
        let is_current = self.current.borrow().as_ref().is_some_and(|current| Rc::ptr_eq(current, generation));
        if !is_current || self.is_ending.get() {
            return;
        }
        self.current.take();
        // Calls wait for the first attempt, unless the backend drops connections right after accepting them.
        if generation.since.elapsed() < MIN_LIFETIME {
            self.set_state(State::Unreachable { reason });
            self.begin_to_connect(MAX_BACKOFF / 4);
        } else {
            self.set_state(State::Connecting);
            self.begin_to_connect(Duration::ZERO);
        }
    }

    fn close_if_unused(&self, generation: &Generation<B::Connection>) {
        if generation.is_retired.get() && generation.calls.get() == 0 {
            self.generations.borrow_mut().remove(&generation.number);
            generation.connection.close();
        }
    }

    fn set_state(&self, state: State) {
        self.state.replace(state.clone());
        if !matches!(state, State::Connecting) {
            self.settling.notify_waiters();
        }
        (self.on_state)(&state);
    }
}

impl<B: Backend> ConnectionLease<B> {
    pub fn connection(&self) -> &Rc<B::Connection> {
        &self.generation.connection
    }

    /// Retires a connection that is of no use any more. It is called with the error of a call.
    pub fn failed(&self, error: CallError) -> CallError {
        if error.kind == Kind::Unavailable {
            self.database.lost(&self.generation, error.message.clone());
        }
        error
    }
}

impl<B: Backend> Drop for ConnectionLease<B> {
    fn drop(&mut self) {
        self.generation.calls.set(self.generation.calls.get() - 1);
        self.database.close_if_unused(&self.generation);
    }
}

/// The error of a call while there is no connection.
pub fn not_connected(state: &State) -> CallError {
    let reason = match state {
        State::Unreachable { reason } => reason,
        _ => "it is still being connected",
    };
    CallError::new(Kind::Unavailable, format!("the backend cannot be reached: {reason}"))
}

/// About 1. The standard library has no random numbers, but its hashes differ each time.
fn jitter() -> f64 {
    let random = RandomState::new().hash_one(()) as f64 / u64::MAX as f64;
    1.0 + JITTER * (2.0 * random - 1.0)
}
