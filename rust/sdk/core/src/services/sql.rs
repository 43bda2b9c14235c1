//! [`DbPool`]: SQLite, PostgreSQL and MySQL.

use super::call::{Arg, Call};
use super::db_result::SentResult;
use super::db_result::{DbResult, ExecResult};
use super::failure::Family;
use super::param_types::IntoParams;
use super::params::statement;
use super::transaction::Transaction;
use crate::error::HandlerError;
use serde::de::DeserializeOwned;

/// A database that is bound to the endpoint: PostgreSQL, MySQL or SQLite.
///
/// ```no_run
/// use rust_edge_gateway_sdk_core::prelude::*;
///
/// fn handle(req: Request) -> Result<Response, HandlerError> {
///     let db = DbPool::new("main-db");
///     let owner: String = req.require_query_param("owner")?;
///     let pets = db.query("SELECT id, name FROM pets WHERE owner = ? AND age > ?", (&owner, 2))?;
///     Ok(Response::ok(pets.rows))
/// }
/// ```
///
/// Every call fails with [`HandlerError::DatabaseError`] when the database refuses it, and with the errors that all
/// services share: [`HandlerError::PoolNotBound`], [`HandlerError::ServiceInactive`],
/// [`HandlerError::BackendUnavailable`], [`HandlerError::DeadlineExceeded`], [`HandlerError::ServiceBusy`].
#[derive(Debug, Clone)]
pub struct DbPool {
    /// The name under which the service is bound to the endpoint.
    pub pool_id: String,
}

impl DbPool {
    /// The database that is bound as `pool_id`. Connects to nothing.
    pub fn new(pool_id: impl Into<String>) -> Self {
        DbPool { pool_id: pool_id.into() }
    }

    /// Runs a statement and returns its rows. `?` stands for a parameter on every database, `??` for a question mark;
    /// the database's own placeholders (`$1`, `:name`) work too.
    ///
    /// # Errors
    /// See [`DbPool`].
    pub fn query(&self, sql: &str, params: impl IntoParams) -> Result<DbResult, HandlerError> {
        let payload = statement(sql, &|list| params.add_all_to(list));
        self.rows(payload)
    }

    /// Runs a statement and reads each of its rows as a `T`, as [`DbResult::rows_as`] does.
    ///
    /// # Errors
    /// See [`DbPool`]; [`HandlerError::DatabaseError`] when a row does not fit.
    pub fn query_as<T: DeserializeOwned>(&self, sql: &str, params: impl IntoParams) -> Result<Vec<T>, HandlerError> {
        self.query(sql, params)?.rows_as()
    }

    /// Runs a statement that returns no rows: INSERT, UPDATE, DELETE, CREATE and so on. Returns how many rows it has
    /// changed.
    ///
    /// # Errors
    /// See [`DbPool`].
    pub fn execute(&self, sql: &str, params: impl IntoParams) -> Result<u64, HandlerError> {
        Ok(self.execute_returning(sql, params)?.rows_affected)
    }

    /// Does what [`DbPool::execute`] does, and returns the id of an inserted row as well.
    ///
    /// # Errors
    /// See [`DbPool`].
    pub fn execute_returning(&self, sql: &str, params: impl IntoParams) -> Result<ExecResult, HandlerError> {
        let payload = statement(sql, &|list| params.add_all_to(list));
        self.outcome(payload)
    }

    /// Runs `work` in a transaction: commits when it returns `Ok`, rolls back when it returns `Err` or panics.
    ///
    /// When the commit fails, the error is that of the commit, and nothing is committed; unless the answer got lost
    /// ([`HandlerError::DeadlineExceeded`], [`HandlerError::BackendUnavailable`]): then its outcome is not known.
    ///
    /// ```no_run
    /// use rust_edge_gateway_sdk_core::prelude::*;
    ///
    /// fn transfer(db: &DbPool, from: i64, to: i64, cents: i64) -> Result<(), HandlerError> {
    ///     db.transaction(|tx| {
    ///         let withdraw = "UPDATE accounts SET cents = cents - ? WHERE id = ? AND cents >= ?";
    ///         if tx.execute(withdraw, (cents, from, cents))? == 0 {
    ///             return Err(HandlerError::Conflict("not enough money".into()));
    ///         }
    ///         tx.execute("UPDATE accounts SET cents = cents + ? WHERE id = ?", (cents, to))?;
    ///         Ok(())
    ///     })
    /// }
    /// ```
    ///
    /// Where a `?` follows the call, the closure must name its error: `|tx| -> Result<_, HandlerError> { ... }`.
    ///
    /// # Errors
    /// What `work` returns; see [`DbPool`] for beginning and committing.
    pub fn transaction<T, E: From<HandlerError>>(
        &self,
        work: impl FnOnce(&mut Transaction) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut transaction = self.begin()?;
        // If this returns, the transaction is dropped, which rolls it back.
        let value = work(&mut transaction)?;
        transaction.commit()?;
        Ok(value)
    }

    /// Begins a transaction, where [`DbPool::transaction`] does not fit. It has a connection of the database for
    /// itself, of which there are few: end it soon.
    ///
    /// # Errors
    /// See [`DbPool`].
    pub fn begin(&self) -> Result<Transaction, HandlerError> {
        Transaction::begin(&self.pool_id)
    }

    #[inline(never)]
    fn rows(&self, payload: Result<Vec<u8>, String>) -> Result<DbResult, HandlerError> {
        let payload = payload.map_err(|why| Family::Database.invalid(&self.pool_id, &why))?;
        self.call("query", &payload).json::<SentResult>().map(DbResult::from)
    }

    #[inline(never)]
    fn outcome(&self, payload: Result<Vec<u8>, String>) -> Result<ExecResult, HandlerError> {
        let payload = payload.map_err(|why| Family::Database.invalid(&self.pool_id, &why))?;
        self.call("execute", &payload).result()
    }

    fn call<'a>(&'a self, operation: &'static str, payload: &'a [u8]) -> Call<'a> {
        const NO_ARGS: &[(&str, Arg<'_>)] = &[];
        Call::new(Family::Database, &self.pool_id, operation, NO_ARGS, payload)
    }
}
