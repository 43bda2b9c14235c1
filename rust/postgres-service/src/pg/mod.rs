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
mod target;
mod tls;
mod transaction;
mod types;

use std::rc::Rc;
use std::time::Duration;

use edge_service::backend::{Backend, Limits, OpenedConnection};
use edge_service::database::{ConnectionLease, OPEN_TIMEOUT};
use edge_service::error::CallError;

use crate::sql::{self, Statement};
use open::open;
use pool::Pool;
use target::{Config, Target};
use tls::{Encryption, encryptions};
use transaction::Transaction;

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
    ) -> Result<OpenedConnection<Pool>, CallError> {
        open(&self.target, &self.encryptions, limit, on_lost).await.map_err(|failure| failure.error)
    }

    async fn probe(&self) -> Result<(), CallError> {
        match open(&self.target, &self.encryptions, OPEN_TIMEOUT, |_| {}).await {
            Err(failure) if failure.is_silent => Err(failure.error),
            // A server that refuses another connection is alive: it may be at its connection limit.
            _ => Ok(()),
        }
    }

    async fn begin(held: ConnectionLease<Self>) -> Result<Transaction, CallError> {
        Transaction::begin(held).await
    }
}
