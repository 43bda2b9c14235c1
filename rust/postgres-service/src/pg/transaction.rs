//! An open transaction, which has a connection of its own until it ends.
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use edge_service::backend::{self, StatementResult};
use edge_service::database::ConnectionLease;
use edge_service::error::{CallError, Kind};
use tokio::runtime::Handle;
use tokio::task::spawn_local;
use tokio::time::timeout;

use super::Postgres;
use super::lease::Lease;
use crate::sql::Statement;

/// A connection that does not roll back within this time is closed instead.
const ROLLBACK_TIMEOUT: Duration = Duration::from_secs(5);

/// An open transaction and its connection. Dropped without an end, it is rolled back.
pub struct Transaction {
    /// Taken by the call in progress: when that is dropped, the connection is closed, and the transaction has ended.
    lease: Cell<Option<Lease>>,
    held: Rc<ConnectionLease<Postgres>>,
}

impl Transaction {
    pub(super) async fn begin(held: ConnectionLease<Postgres>) -> Result<Self, CallError> {
        let mut lease = held.connection().lease().await.map_err(|error| held.failed(error))?;
        match lease.control("BEGIN").await {
            Ok(_) => Ok(Self { lease: Cell::new(Some(lease)), held: Rc::new(held) }),
            Err(failure) => {
                drop(lease);
                Err(held.failed(held.connection().call_error(failure).await))
            }
        }
    }
}

impl backend::Transaction for Transaction {
    type Statement = Statement;

    async fn run(&self, statement: Statement, wants_rows: bool) -> Result<StatementResult, CallError> {
        let mut lease = self.lease.take().ok_or_else(ended)?;
        match lease.run(&statement, wants_rows).await {
            Ok(answer) => {
                self.lease.set(Some(lease));
                Ok(answer)
            }
            Err(failure) => {
                // After an error of the statement it can go on, if only to be rolled back.
                if lease.is_usable() {
                    self.lease.set(Some(lease));
                } else {
                    drop(lease);
                }
                Err(self.held.failed(self.held.connection().call_error(failure).await))
            }
        }
    }

    async fn commit(&self) -> Result<(), CallError> {
        let mut lease = self.lease.take().ok_or_else(ended)?;
        let done = lease.control("COMMIT").await;
        drop(lease);
        match done {
            Ok(true) => Ok(()),
            Ok(false) => {
                let message = "the transaction was rolled back, because a statement in it has failed";
                Err(CallError::new(Kind::Backend, message))
            }
            Err(failure) => Err(self.held.failed(self.held.connection().call_error(failure).await)),
        }
    }

    async fn rollback(&self) {
        if let Some(lease) = self.lease.take() {
            roll_back(lease).await;
        }
    }
}

async fn roll_back(mut lease: Lease) {
    // Otherwise the transaction is still open, or the connection is busy: the pool closes it.
    let _ = timeout(ROLLBACK_TIMEOUT, lease.control("ROLLBACK")).await;
}

fn ended() -> CallError {
    CallError::new(Kind::Invalid, "the transaction has ended: a call in it was aborted or answered too much")
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let Some(lease) = self.lease.take() else { return };
        // Otherwise this process is ending, and with it the connection.
        if Handle::try_current().is_ok() {
            let held = self.held.clone();
            spawn_local(async move {
                roll_back(lease).await;
                drop(held);
            });
        }
    }
}
