//! What statements return.

use crate::json_bridge;
use crate::HandlerError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The result of a statement with rows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Wire")]
pub struct DbResult {
    /// The rows: values by the names of their columns. Of several columns with one name, the last counts.
    pub rows: Vec<Map<String, Value>>,
    /// The names of the columns, in the order of the statement.
    pub columns: Vec<String>,
    /// How many rows the statement has changed.
    pub rows_affected: u64,
    /// The id a row was given on insertion; `None` where the database reports none. PostgreSQL never does: use
    /// `RETURNING`.
    pub last_insert_id: Option<i64>,
}

/// The result of a statement without rows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ExecResult {
    /// How many rows the statement has changed.
    #[serde(default)]
    pub rows_affected: u64,
    /// The id a row was given on insertion; `None` where the database reports none. PostgreSQL never does: use
    /// `RETURNING` and [`DbPool::query`](super::DbPool::query).
    #[serde(default)]
    pub last_insert_id: Option<i64>,
}

/// A result as it is sent.
#[derive(Deserialize)]
struct Wire {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
    #[serde(default)]
    rows_affected: u64,
    #[serde(default)]
    last_insert_id: Option<i64>,
}

impl From<Wire> for DbResult {
    fn from(wire: Wire) -> Self {
        let row = |values: Vec<Value>| wire.columns.iter().cloned().zip(values).collect();
        DbResult {
            rows: wire.rows.into_iter().map(row).collect(),
            rows_affected: wire.rows_affected,
            last_insert_id: wire.last_insert_id,
            columns: wire.columns,
        }
    }
}

impl DbResult {
    /// The first row, if there is one.
    pub fn first(&self) -> Option<&Map<String, Value>> {
        self.rows.first()
    }

    /// Each row as a `T`, whose fields are named like the columns. A `bool` may also be read from 0 and 1, as MySQL and
    /// SQLite have no other.
    ///
    /// # Errors
    /// [`HandlerError::DatabaseError`] that names the row, the column, and what does not fit.
    pub fn rows_as<T: DeserializeOwned>(&self) -> Result<Vec<T>, HandlerError> {
        let mut values = Vec::with_capacity(self.rows.len());
        for (index, row) in self.rows.iter().enumerate() {
            match json_bridge::from_row(row) {
                Ok(value) => values.push(value),
                Err(why) => return Err(misfit(index, &why)),
            }
        }
        Ok(values)
    }

    /// The first row as a `T`, if there is one.
    ///
    /// # Errors
    /// As [`DbResult::rows_as`].
    pub fn first_as<T: DeserializeOwned>(&self) -> Result<Option<T>, HandlerError> {
        match self.first().map(json_bridge::from_row) {
            None => Ok(None),
            Some(Ok(value)) => Ok(Some(value)),
            Some(Err(why)) => Err(misfit(0, &why)),
        }
    }

    /// The first column of the first row, if there is one: what `SELECT COUNT(*)` returns.
    ///
    /// # Errors
    /// As [`DbResult::rows_as`].
    pub fn value<T: DeserializeOwned>(&self) -> Result<Option<T>, HandlerError> {
        match self.first_value().map(json_bridge::from_column) {
            None => Ok(None),
            Some(Ok(value)) => Ok(Some(value)),
            Some(Err(why)) => Err(misfit(0, &why)),
        }
    }

    fn first_value(&self) -> Option<&Value> {
        self.first()?.get(self.columns.first()?)
    }
}

#[cold]
fn misfit(index: usize, why: &str) -> HandlerError {
    HandlerError::DatabaseError(format!("row {} does not fit: {why}", index + 1))
}
