//! PostgreSQL as the backend of a service.
//!
//! Below `Postgres` are: the `pool`, which leases a `connection` to each call or `transaction`; a `statement` on it,
//! whose `messages` become `rows` of JSON by their `types`; and how a connection is opened, `connect`, `tls`, `login`.
mod certificate;
mod connect;
mod connection;
mod failure;
#[cfg(fuzzing)]
pub mod fuzzing;
mod lease;
mod login;
mod messages;
mod open;
mod pool;
mod prepared;
mod rows;
mod statement;
mod tls;
mod transaction;
mod types;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use edge_service::backend::{Backend, Limits, Opened};
use edge_service::database::{Held, OPEN_TIMEOUT};
use edge_service::error::CallError;
use edge_service::memory::MemoryBudget;
use serde::Deserialize;

use crate::sql::{self, Statement};
use open::open;
use pool::Pool;
use tls::{Encryption, encryptions};
use transaction::Transaction;

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

impl SslMode {
    fn name(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Prefer => "prefer",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }
}

/// The server of a service.
pub struct Target {
    config: Config,
    /// `host:port`
    address: String,
    /// The largest message that it may send, bytes.
    message_limit: usize,
    memory: Arc<MemoryBudget>,
}

impl Target {
    fn new(config: Config, Limits { answer_bytes, memory, .. }: Limits) -> Self {
        // Bytes come as text of twice their length, and a row may have more than one value.
        let message_limit = answer_bytes.saturating_mul(5) / 2;
        Self { address: format!("{}:{}", config.host, config.port), config, message_limit, memory }
    }
}

/// The server of a service, and the ways to encrypt a connection to it.
pub struct Postgres {
    target: Rc<Target>,
    encryptions: Vec<Encryption>,
}

impl Backend for Postgres {
    const SERVICE_TYPE: &'static str = "postgres";

    type Config = Config;
    type Statement = Statement;
    type Connection = Pool;
    type Transaction = Transaction;

    fn new(config: Config, limits: Limits) -> Self {
        Self { encryptions: encryptions(&config), target: Rc::new(Target::new(config, limits)) }
    }

    fn concurrency(config: &Config) -> usize {
        config.pool_size
    }

    fn parse(payload: &[u8], in_transaction: bool) -> Result<Statement, CallError> {
        sql::parse(payload, in_transaction)
    }

    async fn open(
        &self,
        limit: Duration,
        on_lost: impl Fn(CallError) + Clone + 'static,
    ) -> Result<Opened<Pool>, CallError> {
        open(&self.target, &self.encryptions, limit, on_lost).await.map_err(|failure| failure.error)
    }

    async fn probe(&self) -> Result<(), CallError> {
        match open(&self.target, &self.encryptions, OPEN_TIMEOUT, |_| {}).await {
            Err(failure) if failure.is_silent => Err(failure.error),
            // A server that refuses another connection is alive: it may be at its connection limit.
            _ => Ok(()),
        }
    }

    async fn begin(held: Held<Self>) -> Result<Transaction, CallError> {
        Transaction::begin(held).await
    }
}
