//! [`Storage`]: JSON records by id, wherever they are kept.

mod database;
mod files;
mod id;

use super::files::FtpPool;
use super::objects::ObjectStore;
use crate::error::HandlerError;
use crate::json_bridge::write::to_value;
use database::Table;
use files::Files;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// JSON records by id, in a table of a database, in an object storage or on a file server. A handler that uses it can
/// move from one to another by changing a line.
///
/// ```no_run
/// use rust_edge_gateway_sdk_core::prelude::*;
///
/// fn handle(req: Request) -> Result<Response, HandlerError> {
///     let pets = Storage::database("db", "pets");
///     match (req.method.as_str(), req.path_param("id")) {
///         ("GET", Some(id)) => Ok(Response::ok(pets.get(id)?.ok_or(HandlerError::NotFound)?)),
///         ("GET", None) => Ok(Response::ok(pets.list(req.query_param("status").map(String::as_str))?)),
///         _ => Ok(Response::created(pets.add(&req.json::<JsonValue>()?)?)),
///     }
/// }
/// ```
///
/// [`Storage::create`] and [`Storage::update`] are those of SDK 0.1: they are given an id, and return nothing.
/// [`Storage::add`] and [`Storage::replace`] return the record as it is stored, and `add` finds an id for it.
///
/// An id is a text of 1 to 128 letters, digits, `-`, `_` and `.`, and does not begin with a dot. A record that is an
/// object has its id as the member `id`, so that lists tell which is which.
///
/// Every call fails with [`HandlerError::ValidationError`], a 400, when an id or a record cannot be one; when the
/// backend refuses it, with [`HandlerError::DatabaseError`] or [`HandlerError::StorageError`]; and with the errors that
/// all services share: [`HandlerError::PoolNotBound`], [`HandlerError::ServiceInactive`],
/// [`HandlerError::BackendUnavailable`], [`HandlerError::DeadlineExceeded`], [`HandlerError::ServiceBusy`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    /// What keeps the records.
    pub storage_type: StorageType,
    /// The name under which the service is bound to the endpoint.
    pub pool_id: String,
    /// The prefix of the objects, or the folder of the files.
    #[serde(default)]
    pub base_path: Option<String>,
    /// The table of a database. It has the columns `id` and `data`, and is made at the first use if it is not there.
    /// Its name is letters, digits and `_`, at most 63, and no word that SQL uses itself, like `order`; else all calls
    /// fail.
    #[serde(default)]
    pub table_name: Option<String>,
}

/// The kinds of services that can keep records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StorageType {
    /// PostgreSQL, MySQL or SQLite.
    Database,
    /// An object storage: S3, MinIO.
    ObjectStorage,
    /// An FTP or SFTP server.
    FileStorage,
}

/// Calls the same method of whatever there is.
macro_rules! at {
    ($storage:ident, $place:ident => $call:expr) => {{
        let path = || $storage.base_path.clone().unwrap_or_default();
        match $storage.storage_type {
            StorageType::Database => {
                let $place = Table::new($storage.pool_id.clone(), $storage.table_name.clone().unwrap_or_default());
                $call
            }
            StorageType::ObjectStorage => {
                let $place = Files::new(ObjectStore::new($storage.pool_id.as_str()), path());
                $call
            }
            StorageType::FileStorage => {
                let $place = Files::new(FtpPool::new($storage.pool_id.as_str()), path());
                $call
            }
        }
    }};
}

impl Storage {
    /// Records in a table of a database: PostgreSQL, MySQL or SQLite.
    pub fn database(pool_id: impl Into<String>, table: impl Into<String>) -> Self {
        let table_name = Some(table.into());
        Storage { storage_type: StorageType::Database, pool_id: pool_id.into(), base_path: None, table_name }
    }

    /// Records in an object storage, as `<base_path>/<id>.json`.
    pub fn object_storage(pool_id: impl Into<String>, base_path: impl Into<String>) -> Self {
        let base_path = Some(base_path.into());
        Storage { storage_type: StorageType::ObjectStorage, pool_id: pool_id.into(), base_path, table_name: None }
    }

    /// Records on an FTP or SFTP server, as `<base_path>/<id>.json`.
    pub fn file_storage(pool_id: impl Into<String>, base_path: impl Into<String>) -> Self {
        let base_path = Some(base_path.into());
        Storage { storage_type: StorageType::FileStorage, pool_id: pool_id.into(), base_path, table_name: None }
    }

    /// The record with this id, if there is one.
    ///
    /// # Errors
    /// See [`Storage`].
    pub fn get(&self, id: &str) -> Result<Option<Value>, HandlerError> {
        id::check(id)?;
        at!(self, place => place.get(id))
    }

