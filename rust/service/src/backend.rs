//! What a kind of database is to the code that serves handlers. One thread does all of it: no future has to be `Send`.
#![allow(async_fn_in_trait)]
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::database::ConnectionLease;
use crate::error::CallError;
use crate::memory::MemoryBudget;

/// The backend of a service: how it is reached, and what it is asked.
pub trait Backend: Sized + 'static {
    /// The type of its services.
    const SERVICE_TYPE: &'static str;

    /// The config of the service, as the contract has it.
    type Config: DeserializeOwned;
    /// A statement of a handler that was checked. Large ones are read by another thread.
    type Statement: Send + 'static;
    type Connection: Connection<Statement = Self::Statement>;
    type Transaction: Transaction<Statement = Self::Statement>;

    fn new(config: Self::Config, limits: Limits) -> Self;

    /// Calls at a time.
    fn concurrency(config: &Self::Config) -> usize;

    /// Reads the payload of a call, `{"sql", "params"}`, and checks the statement.
    ///
    /// # Errors
    ///
    /// `invalid`, naming the wrong member, or saying why the statement is refused.
    fn parse(payload: &[u8], in_transaction: bool) -> Result<Self::Statement, CallError>;

    /// Connects, and makes one round trip. `on_lost` is called when the connection is lost and cannot be replaced.
    ///
    /// # Errors
    ///
    /// `deadline` when the backend does not answer in time, even if it has accepted the connection; else why it cannot
    /// be reached, or refuses.
    async fn open(
        &self,
        limit: Duration,
        on_lost: impl Fn(CallError) + Clone + 'static,
    ) -> Result<OpenedConnection<Self::Connection>, CallError>;

    /// Whether the backend still answers, after a call has exceeded its deadline.
    ///
    /// # Errors
    ///
    /// It is silent, and the connection of no use any more.
    async fn probe(&self) -> Result<(), CallError>;

    /// Opens a transaction on the connection, which is held until its end. To drop the future aborts it.
    ///
    /// # Errors
    ///
    /// Those of a statement.
    async fn begin(held: ConnectionLease<Self>) -> Result<Self::Transaction, CallError>;
}

/// What statements run on: a connection, or a pool of them.
pub trait Connection: 'static {
    type Statement;

    /// Runs a statement. To drop the future aborts it.
    ///
    /// # Errors
    ///
    /// `backend` with the message of the database; `unavailable` when this is of no use any more.
    async fn run(self: &Rc<Self>, statement: Self::Statement, wants_rows: bool) -> Result<StatementResult, CallError>;

    /// Closes it; calls that are under way fail.
    fn close(&self);

    /// Resolves when it is closed.
    async fn closed(&self);
}

/// An open transaction. Dropped without an end, it is rolled back.
pub trait Transaction: 'static {
    type Statement;

    /// # Errors
    ///
    /// Those of a statement without a transaction; `invalid` when it has ended.
    async fn run(&self, statement: Self::Statement, wants_rows: bool) -> Result<StatementResult, CallError>;

    /// # Errors
    ///
    /// `backend` when it was rolled back, because a statement in it has failed.
    async fn commit(&self) -> Result<(), CallError>;

    /// Never fails: what cannot be rolled back is closed, which has the same effect.
    async fn rollback(&self);
}

/// Whether the backend can be reached.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum State {
    /// During the first attempt, at the start or after a connection was lost.
    Connecting,
    Connected {
        message: String,
        latency_ms: u64,
    },
    Unreachable {
        reason: String,
    },
}

/// What a statement has returned.
#[derive(Debug)]
pub enum StatementResult {
    /// JSON: `{"columns", "rows", "rows_affected", "last_insert_id"}`.
    Rows(Vec<u8>),
    Affected {
        /// The number of changed rows.
        rows: u64,
        last_insert_id: Option<i64>,
    },
}

/// What the backend and its handlers may make this process hold, and reach.
pub struct Limits {
    /// One answer of the backend, bytes.
    pub answer_bytes: usize,
    /// All that is held at a time for clients.
    pub memory: Arc<MemoryBudget>,
    /// All that the process may use, MiB.
    pub memory_mb: usize,
    /// The folders in which files of sqlite services may be; paths refer to the first.
    pub sqlite_folders: Vec<PathBuf>,
}

/// A message to the backend over a new connection, and its answer.
#[derive(Clone)]
pub struct RoundTrip {
    /// Product and version of the backend.
    pub message: String,
    /// Duration of the round trip.
    pub latency_ms: u64,
}

/// A connection that was tested. It is closed when this is dropped.
pub struct OpenedConnection<C: Connection> {
    connection: Option<Rc<C>>,
    pub round_trip: RoundTrip,
}

impl<C: Connection> OpenedConnection<C> {
    pub fn new(connection: Rc<C>) -> Self {
        Self { connection: Some(connection), round_trip: RoundTrip { message: String::new(), latency_ms: 0 } }
    }

    /// From now on the caller closes it.
    pub fn take(&mut self) -> Option<Rc<C>> {
        self.connection.take()
    }
}

impl<C: Connection> Drop for OpenedConnection<C> {
    fn drop(&mut self) {
        if let Some(connection) = &self.connection {
            connection.close();
        }
    }
}
