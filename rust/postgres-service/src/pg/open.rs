//! Opens the connections of a service with a timeout, and tests them.
use std::rc::Rc;
use std::time::{Duration, Instant};

use edge_service::backend::OpenedConnection;
use edge_service::error::{CallError, Kind};
use tokio::time::timeout;

use super::failure::Failure;
use super::pool::Pool;
use super::target::Target;
use super::tls::Encryption;

/// What is shown of the version that the server tells.
const MAX_VERSION_CHARS: usize = 64;

pub struct OpenFailure {
    pub error: CallError,
    /// Whether the server did not answer, rather than refused.
    pub is_silent: bool,
}

/// Opens a connection and makes one round trip. `on_lost` is called when connections are lost and no new one can be
/// opened.
pub async fn open(
    target: &Rc<Target>,
    encryptions: &[Encryption],
    limit: Duration,
    on_lost: impl Fn(CallError) + Clone + 'static,
) -> Result<OpenedConnection<Pool>, OpenFailure> {
    // Those of earlier versions were stored without this check.
    if target.config.host.starts_with('/') {
        let error = CallError::new(Kind::Unavailable, "host: must be a name or an address, not a Unix socket");
        return Err(OpenFailure { error, is_silent: false });
    }
    match timeout(limit, open_any(target, encryptions, on_lost)).await {
        Ok(Ok(opened)) => Ok(opened),
        Ok(Err(failure)) => {
            let is_silent = failure.is_network_failure();
            Err(OpenFailure { error: failure.into_connect_error(target), is_silent })
        }
        Err(_) => {
            let message = format!("the backend did not answer within {} ms", limit.as_millis());
            Err(OpenFailure { error: CallError::new(Kind::Deadline, message), is_silent: true })
        }
    }
}

async fn open_any(
    target: &Rc<Target>,
    encryptions: &[Encryption],
    on_lost: impl Fn(CallError) + Clone + 'static,
) -> Result<OpenedConnection<Pool>, Failure> {
    let mut ways = encryptions.iter().peekable();
    while let Some(encryption) = ways.next() {
        match Pool::open(target.clone(), encryption.clone(), on_lost.clone()).await {
            Err(failure) if failure.may_connect_otherwise() && ways.peek().is_some() => {}
            Err(failure) => return Err(failure),
            Ok(pool) => return test(pool).await,
        }
    }
    Err(Failure::Other("there is no way to connect".to_owned()))
}

async fn test(pool: Rc<Pool>) -> Result<OpenedConnection<Pool>, Failure> {
    let mut opened = OpenedConnection::new(pool.clone());
    let mut lease = pool.lease().await.map_err(Failure::Call)?;
    let started = Instant::now();
    let version = lease.value("SHOW server_version").await?.unwrap_or_default();
    let version: String = version.chars().take_while(|&c| c != ' ').take(MAX_VERSION_CHARS).collect();
    opened.round_trip.message = format!("PostgreSQL {version}");
    opened.round_trip.latency_ms = (started.elapsed().as_secs_f64() * 1000.0).round() as u64;
    Ok(opened)
}
