//! The connections of this process that no call uses right now.

use super::access;
use super::call::Call;
use super::connection::{Broken, Connection};
use super::incoming::Body;
use crate::runtime::lock;
use crate::HandlerError;
use std::sync::Mutex;

/// More are closed when their call is over. As many as requests are usually worked on at once, or busy handlers would
/// connect anew again and again.
const MOST_IDLE: usize = 64;

static IDLE: Mutex<Vec<Connection>> = Mutex::new(Vec::new());

/// Makes a call, and hands its answer to `read`. Afterwards the connection waits for the next call.
///
/// # Errors
/// Why the call could not be made, or was not answered; or what `read` says.
pub fn with_connection<R>(
    call: &Call<'_>,
    read: impl FnOnce(&[u8], Body<'_>) -> Result<R, HandlerError>,
) -> Result<R, HandlerError> {
    let (connection, outcome) = on_connection(call, read)?;
    give_back(connection);
    outcome
}

/// The same, with the connection for the caller to keep.
///
/// # Errors
/// Why the call could not be made, or was not answered.
pub fn on_connection<R>(
    call: &Call<'_>,
    read: impl FnOnce(&[u8], Body<'_>) -> Result<R, HandlerError>,
) -> Result<(Connection, Result<R, HandlerError>), HandlerError> {
    call.check_size()?;
    if let Some(mut connection) = take() {
        match connection.exchange(call) {
            Ok((head, body)) => {
                let outcome = read(head, body);
                return Ok((connection, outcome));
            }
            // The other side went away since the look at it. Nothing was written, so nothing can be done twice.
            Err(Broken::Unsent(_)) => {}
            Err(broken) => return Err(call.family.broken(call.pool, broken)),
        }
    }
    let access = access::get().ok_or_else(|| call.family.no_access(call.pool))?;
    let limit = call.deadline.unwrap_or(access.default_deadline);
    let mut connection = Connection::open(access, limit).map_err(|error| call.family.unreachable(call.pool, &error))?;
    match connection.exchange(call) {
        Ok((head, body)) => {
            let outcome = read(head, body);
            Ok((connection, outcome))
        }
        Err(broken) => Err(call.family.broken(call.pool, broken)),
    }
}

/// The connection that was used last and is still good.
fn take() -> Option<Connection> {
    loop {
        let connection = lock(&IDLE).pop()?;
        if connection.is_usable() {
            return Some(connection);
        }
    }
}

/// Keeps a connection for the next call.
pub fn give_back(connection: Connection) {
    let mut idle = lock(&IDLE);
    if idle.len() < MOST_IDLE {
        idle.push(connection);
    }
}
