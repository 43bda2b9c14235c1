//! [`RedisPool`].

use super::call::{Arg, Call};
use super::failure::Family;
use super::param_types::IntoParams;
use super::params::Params;
use super::reply::{optional_payload, text};
use crate::error::HandlerError;
use base64::{engine::general_purpose::STANDARD as BASE64, Engine};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::HashMap;

/// A Redis server that is bound to the endpoint.
///
/// ```no_run
/// use rust_edge_gateway_sdk_core::prelude::*;
///
/// fn handle(_: Request) -> Result<Response, HandlerError> {
///     let redis = RedisPool::new("cache");
///     if let Some(page) = redis.get("page")? {
///         return Ok(Response::html(200, page));
///     }
///     let page = "<h1>Slowly made</h1>";
///     redis.setex("page", page, 60)?;
///     Ok(Response::html(200, page))
/// }
/// ```
///
/// Every call fails with [`HandlerError::RedisError`] when Redis refuses it, and with the errors that all services
/// share: [`HandlerError::PoolNotBound`], [`HandlerError::ServiceInactive`], [`HandlerError::BackendUnavailable`],
/// [`HandlerError::DeadlineExceeded`], [`HandlerError::ServiceBusy`].
#[derive(Debug, Clone)]
pub struct RedisPool {
    /// The name under which the service is bound to the endpoint.
    pub pool_id: String,
}

impl RedisPool {
    /// The server that is bound as `pool_id`. Connects to nothing.
    pub fn new(pool_id: impl Into<String>) -> Self {
        RedisPool { pool_id: pool_id.into() }
    }

    /// The text at `key`, if there is one.
    ///
    /// # Errors
    /// See [`RedisPool`]; [`HandlerError::RedisError`] when it is not UTF-8: use [`RedisPool::get_bytes`] then.
    pub fn get(&self, key: &str) -> Result<Option<String>, HandlerError> {
        text(Family::Redis, &self.pool_id, key, self.get_bytes(key)?)
    }

    /// The bytes at `key`, if there are any.
    ///
    /// # Errors
    /// See [`RedisPool`].
    pub fn get_bytes(&self, key: &str) -> Result<Option<Vec<u8>>, HandlerError> {
        self.call("get", &[("key", Arg::Text(key))], &[]).read(optional_payload)
    }

    /// Stores a value, whatever was there before, until it is deleted.
    ///
    /// # Errors
    /// See [`RedisPool`].
    pub fn set(&self, key: &str, value: impl AsRef<[u8]>) -> Result<(), HandlerError> {
        self.store(key, None, None, value.as_ref()).map(drop)
    }

    /// Stores a value that Redis forgets after so many seconds.
    ///
    /// # Errors
    /// See [`RedisPool`].
    pub fn setex(&self, key: &str, value: impl AsRef<[u8]>, seconds: u64) -> Result<(), HandlerError> {
        self.store(key, Some(seconds), None, value.as_ref()).map(drop)
    }

    /// Stores a value if there is none yet. Whether it did.
    ///
    /// # Errors
    /// See [`RedisPool`].
    pub fn set_nx(&self, key: &str, value: impl AsRef<[u8]>) -> Result<bool, HandlerError> {
        self.store(key, None, Some("absent"), value.as_ref())
    }

    /// Stores a value if there is none yet, and has Redis forget it after so many seconds. Whether it did.
    ///
    /// # Errors
    /// See [`RedisPool`].
    pub fn set_nx_ex(&self, key: &str, seconds: u64, value: impl AsRef<[u8]>) -> Result<bool, HandlerError> {
        self.store(key, Some(seconds), Some("absent"), value.as_ref())
    }

    /// Deletes a key. Whether it was there.
    ///
    /// # Errors
    /// See [`RedisPool`].
    pub fn del(&self, key: &str) -> Result<bool, HandlerError> {
        Ok(self.reply::<i64>(("DEL", key))? > 0)
    }

    /// Whether there is such a key.
    ///
    /// # Errors
    /// See [`RedisPool`].
    pub fn exists(&self, key: &str) -> Result<bool, HandlerError> {
        Ok(self.reply::<i64>(("EXISTS", key))? > 0)
    }

    /// Adds one to the number at `key`, which is 0 if it is not there, and returns the sum.
    ///
    /// # Errors
    /// See [`RedisPool`].
    pub fn incr(&self, key: &str) -> Result<i64, HandlerError> {
        self.reply(("INCR", key))
    }

    /// Adds `by`, which may be negative, to the number at `key`, which is 0 if it is not there, and returns the sum.
    ///
    /// # Errors
    /// See [`RedisPool`].
    pub fn incr_by(&self, key: &str, by: i64) -> Result<i64, HandlerError> {
        self.reply(("INCRBY", key, by))
    }

