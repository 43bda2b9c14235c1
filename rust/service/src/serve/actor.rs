//! The actor of the service: it limits the calls in progress and those that wait, gives every call a deadline, counts
//! them, and drains when the service is deactivated.
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::{Notify, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout};

use super::deadlines::Deadlines;
use super::figures::{FigureCollector, Figures, PoolUse};
use super::listener::Listener;
use super::transaction::ActorTransaction;
use crate::backend::{Backend, Limits, State, StatementResult};
use crate::database::{Database, not_connected};
use crate::error::{CallError, Kind};
use crate::log::{Level, Log};

/// A backend that has answered, or was checked, within this time is not checked again.
const VERIFY_PAUSE: Duration = Duration::from_secs(5);
/// Payloads from this size on, in bytes, are read by another thread: reading one of the longest can take seconds, for
/// which all other calls, and the actor host that asks whether this process lives, would wait.
const LARGE_PAYLOAD: usize = 1024 * 1024;

/// The operations with a statement, for which handlers get an answer of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Query,
    Execute,
}

impl Operation {
    /// Finds an operation.
    ///
    /// # Errors
    ///
    /// `invalid`, with the names of the operations.
    pub fn named<B: Backend>(name: &str) -> Result<Self, CallError> {
        match name {
            "query" => Ok(Self::Query),
            "execute" => Ok(Self::Execute),
            _ => {
                let name: String = name.chars().take(64).collect();
                let known = format!("a {} service has query, execute", B::SERVICE_TYPE);
                let text = format!("there is no operation \"{name}\": {known}");
                Err(CallError::new(Kind::Invalid, text))
            }
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Execute => "execute",
        }
    }

    pub fn wants_rows(self) -> bool {
        self == Self::Query
    }
}

/// Reads a payload, and checks its statement.
///
/// # Errors
///
/// Those of [`Backend::parse`].
pub async fn parse<B: Backend>(payload: Vec<u8>, in_transaction: bool) -> Result<B::Statement, CallError> {
    if payload.len() < LARGE_PAYLOAD {
        return B::parse(&payload, in_transaction);
    }
    let read = spawn_blocking(move || B::parse(&payload, in_transaction)).await;
    // A panic ends the process.
    read.unwrap_or_else(|error| Err(CallError::new(Kind::Unavailable, format!("the payload was not read: {error}"))))
}

pub struct Actor<B: Backend> {
    database: Rc<Database<B>>,
    condition: Rc<Condition>,
    pool_size: usize,
    queue_limit: usize,
    slots: Semaphore,
    deadlines: Rc<Deadlines>,
    waiting: Cell<usize>,
    /// Calls and transactions in progress, including those that wait.
    open: Cell<usize>,
    is_empty: Notify,
    is_draining: Cell<bool>,
    /// When the backend last answered a call.
    answered_at: Cell<Option<Instant>>,
    verified_at: Cell<Option<Instant>>,
}

/// Whether the backend can be reached, and the figures, of which reconnects are a part.
struct Condition {
    /// Looked at with each call.
    is_connected: Cell<bool>,
    was_connected: Cell<bool>,
    is_logged: Cell<bool>,
    figures: FigureCollector,
    listener: Listener,
    log: Log,
}

/// What a call occupies while it is in progress.
pub struct Admission<B: Backend> {
    actor: Rc<Actor<B>>,
    /// The time until the deadline of the call.
    pub remaining: Duration,
}

impl<B: Backend> Drop for Admission<B> {
    fn drop(&mut self) {
        self.actor.slots.add_permits(1);
        self.actor.closed();
    }
}

impl<B: Backend> Actor<B> {
    pub fn start(config: B::Config, limits: Limits, queue_limit: usize, log: Log, listener: Listener) -> Rc<Self> {
        let condition = Rc::new(Condition {
            is_connected: Cell::new(false),
            was_connected: Cell::default(),
            is_logged: Cell::default(),
            figures: FigureCollector::default(),
            listener,
            log,
        });
        let observer = condition.clone();
        let pool_size = B::concurrency(&config);
        Rc::new(Self {
            database: Database::open(config, limits, move |state| observer.change(state)),
            condition,
            pool_size,
            queue_limit,
            slots: Semaphore::new(pool_size),
            deadlines: Deadlines::start(),
            waiting: Cell::default(),
            open: Cell::default(),
            is_empty: Notify::new(),
            is_draining: Cell::default(),
            answered_at: Cell::default(),
            verified_at: Cell::default(),
        })
    }

