//! [`MemcachedPool`].

use super::call::{Arg, Call};
use super::failure::Family;
use super::reply::{optional_payload, text, Reply};
use crate::error::HandlerError;

/// A memcached server that is bound to the endpoint.
///
/// ```no_run
/// use rust_edge_gateway_sdk_core::prelude::*;
///
/// fn handle(_: Request) -> Result<Response, HandlerError> {
///     let cache = MemcachedPool::new("cache");
///     let page = match cache.get("page")? {
///         Some(page) => page,
///         None => {
///             let page = "<h1>Slowly made</h1>".to_owned();
///             cache.setex("page", 60, &page)?;
///             page
///         }
///     };
///     Ok(Response::html(200, page))
/// }
/// ```
///
/// Every call fails with [`HandlerError::CacheError`] when memcached refuses it, and with the errors that all services
/// share: [`HandlerError::PoolNotBound`], [`HandlerError::ServiceInactive`], [`HandlerError::BackendUnavailable`],
/// [`HandlerError::DeadlineExceeded`], [`HandlerError::ServiceBusy`].
#[derive(Debug, Clone)]
pub struct MemcachedPool {
    /// The name under which the service is bound to the endpoint.
    pub pool_id: String,
}

impl MemcachedPool {
    /// The server that is bound as `pool_id`. Connects to nothing.
    pub fn new(pool_id: impl Into<String>) -> Self {
        MemcachedPool { pool_id: pool_id.into() }
    }

    /// The text at `key`, if there is one.
    ///
    /// # Errors
    /// See [`MemcachedPool`]; [`HandlerError::CacheError`] when it is not UTF-8: use [`MemcachedPool::get_bytes`] then.
    pub fn get(&self, key: &str) -> Result<Option<String>, HandlerError> {
        text(Family::Cache, &self.pool_id, key, self.get_bytes(key)?)
    }

    /// The bytes at `key`, if there are any.
    ///
    /// # Errors
    /// See [`MemcachedPool`].
    pub fn get_bytes(&self, key: &str) -> Result<Option<Vec<u8>>, HandlerError> {
        self.call("get", &[("key", Arg::Text(key))], &[]).read(optional_payload)
    }

    /// Stores a value, whatever was there before, for as long as there is room for it.
    ///
    /// # Errors
    /// See [`MemcachedPool`].
    pub fn set(&self, key: &str, value: impl AsRef<[u8]>) -> Result<(), HandlerError> {
        self.store("set", key, None, value.as_ref()).map(drop)
    }

    /// Stores a value for at most so many seconds.
    ///
    /// # Errors
    /// See [`MemcachedPool`].
    pub fn setex(&self, key: &str, seconds: u64, value: impl AsRef<[u8]>) -> Result<(), HandlerError> {
        self.store("set", key, Some(seconds), value.as_ref()).map(drop)
    }

    /// Stores a value if there is none yet, for at most `seconds` if given. Whether it did.
    ///
    /// # Errors
    /// See [`MemcachedPool`].
    pub fn add(&self, key: &str, seconds: Option<u64>, value: impl AsRef<[u8]>) -> Result<bool, HandlerError> {
        self.store("add", key, seconds, value.as_ref())
    }

    /// Stores a value if there is one already, for at most `seconds` if given. Whether it did.
    ///
    /// # Errors
    /// See [`MemcachedPool`].
    pub fn replace(&self, key: &str, seconds: Option<u64>, value: impl AsRef<[u8]>) -> Result<bool, HandlerError> {
        self.store("replace", key, seconds, value.as_ref())
    }

    /// Deletes a key. Whether it was there.
    ///
    /// # Errors
    /// See [`MemcachedPool`].
    pub fn delete(&self, key: &str) -> Result<bool, HandlerError> {
        self.call("delete", &[("key", Arg::Text(key))], &[]).result()
    }

    /// Adds `by` to the number at `key`. The sum, or `None` if there is no such key.
    ///
    /// # Errors
    /// See [`MemcachedPool`].
    pub fn incr(&self, key: &str, by: u64) -> Result<Option<u64>, HandlerError> {
        self.count("incr", key, by, None, None)
    }

    /// Takes `by` from the number at `key`, which never gets below 0. The rest, or `None` if there is no such key.
    ///
    /// # Errors
    /// See [`MemcachedPool`].
    pub fn decr(&self, key: &str, by: u64) -> Result<Option<u64>, HandlerError> {
        self.count("decr", key, by, None, None)
    }

    /// Adds `by` to the number at `key`, or stores `initial` if there is no such key, for at most `seconds` if
    /// given. Returns the new number.
    ///
    /// # Errors
    /// See [`MemcachedPool`].
    pub fn incr_or_set(&self, key: &str, by: u64, initial: u64, seconds: Option<u64>) -> Result<u64, HandlerError> {
        Ok(self.count("incr", key, by, Some(initial), seconds)?.unwrap_or(initial))
    }

    // Not generic: compiled here, and not in every handler.
    #[inline(never)]
    fn store(
        &self,
        operation: &'static str,
        key: &str,
        seconds: Option<u64>,
        value: &[u8],
    ) -> Result<bool, HandlerError> {
        self.call(operation, &[("key", Arg::Text(key)), ("ttl_seconds", seconds.into())], value).result()
    }

    fn count(
        &self,
        operation: &'static str,
        key: &str,
        by: u64,
        initial: Option<u64>,
        seconds: Option<u64>,
    ) -> Result<Option<u64>, HandlerError> {
        let args = [
            ("key", Arg::Text(key)),
            ("by", Arg::Number(by)),
            ("initial", initial.into()),
            ("ttl_seconds", seconds.into()),
        ];
        self.call(operation, &args, &[]).read(|reply: Reply<'_, u64>| Ok(reply.result))
    }

    fn call<'a>(&'a self, operation: &'static str, args: &'a [(&'static str, Arg<'a>)], payload: &'a [u8]) -> Call<'a> {
        Call::new(Family::Cache, &self.pool_id, operation, args, payload)
    }
}
