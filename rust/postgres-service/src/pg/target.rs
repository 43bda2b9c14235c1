//! The server of a service, and its config.
use std::sync::Arc;

use edge_service::backend::Limits;
use edge_service::memory::MemoryBudget;
use serde::Deserialize;

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
    pub fn name(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Prefer => "prefer",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }
}

/// The server of a service.
pub struct Target {
    pub config: Config,
    /// `host:port`
    pub address: String,
    /// The largest message that it may send, bytes.
    pub message_limit: usize,
    pub memory: Arc<MemoryBudget>,
}

impl Target {
    pub fn new(config: Config, Limits { answer_bytes, memory, .. }: Limits) -> Self {
        // Bytes come as text of twice their length, and a row may have more than one value.
        let message_limit = answer_bytes.saturating_mul(5) / 2;
        Self { address: format!("{}:{}", config.host, config.port), config, message_limit, memory }
    }
}
