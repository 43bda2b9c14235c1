//! The calls of one connection that are in progress, and its transaction.
use std::cell::{Cell, RefCell};
use std::future::{poll_fn, ready};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use tokio::task::spawn_local;

use super::actor::Operation;
use super::call_head::CallHead;
use super::host::Host;
use super::transaction::ActorTransaction;
use crate::backend::{Backend, StatementResult};
use crate::error::{CallError, Kind};

const HAS_TRANSACTION: &str = "the connection has an open transaction already";

/// What a call has done.
pub enum Success {
    Done,
    Affected {
        rows: u64,
        last_insert_id: Option<i64>,
    },
    /// JSON.
    Rows(Vec<u8>),
}

pub enum Failure {
    Error(CallError),
    /// The call belongs elsewhere: the actor host knows where.
    Moved,
}

type CallResult = Result<Success, Failure>;

/// What a call with so large a payload holds: its parameters, and the messages with them for the server.
pub fn memory_of(payload_bytes: usize) -> usize {
    2 * payload_bytes
}

/// A call in progress.
pub struct Call {
    pub number: u32,
    /// Taken from the memory budget.
    pub memory_bytes: usize,
    pub future: Pin<Box<dyn Future<Output = CallResult>>>,
}

pub struct Calls<B: Backend> {
    host: Rc<Host<B>>,
    /// The calls in progress, in the order in which they have come.
    pub running: Vec<Call>,
    transaction: Rc<TransactionSlot<B>>,
}

/// A connection has one transaction at most.
struct TransactionSlot<B: Backend> {
    open: RefCell<Option<OpenTransaction<B>>>,
    is_closed: Cell<bool>,
}

/// A transaction and its pool.
struct OpenTransaction<B: Backend> {
    pool: Box<str>,
    transaction: Rc<ActorTransaction<B>>,
}

impl<B: Backend> Calls<B> {
    pub fn new(host: Rc<Host<B>>) -> Self {
        let transaction = TransactionSlot { open: RefCell::default(), is_closed: Cell::default() };
        Self { host, running: Vec::new(), transaction: Rc::new(transaction) }
    }

    pub fn len(&self) -> usize {
        self.running.len()
    }

    /// Begins a call, whose payload is counted against the memory budget already.
    pub fn begin(&mut self, number: u32, head: &CallHead, payload: &[u8], endpoint: &str) {
        let future = self.perform(head, payload, endpoint).unwrap_or_else(|failure| Box::pin(ready(Err(failure))));
        self.running.push(Call { number, memory_bytes: memory_of(payload.len()), future });
    }

    /// The connection is closed: its transaction is rolled back, and calls run until they have ended.
    pub async fn finish(mut self) {
        self.transaction.is_closed.set(true);
        if let Some(open) = self.transaction.open.take() {
            // Aborts calls that are waited for below.
            spawn_local(async move { open.transaction.abandon().await });
        }
        poll_fn(|context| {
            self.running.retain_mut(|call| {
                let is_running = call.future.as_mut().poll(context).is_pending();
                if !is_running {
                    self.host.memory.release(call.memory_bytes);
                }
                is_running
            });
            if self.running.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    fn perform(
        &self,
        head: &CallHead,
        payload: &[u8],
        endpoint: &str,
    ) -> Result<Pin<Box<dyn Future<Output = CallResult>>>, Failure> {
        let Host { default_call_ms, longest_call_ms, .. } = *self.host;
        let limit = Duration::from_millis(head.deadline_ms.unwrap_or(default_call_ms).min(longest_call_ms));
        match &*head.op {
            "begin" => self.begin_transaction(head, endpoint, limit),
            "commit" => {
                let transaction = self.end_transaction(head)?;
                Ok(Box::pin(async move { Ok(transaction.commit(limit).await.map(|()| Success::Done)?) }))
            }
            "rollback" => {
                let transaction = self.end_transaction(head)?;
                Ok(Box::pin(async move {
                    transaction.rollback().await;
                    Ok(Success::Done)
                }))
            }
            operation if head.tx => {
                let transaction = self.transaction_of(head)?;
                let (operation, problem, payload) = (operation.to_owned(), head.problem_of_args(), payload.to_vec());
                Ok(Box::pin(async move {
                    Ok(transaction.call(&operation, problem, payload, limit).await.map(Success::from)?)
                }))
            }
            operation => {
                let actor = self.host.actor_for(endpoint, &head.pool).ok_or(Failure::Moved)?;
                // This comes before the call is counted: unknown names of operations must not become labels of metrics.
                let operation = Operation::named::<B>(operation)?;
                if let Some(problem) = head.problem_of_args() {
                    return Err(invalid(problem));
                }
                let call = actor.call(operation, payload, limit);
                Ok(Box::pin(async move { Ok(call.await.map(Success::from)?) }))
            }
        }
    }

    fn begin_transaction(
        &self,
        head: &CallHead,
        endpoint: &str,
        limit: Duration,
    ) -> Result<Pin<Box<dyn Future<Output = CallResult>>>, Failure> {
        if self.transaction.open.borrow().is_some() {
            return Err(invalid(HAS_TRANSACTION));
        }
        let actor = self.host.actor_for(endpoint, &head.pool).ok_or(Failure::Moved)?.clone();
        let longest = Duration::from_millis(self.host.longest_call_ms);
        let (pool, slot) = (head.pool.as_ref().into(), self.transaction.clone());
        Ok(Box::pin(async move {
            let transaction = actor.begin(limit, longest).await?;
            if slot.is_closed.get() || slot.open.borrow().is_some() {
                transaction.rollback().await;
                return Err(invalid(HAS_TRANSACTION));
            }
            *slot.open.borrow_mut() = Some(OpenTransaction { pool, transaction });
            Ok(Success::Done)
        }))
    }

    fn transaction_of(&self, head: &CallHead) -> Result<Rc<ActorTransaction<B>>, Failure> {
        match &*self.transaction.open.borrow() {
            Some(open) if *open.pool == *head.pool => Ok(open.transaction.clone()),
            _ => Err(invalid("there is no open transaction")),
        }
    }

    fn end_transaction(&self, head: &CallHead) -> Result<Rc<ActorTransaction<B>>, Failure> {
        let transaction = self.transaction_of(head)?;
        self.transaction.open.take();
        Ok(transaction)
    }
}

impl From<StatementResult> for Success {
    fn from(answer: StatementResult) -> Self {
        match answer {
            StatementResult::Rows(json) => Self::Rows(json),
            StatementResult::Affected { rows, last_insert_id } => Self::Affected { rows, last_insert_id },
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self::Error(error)
    }
}

fn invalid(message: impl Into<String>) -> Failure {
    Failure::Error(CallError::new(Kind::Invalid, message))
}