    /// The records whose member `status` is the text `filter`, or all, by their ids.
    ///
    /// All records are read, and those that do not match dropped here: of a database with one statement, whose answer
    /// has at most 64 MiB; elsewhere with a call for each record.
    ///
    /// # Errors
    /// See [`Storage`].
    pub fn list(&self, filter: Option<&str>) -> Result<Vec<Value>, HandlerError> {
        let mut records = self.all()?;
        if let Some(status) = filter {
            records.retain(|record| record.get("status").and_then(Value::as_str) == Some(status));
        }
        Ok(records)
    }

    /// All records, by their ids: [`Storage::list`] without a filter.
    ///
    /// # Errors
    /// See [`Storage`].
    pub fn all(&self) -> Result<Vec<Value>, HandlerError> {
        at!(self, place => place.list())
    }

    /// Stores a new record under this id. An object without an `id` gets this one.
    ///
    /// # Errors
    /// See [`Storage`]; [`HandlerError::Conflict`], a 409, when there is a record with this id. Outside of databases,
    /// of two that are created with one id at the same time, the later may replace the earlier.
    pub fn create(&self, id: &str, data: &Value) -> Result<(), HandlerError> {
        id::check(id)?;
        self.insert(id, &with_id(id, data))
    }

    /// Replaces the record with this id by another. An object without an `id` gets this one.
    ///
    /// # Errors
    /// See [`Storage`]; [`HandlerError::NotFoundMessage`], a 404, when there is no record with this id.
    pub fn update(&self, id: &str, data: &Value) -> Result<(), HandlerError> {
        id::check(id)?;
        match self.overwrite(id, &with_id(id, data))? {
            true => Ok(()),
            false => Err(HandlerError::NotFoundMessage(format!("there is no record with the id {id}"))),
        }
    }

    /// Stores a new object, and returns it as it is stored. Without an `id` it gets one, a random UUID.
    ///
    /// # Errors
    /// Those of [`Storage::create`].
    pub fn add<T: Serialize + ?Sized>(&self, record: &T) -> Result<Value, HandlerError> {
        self.add_value(to_value(record))
    }

    /// Replaces the record with this id by another object, whose `id` becomes this one, and returns it as it is stored;
    /// `None` if there is no such record.
    ///
    /// # Errors
    /// See [`Storage`].
    pub fn replace<T: Serialize + ?Sized>(&self, id: &str, record: &T) -> Result<Option<Value>, HandlerError> {
        self.replace_value(id, to_value(record))
    }

    /// Deletes the record with this id. Whether it was there.
    ///
    /// # Errors
    /// See [`Storage`].
    pub fn delete(&self, id: &str) -> Result<bool, HandlerError> {
        id::check(id)?;
        at!(self, place => place.delete(id))
    }

    #[inline(never)]
    fn add_value(&self, record: Value) -> Result<Value, HandlerError> {
        let mut record = object(record)?;
        let id = match record.remove("id") {
            None | Some(Value::Null) => id::random()?,
            Some(Value::String(id)) => id,
            Some(_) => return Err(HandlerError::ValidationError("the id of a record must be a text".to_owned())),
        };
        id::check(&id)?;
        record.insert("id".to_owned(), Value::String(id.clone()));
        let record = Value::Object(record);
        self.insert(&id, &record)?;
        Ok(record)
    }

    #[inline(never)]
    fn replace_value(&self, id: &str, record: Value) -> Result<Option<Value>, HandlerError> {
        id::check(id)?;
        let mut record = object(record)?;
        record.insert("id".to_owned(), Value::String(id.to_owned()));
        let record = Value::Object(record);
        Ok(self.overwrite(id, &record)?.then_some(record))
    }

    fn insert(&self, id: &str, record: &Value) -> Result<(), HandlerError> {
        match at!(self, place => place.insert(id, &record.to_string()))? {
            true => Ok(()),
            false => Err(HandlerError::Conflict(format!("there is a record with the id {id} already"))),
        }
    }

    /// Whether there was a record to overwrite.
    fn overwrite(&self, id: &str, record: &Value) -> Result<bool, HandlerError> {
        at!(self, place => place.replace(id, &record.to_string()))
    }
}

fn with_id(id: &str, data: &Value) -> Value {
    let mut record = data.clone();
    if let Value::Object(members) = &mut record {
        members.entry("id").or_insert_with(|| Value::String(id.to_owned()));
    }
    record
}

fn object(record: Value) -> Result<Map<String, Value>, HandlerError> {
    match record {
        Value::Object(members) => Ok(members),
        _ => Err(HandlerError::ValidationError("a record must be a JSON object".to_owned())),
    }
}
