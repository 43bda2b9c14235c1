//! [`Transaction`]: statements that take effect together, or not at all.

use super::answer_reader::AnswerBody;
use super::call::Call;
use super::connection::Connection;
use super::db_result::{DbResult, ExecResult, SentResult};
use super::failure::Family;
use super::param_types::IntoParams;
use super::params::statement;
use super::{connection_pool, reply};
use crate::error::HandlerError;
use serde::de::DeserializeOwned;
use std::time::Instant;

/// An open transaction. Dropped without [`Transaction::commit`], it is rolled back.
///
/// Its calls fail as those of [`DbPool`](super::DbPool) do. After an error that is not the database's own refusal, it
/// is over: all that is left is to drop it. PostgreSQL refuses everything after a refusal, too.
pub struct Transaction {
    pool_id: String,
    /// Its own, as a connection with the actor host has at most one transaction. `None` once it has failed.
    connection: Option<Connection>,
}

impl Transaction {
    pub(super) fn begin(pool_id: &str) -> Result<Transaction, HandlerError> {
        let call = Call::new(Family::Database, pool_id, "begin", &[], &[]);
        let began = Instant::now();
        let answer = connection_pool::exchange(&call, |head, body| acknowledge(&call, head, body));
        let transaction = answer.and_then(|(connection, outcome)| match outcome {
            Ok(()) => Ok(Transaction { pool_id: pool_id.to_owned(), connection: Some(connection) }),
            Err(error) => {
                connection_pool::release(connection);
                Err(error)
            }
        });
        call.ended(began.elapsed(), transaction.as_ref().err());
        transaction
    }

    /// Does what [`DbPool::query`](super::DbPool::query) does, in this transaction.
    ///
    /// # Errors
    /// See [`Transaction`].
    pub fn query(&mut self, sql: &str, params: impl IntoParams) -> Result<DbResult, HandlerError> {
        let payload = statement(sql, &|list| params.add_all_to(list));
        self.rows(payload)
    }

    /// Does what [`DbPool::query_as`](super::DbPool::query_as) does, in this transaction.
    ///
    /// # Errors
    /// See [`Transaction`].
    pub fn query_as<T: DeserializeOwned>(
        &mut self,
        sql: &str,
        params: impl IntoParams,
    ) -> Result<Vec<T>, HandlerError> {
        self.query(sql, params)?.rows_as()
    }

    /// Does what [`DbPool::execute`](super::DbPool::execute) does, in this transaction.
    ///
    /// # Errors
    /// See [`Transaction`].
    pub fn execute(&mut self, sql: &str, params: impl IntoParams) -> Result<u64, HandlerError> {
        Ok(self.execute_returning(sql, params)?.rows_affected)
    }

    /// Does what [`DbPool::execute_returning`](super::DbPool::execute_returning) does, in this transaction.
    ///
    /// # Errors
    /// See [`Transaction`].
    pub fn execute_returning(&mut self, sql: &str, params: impl IntoParams) -> Result<ExecResult, HandlerError> {
        let payload = statement(sql, &|list| params.add_all_to(list));
        self.outcome(payload)
    }

    /// Makes all of it take effect.
    ///
    /// # Errors
    /// See [`Transaction`]. After a refusal of the database nothing has taken effect; when the answer got lost, the
    /// outcome is not known.
    pub fn commit(mut self) -> Result<(), HandlerError> {
        self.end("commit")
    }

    /// Undoes all of it. Dropping the transaction does the same, without reporting errors.
    ///
    /// # Errors
    /// See [`Transaction`]. It is rolled back even then, as its connection is closed.
    pub fn rollback(mut self) -> Result<(), HandlerError> {
        self.end("rollback")
    }

    #[inline(never)]
    fn rows(&mut self, payload: Result<Vec<u8>, String>) -> Result<DbResult, HandlerError> {
        let payload = payload.map_err(|why| Family::Database.invalid(&self.pool_id, &why))?;
        self.call("query", &payload, |call, head, body| call.understand(head, body, reply::json::<SentResult>))
            .map(DbResult::from)
    }

    #[inline(never)]
    fn outcome(&mut self, payload: Result<Vec<u8>, String>) -> Result<ExecResult, HandlerError> {
        let payload = payload.map_err(|why| Family::Database.invalid(&self.pool_id, &why))?;
        self.call("execute", &payload, |call, head, body| call.understand(head, body, reply::result))
    }

    /// Ends it. A connection is reused only if the actor host has confirmed that; else it is closed.
    fn end(&mut self, operation: &'static str) -> Result<(), HandlerError> {
        self.call(operation, &[], acknowledge)?;
        if let Some(connection) = self.connection.take() {
            connection_pool::release(connection);
        }
        Ok(())
    }

    fn call<R>(
        &mut self,
        operation: &'static str,
        payload: &[u8],
        read: impl FnOnce(&Call<'_>, &[u8], AnswerBody<'_>) -> Result<R, HandlerError>,
    ) -> Result<R, HandlerError> {
        let mut call = Call::new(Family::Database, &self.pool_id, operation, &[], payload);
        call.in_transaction = true;
        call.check_size()?;
        let Some(connection) = &mut self.connection else {
            let message = "the transaction is over: its connection broke before";
            return Err(Family::Database.error(&self.pool_id, "unavailable", message));
        };
        let began = Instant::now();
        let outcome = match connection.exchange(&call) {
            Ok((head, body)) => read(&call, head, body),
            Err(error) => {
                self.connection = None;
                Err(Family::Database.disconnected(&self.pool_id, error))
            }
        };
        call.ended(began.elapsed(), outcome.as_ref().err());
        outcome
    }
}

impl Drop for Transaction {
    /// Waits until it is rolled back, so that later calls do not see its effects.
    fn drop(&mut self) {
        if self.connection.is_some() {
            // When it fails, the connection is closed right after this, which rolls back as well.
            let _ = self.end("rollback");
        }
    }
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transaction").field("pool_id", &self.pool_id).finish_non_exhaustive()
    }
}

fn acknowledge(call: &Call<'_>, head: &[u8], body: AnswerBody<'_>) -> Result<(), HandlerError> {
    call.understand(head, body, reply::nothing)
}
