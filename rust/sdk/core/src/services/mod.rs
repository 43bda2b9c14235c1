//! Backend services: databases, caches, storages and mail servers that an operator has bound to the endpoint, each
//! under a `pool_id`.
//!
//! A handle, like [`DbPool`], holds nothing but that name: making one costs nothing. Calls go to the actor host, a
//! process on the same machine that owns the connections with the backends; see `docs/SERVICE-PROTOCOL.md`. They wait
//! for their answer, without delaying other requests of the process.
//!
//! | handle | for |
//! |---|---|
//! | [`DbPool`] | PostgreSQL, MySQL, SQLite |
//! | [`RedisPool`] | Redis |
//! | [`MongoPool`] | MongoDB |
//! | [`MemcachedPool`] | memcached |
//! | [`ObjectStore`] | object storage (S3, MinIO) |
//! | [`FtpPool`] | FTP, FTPS, SFTP |
//! | [`EmailPool`] | SMTP |
//! | [`HttpPool`] | HTTP APIs |
//! | [`Storage`] | JSON records by id, on a database, an object storage or a file server |
//!
//! In an async handler on tokio's multi-threaded runtime, other tasks move to another thread while a call waits. What
//! the same task would do meanwhile, as with `join!`, waits with it; and so do all tasks of a thread where futures are
//! not `Send`.

mod answer_reader;
mod call;
mod connection;
mod connection_pool;
mod db_result;
mod deadline;
mod email;
mod failure;
mod files;
mod http;
mod memcached;
mod mongo;
mod mongo_options;
mod mongo_payload;
mod object_streams;
mod objects;
mod param_types;
mod params;
mod redis;
mod reply;
mod service_config;
mod socket;
mod sql;
mod storage;
mod transaction;

pub use db_result::{DbResult, ExecResult};
pub use deadline::with_deadline;
pub use email::{EmailMessage, EmailPool, SentEmail};
pub use files::{FileEntry, FileKind, FtpPool};
pub use http::{HttpPool, HttpRequest, HttpResponse};
pub use memcached::MemcachedPool;
pub use mongo::MongoPool;
pub use mongo_options::{FindOptions, UpdateOptions, UpdateResult};
pub use object_streams::ObjectReader;
pub use objects::{ListedObject, ObjectInfo, ObjectStore, StoredObject};
pub use param_types::{IntoParams, ToParam};
pub use params::Params;
pub use redis::RedisPool;
pub use service_config::{EnvVars, ServiceConfig};
pub use sql::DbPool;
pub use storage::{Storage, StorageType};
pub use transaction::Transaction;
