//! A transaction of the actor: its calls and its end run one after the other, and its duration is limited. It occupies
//! one of the connections.
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::{Mutex, Notify};
use tokio::task::{AbortHandle, spawn_local};
use tokio::time::{Instant, sleep};

use super::actor::{Actor, Admission, Operation, parse};
use crate::backend::{Backend, StatementResult, Transaction};
use crate::error::{CallError, Kind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Committed,
    RolledBack,
    TimedOut,
}

pub struct ActorTransaction<B: Backend> {
    actor: Rc<Actor<B>>,
    transaction: B::Transaction,
    /// What the transaction occupies until its end.
    admission: RefCell<Option<Admission<B>>>,
    outcome: Cell<Option<Outcome>>,
    /// Held by the call in progress; others get it in the order in which they came.
    turn: Mutex<()>,
    /// Ends the call in progress.
    aborted: Notify,
    longest: Duration,
    timer: RefCell<Option<AbortHandle>>,
}

impl<B: Backend> ActorTransaction<B> {
    /// Takes a transaction that the database has opened; it is rolled back after `longest`.
    pub fn open(
        actor: Rc<Actor<B>>,
        admission: Admission<B>,
        transaction: B::Transaction,
        longest: Duration,
    ) -> Rc<Self> {
        let opened = Rc::new(Self {
            actor,
            transaction,
            admission: RefCell::new(Some(admission)),
            outcome: Cell::default(),
            turn: Mutex::new(()),
            aborted: Notify::new(),
            longest,
            timer: RefCell::default(),
        });
        let timed = opened.clone();
        let timer = spawn_local(async move {
            sleep(longest).await;
            timed.end(Outcome::TimedOut).await;
        });
        *opened.timer.borrow_mut() = Some(timer.abort_handle());
        opened
    }

    pub async fn call(
        &self,
        operation: &str,
        args_problem: Option<String>,
        payload: Vec<u8>,
        limit: Duration,
    ) -> Result<StatementResult, CallError> {
        let _turn = self.turn.lock().await;
        self.require_open()?;
        let operation = Operation::named::<B>(operation)?;
        if let Some(problem) = args_problem {
            return Err(CallError::new(Kind::Invalid, problem));
        }
        self.bounded(operation.name(), limit, async {
            let statement = parse::<B>(payload, true).await?;
            self.transaction.run(statement, operation.wants_rows()).await
        })
        .await
    }

    pub async fn commit(&self, limit: Duration) -> Result<(), CallError> {
        let _turn = self.turn.lock().await;
        self.require_open()?;
        self.outcome.set(Some(Outcome::Committed));
        self.stop_timer();
        let result = self.bounded("commit", limit, self.transaction.commit()).await;
        self.admission.take();
        result
    }

    /// Rolls back after the earlier calls have ended.
    pub async fn rollback(&self) {
        let _turn = self.turn.lock().await;
        if self.outcome.get().is_none() {
            self.outcome.set(Some(Outcome::RolledBack));
            self.stop_timer();
            self.transaction.rollback().await;
            self.admission.take();
        }
    }

    /// Rolls back at once, and aborts the call in progress.
    pub async fn abandon(&self) {
        self.end(Outcome::RolledBack).await;
    }

    async fn end(&self, outcome: Outcome) {
        if self.outcome.get().is_some() {
            return;
        }
        self.outcome.set(Some(outcome));
        // Not by itself: it would end itself.
        if outcome != Outcome::TimedOut {
            self.stop_timer();
        }
        // Otherwise the rollback would wait for the statement in progress.
        self.aborted.notify_waiters();
        // Those that wait for their turn fail at once, because it has ended.
        let _turn = self.turn.lock().await;
        self.transaction.rollback().await;
        self.admission.take();
    }

    fn require_open(&self) -> Result<(), CallError> {
        let done = match self.outcome.get() {
            None => return Ok(()),
            Some(Outcome::TimedOut) => {
                let limit = self.longest.as_millis();
                let text = format!("the transaction was rolled back: it was open for longer than {limit} ms");
                return Err(CallError::new(Kind::Deadline, text));
            }
            Some(Outcome::Committed) => "committed",
            Some(Outcome::RolledBack) => "rolled back",
        };
        Err(CallError::new(Kind::Invalid, format!("the transaction is {done} already")))
    }

    /// Runs a call that can be aborted when the transaction ends.
    async fn bounded<T>(
        &self,
        operation: &'static str,
        limit: Duration,
        work: impl Future<Output = Result<T, CallError>>,
    ) -> Result<T, CallError> {
        let since = Instant::now();
        let result = tokio::select! {
            biased;
            () = self.aborted.notified() => Err(CallError::new(Kind::Deadline, "the statement was cancelled")),
            result = self.actor.bounded(limit, limit, work) => result,
        };
        self.actor.count(operation, &result, since);
        result
    }

    fn stop_timer(&self) {
        if let Some(timer) = self.timer.take() {
            timer.abort();
        }
    }
}
