//! SQLite as the backend of a service: one file. Statements run one after the other. A transaction has it for itself:
//! while it is open, statements that begin with SELECT read the state before it, and all others wait until it ends.
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

use edge_service::backend::{self, Backend, Limits, OpenedConnection, StatementResult};
use edge_service::database::ConnectionLease;
use edge_service::error::{CallError, Kind};
use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::db::limit_heap;
use crate::link::{File, Link, Place, Work, closed};
use crate::sql::{self, Statement, Verb};

const DEFAULT_MAX_SIZE_MB: u64 = 1024;
/// Calls at a time: they are queued for the thread that has the file, and this number keeps it busy.
const CONCURRENCY: usize = 1_024;

#[derive(Deserialize)]
pub struct Config {
    path: String,
    create_if_missing: bool,
    max_size_mb: Option<u64>,
}

pub struct Sqlite {
    file: File,
    /// The thread that was started last.
    last: RefCell<Weak<Link>>,
    was_opened: Cell<bool>,
}

impl Backend for Sqlite {
    const SERVICE_TYPE: &'static str = "sqlite";

    type Config = Config;
    type Statement = Statement;
    type Connection = Connection;
    type Transaction = Transaction;

    fn new(Config { path, create_if_missing, max_size_mb }: Config, limits: Limits) -> Self {
        let Limits { memory, memory_mb, sqlite_folders: folders, .. } = limits;
        // The rest is for calls and their answers.
        limit_heap((memory_mb * 1024 * 1024).saturating_sub(memory.limit()));
        let max_size_mb = max_size_mb.unwrap_or(DEFAULT_MAX_SIZE_MB);
        let file = File { path, creates: create_if_missing, max_size_mb, folders, memory, memory_mb };
        Self { file, last: RefCell::default(), was_opened: Cell::new(false) }
    }

    fn concurrency(_: &Config) -> usize {
        CONCURRENCY
    }

    fn parse(payload: &[u8], _in_transaction: bool) -> Result<Statement, CallError> {
        sql::parse(payload)
    }

    async fn open(&self, limit: Duration, _: impl Fn(CallError)) -> Result<OpenedConnection<Connection>, CallError> {
        timeout(limit, self.open_file()).await.unwrap_or_else(|_| {
            let text = format!("the backend did not answer within {} ms", limit.as_millis());
            Err(CallError::new(Kind::Deadline, text))
        })
    }

    /// An aborted statement ends, or the process does.
    async fn probe(&self) -> Result<(), CallError> {
        Ok(())
    }

    async fn begin(held: ConnectionLease<Self>) -> Result<Transaction, CallError> {
        Transaction::begin(held).await
    }
}

impl Sqlite {
    async fn open_file(&self) -> Result<OpenedConnection<Connection>, CallError> {
        // A thread that waits for a disk that does not answer is not joined by others.
        let last = self.last.borrow().upgrade();
        if let Some(last) = last.filter(|last| last.is_closed()) {
            last.ended().await;
        }
        let failed = |error| CallError::new(Kind::Unavailable, format!("the thread for the database failed: {error}"));
        // Where it was opened before, a new one does not take its place.
        let file = File { creates: self.file.creates && !self.was_opened.get(), ..self.file.clone() };
        let link = Link::start(file).map_err(failed)?;
        self.last.replace(Rc::downgrade(&link));
        let connection = Rc::new(Connection { link, turn: Semaphore::new(1), is_in_transaction: Cell::new(false) });
        let mut opened = OpenedConnection::new(connection.clone());
        connection.link.ask(Work::Open).await?;
        self.was_opened.set(true);
        let started = Instant::now();
        if let StatementResult::Rows(version) = connection.link.ask(Work::Test).await? {
            opened.round_trip.message = String::from_utf8_lossy(&version).into_owned();
        }
        opened.round_trip.latency_ms = (started.elapsed().as_secs_f64() * 1000.0).round() as u64;
        Ok(opened)
    }
}

/// An open file.
pub struct Connection {
    link: Rc<Link>,
    /// Calls and transactions have it in the order in which they have come: a call until it was asked for, a
    /// transaction until its end.
    turn: Semaphore,
    is_in_transaction: Cell<bool>,
}

impl backend::Connection for Connection {
    type Statement = Statement;

    async fn run(self: &Rc<Self>, statement: Statement, wants_rows: bool) -> Result<StatementResult, CallError> {
        let is_beside = self.is_in_transaction.get() && wants_rows && statement.verb == Verb::Select;
        let pending = {
            let _turn = if is_beside { None } else { Some(self.turn.acquire().await.map_err(|_| closed())?) };
            let place = if is_beside { Place::Beside } else { Place::Outside };
            self.link.ask(Work::Run { statement, wants_rows, place })
        };
        pending.await
    }

    fn close(&self) {
        self.link.close();
        self.turn.close();
    }

    async fn closed(&self) {
        self.link.closed().await;
    }
}

/// An open transaction.
pub struct Transaction {
    held: ConnectionLease<Sqlite>,
    is_over: Cell<bool>,
}

impl Transaction {
    async fn begin(held: ConnectionLease<Sqlite>) -> Result<Self, CallError> {
        held.connection().turn.acquire().await.map_err(|_| closed())?.forget();
        held.connection().is_in_transaction.set(true);
        // Dropped before it has begun, it is rolled back after that.
        let transaction = Self { held, is_over: Cell::new(false) };
        transaction.ask(Work::Begin).await?;
        Ok(transaction)
    }

    async fn ask(&self, work: Work) -> Result<StatementResult, CallError> {
        if self.is_over.get() {
            return Err(CallError::new(Kind::Invalid, "the transaction has ended"));
        }
        self.held.connection().link.ask(work).await.map_err(|error| self.held.failed(error))
    }

    /// What comes after this is asked for after the end of the transaction, too.
    fn end(&self) {
        if self.is_over.replace(true) {
            return;
        }
        let connection = self.held.connection();
        connection.is_in_transaction.set(false);
        connection.turn.add_permits(1);
    }

    fn order_rollback(&self) {
        if !self.is_over.get() {
            self.held.connection().link.order(Work::Rollback);
            self.end();
        }
    }
}

impl backend::Transaction for Transaction {
    type Statement = Statement;

    async fn run(&self, statement: Statement, wants_rows: bool) -> Result<StatementResult, CallError> {
        self.ask(Work::Run { statement, wants_rows, place: Place::Inside }).await
    }

    async fn commit(&self) -> Result<(), CallError> {
        // When it is aborted, the transaction is dropped.
        let done = self.ask(Work::Commit).await;
        if done.is_err() {
            self.order_rollback();
        }
        self.end();
        done.map(drop)
    }

    async fn rollback(&self) {
        // When it fails, the file is closed, which has the same effect.
        let _ = self.ask(Work::Rollback).await;
        self.end();
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.order_rollback();
    }
}