    pub fn take_figures(&self) -> Figures {
        self.condition.figures.take(self.pool_use())
    }

    /// Begins a call at once where that is possible: then its payload, unless it is large, is read here and not copied.
    pub fn call(
        self: &Rc<Self>,
        operation: Operation,
        payload: &[u8],
        limit: Duration,
    ) -> impl Future<Output = Result<StatementResult, CallError>> + use<B> {
        let since = Instant::now();
        let is_small = payload.len() < LARGE_PAYLOAD;
        let admitted = if is_small { self.admit_now(limit) } else { None };
        let started = admitted.map(|admission| (admission, B::parse(payload, false)));
        let waiting = if started.is_some() { Vec::new() } else { payload.to_vec() };
        let actor = self.clone();
        async move {
            let work = async {
                let (admission, statement) = match started {
                    Some(started) => started,
                    None => {
                        let admission = actor.admit(limit).await?;
                        (admission, parse::<B>(waiting, false).await)
                    }
                };
                let statement = statement?;
                let answer = actor.database.run(statement, operation.wants_rows());
                actor.bounded(limit, admission.remaining, answer).await
            };
            let result = work.await;
            actor.count(operation.name(), &result, since);
            result
        }
    }

    /// Opens a transaction, which is rolled back after `longest`.
    pub async fn begin(
        self: &Rc<Self>,
        limit: Duration,
        longest: Duration,
    ) -> Result<Rc<ActorTransaction<B>>, CallError> {
        let since = Instant::now();
        let work = async {
            let admission = match self.admit_now(limit) {
                Some(admission) => admission,
                None => self.admit(limit).await?,
            };
            let transaction = self.bounded(limit, admission.remaining, self.database.begin()).await?;
            Ok(ActorTransaction::open(self.clone(), admission, transaction, longest))
        };
        let result = work.await;
        self.count("begin", &result, since);
        result
    }

    /// Waits for the backend until the deadline; then aborts the work, and checks the backend.
    pub async fn bounded<T>(
        &self,
        limit: Duration,
        remaining: Duration,
        work: impl Future<Output = Result<T, CallError>>,
    ) -> Result<T, CallError> {
        // After the deadline it has been dropped, which aborts it.
        let outcome = self.deadlines.within(remaining, work).await;
        match outcome {
            Some(Ok(answer)) => {
                self.answered_at.set(Some(Instant::now()));
                Ok(answer)
            }
            Some(Err(error)) => Err(error),
            None => {
                self.verify();
                let text = format!("the backend did not answer within {} ms", limit.as_millis());
                Err(CallError::new(Kind::Deadline, text))
            }
        }
    }

    pub fn count<T>(&self, operation: &'static str, result: &Result<T, CallError>, since: Instant) {
        let Condition { figures, listener, .. } = &*self.condition;
        if figures.called(operation, result, since) {
            (listener.on_figures_due)(figures.take(self.pool_use()));
        }
    }

    /// Refuses new calls, waits up to the limit for those in progress, and closes the connections.
    pub async fn drain(&self, limit: Option<Duration>) {
        self.is_draining.set(true);
        let emptied = async {
            while self.open.get() > 0 {
                self.is_empty.notified().await;
            }
        };
        match limit {
            // What is left ends with the connections.
            Some(limit) => drop(timeout(limit, emptied).await),
            None => emptied.await,
        }
        self.database.close().await;
    }

    fn pool_use(&self) -> PoolUse {
        PoolUse { in_use: self.pool_size - self.slots.available_permits(), waiting: self.waiting.get() }
    }

