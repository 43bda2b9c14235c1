//! The database of a service: its pool of connections, which are opened again when the server was away.
//!
//! Below `Database` are: the `pool`, which leases a `connection` to each call or `transaction`; a `statement` on it,
//! whose `messages` become `rows` of JSON by their `types`; and how a connection is opened, `connect`, `tls`, `login`.
mod certificate;
mod connect;
mod connection;
mod database;
mod failure;
mod lease;
mod login;
mod messages;
mod open;
mod pool;
mod prepared;
mod rows;
mod statement;
mod tls;
mod transaction;
mod types;

use std::rc::Rc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::CallError;
use crate::memory::MemoryBudget;

pub use database::{Database, not_connected};
pub use transaction::Transaction;

/// The config of the service, as the contract has it.
#[derive(Clone, Debug, Deserialize)]
pub struct Config {
    pub host: String,
    pub port: u16,
    pub database: String,
    pub username: String,
    pub password: Option<String>,
    pub pool_size: usize,
    pub ssl_mode: SslMode,
    pub ssl_root_cert: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum SslMode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl SslMode {
    fn name(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Prefer => "prefer",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }
}

/// Whether the server can be reached; the JSON is that of `ConnectionState` in TypeScript.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum State {
    /// During the first attempt, at the start or after a connection was lost.
    Connecting,
    Connected {
        message: String,
        latency_ms: u64,
    },
    Unreachable {
        reason: String,
    },
}

/// What a statement has answered.
#[derive(Debug)]
pub enum Answer {
    /// JSON: `{"columns", "rows", "rows_affected", "last_insert_id"}`.
    Rows(Vec<u8>),
    /// The number of changed rows.
    Affected(u64),
}

/// What the server may make this process hold.
pub struct Limits {
    /// One answer.
    pub answer_bytes: usize,
    /// All that is held at a time.
    pub memory: Rc<MemoryBudget>,
}

/// The server of a service.
struct Target {
    config: Config,
    /// `host:port`
    address: String,
    /// The largest message that it may send, bytes.
    message_limit: usize,
    memory: Rc<MemoryBudget>,
}

impl Target {
    fn new(config: Config, Limits { answer_bytes, memory }: Limits) -> Self {
        // Bytes come as text of twice their length, and a row may have more than one value.
        let message_limit = answer_bytes.saturating_mul(5) / 2;
        Self { address: format!("{}:{}", config.host, config.port), config, message_limit, memory }
    }
}

/// A connection that was opened, tested and closed.
pub struct Tested {
    /// Product and version of the server.
    pub message: String,
    /// Duration of one round trip.
    pub latency_ms: u64,
}

/// Opens a connection, makes one round trip, and closes it.
///
/// # Errors
///
/// `deadline` when the server does not answer in time, even if it has accepted the connection; else why it cannot be
/// reached, or refuses.
pub async fn test(config: Config, limits: Limits, timeout: Duration) -> Result<Tested, CallError> {
    let encryptions = tls::encryptions(&config);
    let target = Rc::new(Target::new(config, limits));
    let opened = open::open(&target, &encryptions, timeout, |_| {}).await.map_err(|failure| failure.error)?;
    Ok(Tested { message: opened.tested.message.clone(), latency_ms: opened.tested.latency_ms })
}
