//! [`Storage`]: JSON records by id, wherever they are kept.

mod database;
mod files;
mod id;

use super::{FtpPool, ObjectStore};
use crate::json_bridge::to_value;
use crate::HandlerError;
use database::Table;
use files::Files;
use serde::Serialize;
use serde_json::{Map, Value};

/// JSON records, each an object with an `id`, in a table of a database, in an object storage or on a file server. A
/// handler that uses it can move from one to another by changing a line.
///
/// ```no_run
/// use rust_edge_gateway_sdk_core::prelude::*;
///
/// fn handle(req: Request) -> Result<Response, HandlerError> {
///     let pets = Storage::database("db", "pets");
///     match (req.method.as_str(), req.path_param("id")) {
///         ("GET", Some(id)) => Ok(Response::ok(pets.get(id)?.ok_or(HandlerError::NotFound)?)),
///         ("GET", None) => Ok(Response::ok(pets.list()?)),
///         _ => Ok(Response::created(pets.create(&req.json::<JsonValue>()?)?)),
///     }
/// }
/// ```
///
/// An id is a text of 1 to 128 letters, digits, `-`, `_` and `.`, and does not begin with a dot.
///
/// Every call fails with [`HandlerError::ValidationError`], a 400, when an id or a record cannot be one; when the
/// backend refuses it, with [`HandlerError::DatabaseError`] or [`HandlerError::StorageError`]; and with the errors that
/// all services share: [`HandlerError::PoolNotBound`], [`HandlerError::ServiceInactive`],
/// [`HandlerError::BackendUnavailable`], [`HandlerError::DeadlineExceeded`], [`HandlerError::ServiceBusy`].
#[derive(Debug, Clone)]
pub struct Storage(Place);

#[derive(Debug, Clone)]
enum Place {
    Table(Table),
    Objects(Files<ObjectStore>),
    Folder(Files<FtpPool>),
}

/// Calls the same method of whatever there is.
macro_rules! at {
    ($storage:ident, $place:ident => $call:expr) => {
        match &$storage.0 {
            Place::Table($place) => $call,
            Place::Objects($place) => $call,
            Place::Folder($place) => $call,
        }
    };
}

impl Storage {
    /// Records in a table of a database: PostgreSQL, MySQL or SQLite. The table has the columns `id` and `data`, and is
    /// made at the first use if it is not there. Its name is letters, digits and `_`, at most 63, and no word that SQL
    /// uses itself, like `order`; else all calls fail.
    pub fn database(pool_id: impl Into<String>, table: impl Into<String>) -> Self {
        Storage(Place::Table(Table::new(pool_id.into(), table.into())))
    }

    /// Records in an object storage, as `<prefix>/<id>.json`.
    pub fn object_storage(pool_id: impl Into<String>, prefix: impl Into<String>) -> Self {
        Storage(Place::Objects(Files::new(ObjectStore::new(pool_id), prefix.into())))
    }

    /// Records on an FTP or SFTP server, as `<folder>/<id>.json`.
    pub fn file_storage(pool_id: impl Into<String>, folder: impl Into<String>) -> Self {
        Storage(Place::Folder(Files::new(FtpPool::new(pool_id), folder.into())))
    }

    /// The record with this id, if there is one.
    ///
    /// # Errors
    /// See [`Storage`].
    pub fn get(&self, id: &str) -> Result<Option<Value>, HandlerError> {
        id::check(id)?;
        at!(self, place => place.get(id))
    }

    /// All records, by their ids. Outside of databases, each is a call of its own.
    ///
    /// # Errors
    /// See [`Storage`].
    pub fn list(&self) -> Result<Vec<Value>, HandlerError> {
        at!(self, place => place.list())
    }

    /// Stores a new record, and returns it as it is stored. Without an `id` it gets one, a random UUID.
    ///
    /// # Errors
    /// See [`Storage`]; [`HandlerError::Conflict`], a 409, when there is a record with this id. Outside of databases,
    /// of two that are created with one id at the same time, the later may replace the earlier.
    pub fn create<T: Serialize + ?Sized>(&self, record: &T) -> Result<Value, HandlerError> {
        self.create_value(to_value(record))
    }

    /// Replaces the record with this id by another, whose `id` becomes this one, and returns it as it is stored; `None`
    /// if there is no such record.
    ///
    /// # Errors
    /// See [`Storage`].
    pub fn update<T: Serialize + ?Sized>(&self, id: &str, record: &T) -> Result<Option<Value>, HandlerError> {
        self.update_value(id, to_value(record))
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
    fn create_value(&self, record: Value) -> Result<Value, HandlerError> {
        let mut record = object(record)?;
        let id = match record.remove("id") {
            None | Some(Value::Null) => id::random()?,
            Some(Value::String(id)) => id,
            Some(_) => return Err(HandlerError::ValidationError("the id of a record must be a text".to_owned())),
        };
        id::check(&id)?;
        record.insert("id".to_owned(), Value::String(id.clone()));
        let record = Value::Object(record);
        match at!(self, place => place.insert(&id, &record.to_string()))? {
            true => Ok(record),
            false => Err(HandlerError::Conflict(format!("there is a record with the id {id} already"))),
        }
    }

    #[inline(never)]
    fn update_value(&self, id: &str, record: Value) -> Result<Option<Value>, HandlerError> {
        id::check(id)?;
        let mut record = object(record)?;
        record.insert("id".to_owned(), Value::String(id.to_owned()));
        let record = Value::Object(record);
        let is_replaced = at!(self, place => place.replace(id, &record.to_string()))?;
        Ok(is_replaced.then_some(record))
    }
}

fn object(record: Value) -> Result<Map<String, Value>, HandlerError> {
    match record {
        Value::Object(members) => Ok(members),
        _ => Err(HandlerError::ValidationError("a record must be a JSON object".to_owned())),
    }
}