    /// Admits a call without waiting: the common case.
    fn admit_now(self: &Rc<Self>, limit: Duration) -> Option<Admission<B>> {
        if self.is_draining.get() || !self.condition.is_connected.get() {
            return None;
        }
        self.slots.try_acquire().ok()?.forget();
        self.open.set(self.open.get() + 1);
        Some(Admission { actor: self.clone(), remaining: limit })
    }

    /// Admits a call after waiting for capacity and for the connection if necessary.
    async fn admit(self: &Rc<Self>, limit: Duration) -> Result<Admission<B>, CallError> {
        if self.is_draining.get() {
            return Err(CallError::new(Kind::Inactive, "the service is being deactivated"));
        }
        self.open.set(self.open.get() + 1);
        let started = Instant::now();
        if let Err(error) = self.acquire(limit).await {
            self.closed();
            return Err(error);
        }
        // Gives all back when it is dropped.
        let mut admission = Admission { actor: self.clone(), remaining: limit.saturating_sub(started.elapsed()) };
        if admission.remaining < Duration::from_millis(1) {
            let text = format!("it waited {} ms in the queue", limit.as_millis());
            return Err(CallError::new(Kind::Deadline, text));
        }
        if !self.condition.is_connected.get() {
            self.connected(admission.remaining).await?;
            admission.remaining = limit.saturating_sub(started.elapsed());
        }
        Ok(admission)
    }

    /// Waits for a slot.
    async fn acquire(&self, limit: Duration) -> Result<(), CallError> {
        if let Ok(permit) = self.slots.try_acquire() {
            permit.forget();
            return Ok(());
        }
        let waiting = self.waiting.get();
        if waiting >= self.queue_limit {
            let advice = "try again later, or give the service a larger pool_size";
            return Err(CallError::new(Kind::Busy, format!("{waiting} calls wait for it already; {advice}")));
        }
        self.waiting.set(waiting + 1);
        let acquired = self.deadlines.within(limit, self.slots.acquire()).await;
        self.waiting.set(self.waiting.get() - 1);
        match acquired {
            Some(Ok(permit)) => {
                permit.forget();
                Ok(())
            }
            _ => {
                let times = format!("in use for {} ms", limit.as_millis());
                let text = format!("all {} of its connections were {times}", self.pool_size);
                Err(CallError::new(Kind::Deadline, text))
            }
        }
    }

    /// Waits for the first attempt to connect, but not while the backend is unreachable.
    async fn connected(&self, remaining: Duration) -> Result<(), CallError> {
        if matches!(self.database.state(), State::Connecting) {
            // Whichever comes first, the state says what is the case.
            let _ = self.deadlines.within(remaining, self.database.settled()).await;
        }
        if self.condition.is_connected.get() { Ok(()) } else { Err(not_connected(&self.database.state())) }
    }

    fn closed(&self) {
        self.open.set(self.open.get() - 1);
        if self.open.get() == 0 {
            self.is_empty.notify_waiters();
        }
    }

    /// Checks the backend after a call has exceeded its deadline, unless it has answered recently.
    fn verify(&self) {
        let now = Instant::now();
        let recently = |at: Option<Instant>| at.is_some_and(|at| now - at < VERIFY_PAUSE);
        if recently(self.answered_at.get()) || recently(self.verified_at.get()) {
            return;
        }
        self.verified_at.set(Some(now));
        self.database.verify();
    }
}

impl Condition {
    fn change(&self, state: &State) {
        self.is_connected.set(matches!(state, State::Connected { .. }));
        match state {
            State::Connected { message, .. } => {
                let again = self.was_connected.replace(true);
                if again {
                    self.figures.reconnected();
                }
                let text = if again { "connected again" } else { "connected" };
                self.log.line(Level::Info, json!({ "backend": message }), text);
                self.is_logged.set(false);
            }
            // Once per outage, not for every attempt.
            State::Unreachable { reason } if !self.is_logged.replace(true) => {
                let text = "backend cannot be reached; trying again";
                self.log.line(Level::Warn, json!({ "reason": reason }), text);
            }
            _ => {}
        }
        (self.listener.on_state)(state);
    }
}