    /// Has Redis forget the key after so many seconds. Whether it was there.
    ///
    /// # Errors
    /// See [`RedisPool`].
    pub fn expire(&self, key: &str, seconds: u64) -> Result<bool, HandlerError> {
        Ok(self.reply::<i64>(("EXPIRE", key, seconds))? > 0)
    }

    /// Seconds until Redis forgets the key; `None` if it never does, or the key is not there.
    ///
    /// # Errors
    /// See [`RedisPool`].
    pub fn ttl(&self, key: &str) -> Result<Option<u64>, HandlerError> {
        Ok(u64::try_from(self.reply::<i64>(("TTL", key))?).ok())
    }

    /// The text in a field of the hash at `key`, if there is one.
    ///
    /// # Errors
    /// See [`RedisPool`]; [`HandlerError::RedisError`] when it is not UTF-8.
    pub fn hget(&self, key: &str, field: &str) -> Result<Option<String>, HandlerError> {
        self.reply(("HGET", key, field))
    }

    /// Sets a field of the hash at `key`. Whether the field is new.
    ///
    /// # Errors
    /// See [`RedisPool`].
    pub fn hset(&self, key: &str, field: &str, value: impl AsRef<[u8]>) -> Result<bool, HandlerError> {
        self.set_field(key, field, value.as_ref())
    }

    /// All fields of the hash at `key`; none if it is not there.
    ///
    /// # Errors
    /// See [`RedisPool`]; [`HandlerError::RedisError`] when a field or a value is not UTF-8.
    pub fn hgetall(&self, key: &str) -> Result<HashMap<String, String>, HandlerError> {
        let mut rest = self.reply::<Vec<String>>(("HGETALL", key))?.into_iter();
        let mut fields = HashMap::new();
        while let (Some(field), Some(value)) = (rest.next(), rest.next()) {
            fields.insert(field, value);
        }
        Ok(fields)
    }

    /// Runs any command: its name and its arguments, which may be texts, numbers and bytes.
    ///
    /// ```no_run
    /// # use rust_edge_gateway_sdk_core::prelude::*;
    /// # fn f(redis: RedisPool) -> Result<(), HandlerError> {
    /// redis.command(("LPUSH", "jobs", "first"))?;
    /// let jobs = redis.command(("LRANGE", "jobs", 0, -1))?;
    /// redis.command(["PING"])?;
    /// # Ok(()) }
    /// ```
    ///
    /// The reply is `null`, an integer, a text, an array of these, or `{"base64": "..."}` for bytes that are not UTF-8;
    /// [`RedisPool::bytes_of`] reads both kinds of strings. Commands that would change or hold the connection that all
    /// calls share are refused: SELECT, MULTI, SUBSCRIBE, BLPOP and the like.
    ///
    /// # Errors
    /// See [`RedisPool`].
    pub fn command(&self, command: impl IntoParams) -> Result<Value, HandlerError> {
        let mut params = Params::of_command();
        command.add_all_to(&mut params);
        self.value(params)
    }

    /// The bytes of a string in a reply; `None` if it is no string.
    pub fn bytes_of(reply: &Value) -> Option<Vec<u8>> {
        match reply {
            Value::String(text) => Some(text.clone().into_bytes()),
            Value::Object(members) => BASE64.decode(members.get("base64")?.as_str()?).ok(),
            _ => None,
        }
    }

    #[inline(never)]
    fn store(
        &self,
        key: &str,
        seconds: Option<u64>,
        only_if: Option<&str>,
        value: &[u8],
    ) -> Result<bool, HandlerError> {
        let ttl_ms = seconds.map(|seconds| seconds.saturating_mul(1000));
        let args = [("key", Arg::Text(key)), ("ttl_ms", ttl_ms.into()), ("only_if", only_if.into())];
        self.call("set", &args, value).result()
    }

    // Not generic: compiled here, and not in every handler.
    #[inline(never)]
    fn value(&self, params: Params) -> Result<Value, HandlerError> {
        self.run(params)
    }

    #[inline(never)]
    fn set_field(&self, key: &str, field: &str, value: &[u8]) -> Result<bool, HandlerError> {
        Ok(self.reply::<i64>(("HSET", key, field, value))? > 0)
    }

    fn reply<T: DeserializeOwned>(&self, command: impl IntoParams) -> Result<T, HandlerError> {
        let mut params = Params::of_command();
        command.add_all_to(&mut params);
        self.run(params)
    }

    fn run<T: DeserializeOwned>(&self, params: Params) -> Result<T, HandlerError> {
        let payload = params.finish().map_err(|why| Family::Redis.invalid(&self.pool_id, &why))?;
        self.call("command", &[], &payload).json()
    }

    fn call<'a>(&'a self, operation: &'static str, args: &'a [(&'static str, Arg<'a>)], payload: &'a [u8]) -> Call<'a> {
        Call::new(Family::Redis, &self.pool_id, operation, args, payload)
    }
}
