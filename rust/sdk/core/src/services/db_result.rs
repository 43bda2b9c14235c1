//! What statements return.

use crate::error::HandlerError;
use crate::json_bridge;
use serde::de::DeserializeOwned;
use serde::ser::{SerializeMap, SerializeStruct};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// The result of a statement with rows.
///
/// Written as JSON, the members of each row are in the order of `columns`. Those of a row on its own are in no order,
/// as it is a `HashMap`; [`DbResult::ordered_rows`] writes the rows alone in order.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct DbResult {
    /// The rows: values by the names of their columns. Of several columns with one name, the last counts.
    pub rows: Vec<HashMap<String, Value>>,
    /// The names of the columns, in the order of the statement.
    #[serde(default)]
    pub columns: Vec<String>,
    /// How many rows the statement has changed.
    #[serde(default)]
    pub rows_affected: u64,
    /// The id a row was given on insertion; `None` where the database reports none. PostgreSQL never does: use
    /// `RETURNING`.
    #[serde(default)]
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

/// A result as the actor host sends it.
#[derive(Deserialize)]
pub(super) struct SentResult {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
    #[serde(default)]
    rows_affected: u64,
    #[serde(default)]
    last_insert_id: Option<i64>,
}

impl From<SentResult> for DbResult {
    fn from(sent: SentResult) -> Self {
        let row = |values: Vec<Value>| sent.columns.iter().cloned().zip(values).collect();
        DbResult {
            rows: sent.rows.into_iter().map(row).collect(),
            rows_affected: sent.rows_affected,
            last_insert_id: sent.last_insert_id,
            columns: sent.columns,
        }
    }
}

impl DbResult {
    /// The first row, if there is one.
    pub fn first(&self) -> Option<&HashMap<String, Value>> {
        self.rows.first()
    }

    /// The rows, to be written as JSON with their members in the order of the columns.
    ///
    /// ```no_run
    /// use rust_edge_gateway_sdk_core::prelude::*;
    ///
    /// fn handle(_: Request) -> Result<Response, HandlerError> {
    ///     let pets = DbPool::new("db").query("SELECT name, born FROM pets", ())?;
    ///     Ok(Response::ok(pets.ordered_rows()))
    /// }
    /// ```
    pub fn ordered_rows(&self) -> impl Serialize + '_ {
        Rows::of(self)
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
    /// Those of [`DbResult::rows_as`].
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
    /// Those of [`DbResult::rows_as`].
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

impl Serialize for DbResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut result = serializer.serialize_struct("DbResult", 4)?;
        result.serialize_field("rows", &Rows::of(self))?;
        result.serialize_field("columns", &self.columns)?;
        result.serialize_field("rows_affected", &self.rows_affected)?;
        result.serialize_field("last_insert_id", &self.last_insert_id)?;
        result.end()
    }
}

/// Rows to be written in the order of their columns.
struct Rows<'a> {
    rows: &'a [HashMap<String, Value>],
    /// Each name once.
    columns: Vec<&'a str>,
}

impl<'a> Rows<'a> {
    fn of(result: &'a DbResult) -> Self {
        let mut seen = HashSet::new();
        let columns = result.columns.iter().map(String::as_str).filter(|name| seen.insert(*name)).collect();
        Rows { rows: &result.rows, columns }
    }
}

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.rows.iter().map(|values| Row { values, columns: &self.columns }))
    }
}

struct Row<'a> {
    values: &'a HashMap<String, Value>,
    columns: &'a [&'a str],
}

impl Row<'_> {
    fn is_column(&self, name: &str) -> bool {
        self.columns.contains(&name)
    }
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(Some(self.values.len()))?;
        let mut written = 0;
        for name in self.columns {
            if let Some(value) = self.values.get(*name) {
                members.serialize_entry(name, value)?;
                written += 1;
            }
        }
        if written < self.values.len() {
            // What a handler has added, or all of a result that was read without its columns.
            let mut others: Vec<_> = self.values.iter().filter(|(name, _)| !self.is_column(name)).collect();
            others.sort_unstable_by_key(|(name, _)| *name);
            for (name, value) in others {
                members.serialize_entry(name, value)?;
            }
        }
        members.end()
    }
}

#[cold]
fn misfit(index: usize, why: &str) -> HandlerError {
    HandlerError::DatabaseError(format!("row {} does not fit: {why}", index + 1))
}
