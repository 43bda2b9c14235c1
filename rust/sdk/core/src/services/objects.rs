//! [`ObjectStore`]: object storage that speaks S3.

use super::call::{Arg, Call};
use super::failure::Family;
use super::reply::{optional_payload, result, text, Deletion, Reply};
use crate::error::HandlerError;
use serde::{Deserialize, Serialize};

/// A bucket of an object storage that is bound to the endpoint.
///
/// ```no_run
/// use rust_edge_gateway_sdk_core::prelude::*;
///
/// fn handle(req: Request) -> Result<Response, HandlerError> {
///     let key: String = req.require_path_param("key")?;
///     match ObjectStore::new("files").get(&key)? {
///         Some(bytes) => Ok(Response::binary(200, bytes, "application/octet-stream")),
///         None => Err(HandlerError::NotFoundMessage(format!("no file {key}"))),
///     }
/// }
/// ```
///
/// Every call fails with [`HandlerError::StorageError`] when the storage refuses it, and with the errors that all
/// services share: [`HandlerError::PoolNotBound`], [`HandlerError::ServiceInactive`],
/// [`HandlerError::BackendUnavailable`], [`HandlerError::DeadlineExceeded`], [`HandlerError::ServiceBusy`].
#[derive(Debug, Clone)]
pub struct ObjectStore {
    /// The name under which the service is bound to the endpoint.
    pub pool_id: String,
}

/// What is known of an object without its content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ObjectInfo {
    /// Bytes of the content.
    pub size: u64,
    /// The type that was given when it was stored.
    #[serde(default)]
    pub content_type: Option<String>,
    /// Changes with the content.
    #[serde(default)]
    pub etag: Option<String>,
    /// When it was stored, in UTC: `2026-01-31T23:59:59.000Z`.
    #[serde(default)]
    pub last_modified: Option<String>,
}

/// An object in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ListedObject {
    /// Its whole key, the prefix included.
    pub key: String,
    /// Bytes of the content.
    pub size: u64,
    /// When it was stored, in UTC: `2026-01-31T23:59:59.000Z`.
    #[serde(default)]
    pub last_modified: Option<String>,
    /// Changes with the content.
    #[serde(default)]
    pub etag: Option<String>,
}

/// The result of storing an object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredObject {
    /// Changes with the content.
    #[serde(default)]
    pub etag: Option<String>,
    /// Bytes of the content.
    pub size: u64,
}

#[derive(Deserialize)]
struct ObjectHead {
    found: bool,
    #[serde(flatten)]
    info: Option<ObjectInfo>,
}

impl ObjectStore {
    /// The bucket that is bound as `pool_id`. Connects to nothing.
    pub fn new(pool_id: impl Into<String>) -> Self {
        ObjectStore { pool_id: pool_id.into() }
    }

    /// The content of an object, if there is one: at most 64 MiB. [`ObjectStore::download`] reads larger ones.
    ///
    /// # Errors
    /// See [`ObjectStore`].
    pub fn get(&self, key: &str) -> Result<Option<Vec<u8>>, HandlerError> {
        self.call("get", &[("key", Arg::Text(key))], &[]).read(optional_payload)
    }

    /// The content of an object as text, if there is one.
    ///
    /// # Errors
    /// See [`ObjectStore`]; [`HandlerError::StorageError`] when it is not UTF-8.
    pub fn get_string(&self, key: &str) -> Result<Option<String>, HandlerError> {
        text(Family::Storage, &self.pool_id, key, self.get(key)?)
    }

    /// What is known of an object, if there is one.
    ///
    /// # Errors
    /// See [`ObjectStore`].
    pub fn head(&self, key: &str) -> Result<Option<ObjectInfo>, HandlerError> {
        let head = |reply: Reply<'_, ObjectHead>| match result(reply)? {
            ObjectHead { found: false, .. } => Ok(None),
            ObjectHead { info: Some(info), .. } => Ok(Some(info)),
            ObjectHead { .. } => Err("it has no size".to_owned()),
        };
        self.call("head", &[("key", Arg::Text(key))], &[]).read(head)
    }

    /// Whether there is such an object.
    ///
    /// # Errors
    /// See [`ObjectStore`].
    pub fn exists(&self, key: &str) -> Result<bool, HandlerError> {
        Ok(self.head(key)?.is_some())
    }

    /// Stores an object, whatever was there before, as `application/octet-stream`.
    ///
    /// # Errors
    /// See [`ObjectStore`].
    pub fn put(&self, key: &str, content: impl AsRef<[u8]>) -> Result<StoredObject, HandlerError> {
        self.store(key, None, content.as_ref())
    }

    /// Stores an object with a content type.
    ///
    /// # Errors
    /// See [`ObjectStore`].
    pub fn put_with_type(
        &self,
        key: &str,
        content: impl AsRef<[u8]>,
        content_type: &str,
    ) -> Result<StoredObject, HandlerError> {
        self.store(key, Some(content_type), content.as_ref())
    }

    /// Deletes an object. Whether it was there.
    ///
    /// # Errors
    /// See [`ObjectStore`].
    pub fn delete(&self, key: &str) -> Result<bool, HandlerError> {
        let Deletion { deleted } = self.call("delete", &[("key", Arg::Text(key))], &[]).result()?;
        Ok(deleted)
    }

    /// The objects whose keys begin with `prefix`, by their keys; `""` for all.
    ///
    /// # Errors
    /// See [`ObjectStore`].
    pub fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, HandlerError> {
        self.call("list", &[("prefix", Arg::Text(prefix))], &[]).json()
    }

    /// The first so many of them.
    ///
    /// # Errors
    /// See [`ObjectStore`].
    pub fn list_at_most(&self, prefix: &str, limit: u64) -> Result<Vec<ListedObject>, HandlerError> {
        self.call("list", &[("prefix", Arg::Text(prefix)), ("limit", Arg::Number(limit))], &[]).json()
    }

    // Not generic: compiled here, and not in every handler.
    #[inline(never)]
    fn store(&self, key: &str, content_type: Option<&str>, content: &[u8]) -> Result<StoredObject, HandlerError> {
        self.call("put", &[("key", Arg::Text(key)), ("content_type", content_type.into())], content).result()
    }

    pub(super) fn call<'a>(
        &'a self,
        operation: &'static str,
        args: &'a [(&'static str, Arg<'a>)],
        payload: &'a [u8],
    ) -> Call<'a> {
        Call::new(Family::Storage, &self.pool_id, operation, args, payload)
    }
}
