//! Records as rows of a table: id and JSON text.

use crate::error::HandlerError;
use crate::runtime::threads::lock;
use crate::services::db_result::DbResult;
use crate::services::failure::Family;
use crate::services::sql::DbPool;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Mutex;

/// What PostgreSQL allows, the strictest.
const MAX_NAME_LENGTH: usize = 63;

/// A table of records.
#[derive(Debug, Clone)]
pub struct Table {
    db: DbPool,
    name: String,
}

/// Tables that this process knows to be there, with their pools.
static READY: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

impl Table {
    pub fn new(pool_id: String, name: String) -> Self {
        Table { db: DbPool::new(pool_id), name }
    }

    pub fn get(&self, id: &str) -> Result<Option<Value>, HandlerError> {
        self.prepare()?;
        let result = self.db.query(&format!("SELECT id, data FROM {} WHERE id = ?", self.name), [id])?;
        result.first().map(|row| self.record(row)).transpose()
    }

    pub fn list(&self) -> Result<Vec<Value>, HandlerError> {
        self.prepare()?;
        let DbResult { mut rows, .. } = self.db.query(&format!("SELECT id, data FROM {}", self.name), ())?;
        // Databases differ in how they sort texts.
        rows.sort_by(|a, b| a.get("id").and_then(Value::as_str).cmp(&b.get("id").and_then(Value::as_str)));
        rows.iter().map(|row| self.record(row)).collect()
    }

    pub fn insert(&self, id: &str, record: &str) -> Result<bool, HandlerError> {
        self.prepare()?;
        match self.db.execute(&format!("INSERT INTO {} (id, data) VALUES (?, ?)", self.name), [id, record]) {
            Ok(_) => Ok(true),
            // Each database has its own words for an id that another record has.
            Err(error @ HandlerError::DatabaseError(_)) => match self.has(id)? {
                true => Ok(false),
                false => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    pub fn replace(&self, id: &str, record: &str) -> Result<bool, HandlerError> {
        self.prepare()?;
        let update = format!("UPDATE {} SET data = ? WHERE id = ?", self.name);
        // A database may count only the rows that have become others.
        Ok(self.db.execute(&update, [record, id])? > 0 || self.has(id)?)
    }

    pub fn delete(&self, id: &str) -> Result<bool, HandlerError> {
        self.prepare()?;
        Ok(self.db.execute(&format!("DELETE FROM {} WHERE id = ?", self.name), [id])? > 0)
    }

    fn has(&self, id: &str) -> Result<bool, HandlerError> {
        let result = self.db.query(&format!("SELECT id FROM {} WHERE id = ?", self.name), [id])?;
        Ok(result.first().is_some())
    }

    fn record(&self, row: &HashMap<String, Value>) -> Result<Value, HandlerError> {
        let (id, data) = (row.get("id"), row.get("data"));
        match data {
            Some(Value::String(text)) => serde_json::from_str(text).map_err(|error| {
                let id = id.and_then(Value::as_str).unwrap_or_default();
                self.error(&format!("the record {id:?} in the table {} is no JSON: {error}", self.name))
            }),
            // The table was not made here, and has a column of JSON.
            Some(data) => Ok(data.clone()),
            None => Err(self.error(&format!("the table {} has no column data", self.name))),
        }
    }

    /// Makes sure that the table exists.
    fn prepare(&self) -> Result<(), HandlerError> {
        let is_this = |(pool_id, name): &(String, String)| *pool_id == self.db.pool_id && *name == self.name;
        if lock(&READY).iter().any(is_this) {
            return Ok(());
        }
        self.check_name()?;
        self.find_or_make()?;
        let mut ready = lock(&READY);
        if !ready.iter().any(is_this) {
            ready.push((self.db.pool_id.clone(), self.name.clone()));
        }
        Ok(())
    }

    fn check_name(&self) -> Result<(), HandlerError> {
        let name = &self.name;
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let is_name = (1..=MAX_NAME_LENGTH).contains(&name.len())
            && name.bytes().all(is_allowed)
            && !name.starts_with(|first: char| first.is_ascii_digit());
        match is_name {
            true => Ok(()),
            false => Err(self.error(&format!(
                "{name:?} cannot be the name of a table: it has at most 63 letters, digits and _, and no digit first"
            ))),
        }
    }

    fn find_or_make(&self) -> Result<(), HandlerError> {
        match self.probe() {
            Err(HandlerError::DatabaseError(_)) => {}
            result => return result,
        }
        let (id_type, data_type) = self.column_types()?;
        let create =
            format!("CREATE TABLE IF NOT EXISTS {} (id {id_type} PRIMARY KEY, data {data_type} NOT NULL)", self.name);
        match self.db.execute(&create, ()) {
            Ok(_) => Ok(()),
            // If two make it at once, PostgreSQL may refuse one.
            Err(error) => self.probe().map_err(|_| error),
        }
    }

    fn probe(&self) -> Result<(), HandlerError> {
        self.db.query(&format!("SELECT id, data FROM {} WHERE 1 = 0", self.name), ()).map(drop)
    }

    /// The types of the columns. Only MySQL and MariaDB need special ones, for ids that differ in case and data of more
    /// than 64 KiB; their versions are the only ones that begin with a digit, and SQLite does not know the function.
    fn column_types(&self) -> Result<(&'static str, &'static str), HandlerError> {
        let version = match self.db.query("SELECT version()", ()) {
            Ok(result) => result.value::<String>()?.unwrap_or_default(),
            Err(HandlerError::DatabaseError(_)) => String::new(),
            Err(error) => return Err(error),
        };
        Ok(match version.starts_with(|first: char| first.is_ascii_digit()) {
            true => ("VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin", "LONGTEXT"),
            false => ("VARCHAR(255)", "TEXT"),
        })
    }

    fn error(&self, message: &str) -> HandlerError {
        Family::Database.invalid(&self.db.pool_id, message)
    }
}
