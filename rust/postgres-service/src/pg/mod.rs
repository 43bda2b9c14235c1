//! The database of a service: its pool of connections, which are opened again when the server was away.
use std::rc::Rc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::CallError;
use crate::log::Log;
use crate::sql::Statement;

/// The config of the service, as the contract has it.
#[derive(Clone, Debug, Deserialize)]
pub struct Config {
    pub host: String,
    pub port: u16,
    pub database: String,
    pub username: String,
    pub password: Option<String>,
    pub pool_size: usize,
    pub ssl_mode: SslMode,
    pub ssl_root_cert: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum SslMode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// Whether the server can be reached; the JSON is that of `ConnectionState` in TypeScript.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum State {
    /// During the first attempt, at the start or after a connection was lost.
    Connecting,
    Connected { message: String, latency_ms: u64 },
    Unreachable { reason: String },
}

/// What a statement has answered.
#[derive(Debug)]
pub enum Answer {
    /// JSON: `{"columns", "rows", "rows_affected", "last_insert_id"}`.
    Rows(Vec<u8>),
    /// The number of changed rows.
    Affected(u64),
}

/// What one answer of the server may be, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct AnswerLimit(pub usize);

pub struct Database;

impl Database {
    /// Begins to connect. `on_state` is called with each new state.
    pub fn open(_config: Config, _limit: AnswerLimit, _log: Log, _on_state: impl Fn(&State) + 'static) -> Rc<Self> {
        todo!()
    }

    pub fn state(&self) -> State {
        todo!()
    }

    /// Resolves when the first attempt to connect, at the start or after a loss, has succeeded or failed.
    pub async fn settled(&self) {
        todo!()
    }

    /// Runs a statement on a connection of its own. To drop the future aborts it: the statement is cancelled on the
    /// server and its connection closed.
    pub async fn run(&self, _statement: &Statement, _wants_rows: bool) -> Result<Answer, CallError> {
        todo!()
    }

    /// Opens a transaction. To drop the future aborts it likewise.
    pub async fn begin(&self) -> Result<Transaction, CallError> {
        todo!()
    }

    /// After a call has exceeded its deadline: checks over a new connection whether the server still answers.
    pub fn verify(&self) {
        todo!()
    }

    /// Closes all connections; calls that are under way fail.
    pub async fn close(&self) {
        todo!()
    }
}

/// An open transaction and its connection. Dropped without an end, it is rolled back.
pub struct Transaction;

impl Transaction {
    pub async fn run(&self, _statement: &Statement, _wants_rows: bool) -> Result<Answer, CallError> {
        todo!()
    }

    pub async fn commit(&self) -> Result<(), CallError> {
        todo!()
    }

    pub async fn rollback(&self) {
        todo!()
    }
}

/// A connection that was opened, tested and closed.
pub struct Tested {
    /// Product and version of the server.
    pub message: String,
    /// Duration of one round trip.
    pub latency_ms: u64,
}

/// Opens a connection, makes one round trip, and closes it.
pub async fn test(_config: Config, _limit: AnswerLimit, _log: Log, _timeout: Duration) -> Result<Tested, CallError> {
    todo!()
}
