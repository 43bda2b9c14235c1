//! Makes calls, and keeps the connections of this process that no call uses for the next ones.

use super::access;
use super::call::Call;
use super::connection::Connection;
use super::failure::ConnectionError;
use super::incoming::Body;
use super::reply::{self, Reply};
use crate::runtime::{self, lock};
use crate::HandlerError;
use serde::de::DeserializeOwned;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

/// More are closed after their call. As many as requests usually run at once, or busy handlers would connect again and
/// again.
const MAX_IDLE: usize = 64;
/// A connection that was not needed for one to two of these is closed: the actor host allows a handler only so many,
/// and a burst of calls leaves more than are needed.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

static IDLE: Mutex<Idle<Connection>> = Mutex::new(Idle::new());

/// A stack: what was used last is taken first, so that what is not needed stays at the bottom.
struct Idle<T> {
    items: Vec<T>,
    /// The fewest there were since the last check: as many were not needed since then.
    fewest: usize,
    /// Whether a thread closes what is not needed.
    has_closer: bool,
}

impl<T> Idle<T> {
    const fn new() -> Self {
        Idle { items: Vec::new(), fewest: 0, has_closer: false }
    }

    fn take(&mut self) -> Option<T> {
        let taken = self.items.pop();
        self.fewest = self.fewest.min(self.items.len());
        taken
    }

    /// Returns the item if there is no room for it.
    fn put(&mut self, item: T) -> Option<T> {
        if self.items.len() == MAX_IDLE {
            return Some(item);
        }
        self.items.push(item);
        None
    }

    /// Removes what was not needed since the last check.
    fn unneeded(&mut self) -> Vec<T> {
        let unneeded = self.items.drain(..self.fewest).collect();
        self.fewest = self.items.len();
        unneeded
    }
}

impl Call<'_> {
    /// Makes the call for an operation with a `result`.
    ///
    /// # Errors
    /// As [`HandlerError`] says for calls of services.
    pub fn result<T: DeserializeOwned>(&self) -> Result<T, HandlerError> {
        self.read(reply::result)
    }

    /// Makes the call for an operation that answers with JSON as payload.
    ///
    /// # Errors
    /// As [`HandlerError`] says for calls of services.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, HandlerError> {
        self.read(reply::json)
    }

    /// Makes the call, and reads the answer with `read`. Only here is a connection held.
    ///
    /// # Errors
    /// As [`HandlerError`] says for calls of services; what `read` says means an answer that cannot be understood.
    pub fn read<T: DeserializeOwned, R>(
        &self,
        read: impl FnOnce(Reply<'_, T>) -> Result<R, String>,
    ) -> Result<R, HandlerError> {
        let (connection, outcome) = exchange(self, |head, body| self.understand(head, body, read))?;
        release(connection);
        outcome
    }
}

/// Makes a call, and hands its answer to `read`. The connection is the caller's to keep or to release.
///
/// # Errors
/// Why the call could not be made, or was not answered.
pub fn exchange<R>(
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
            // Closed since it was checked. Nothing was written, so nothing can be done twice.
            Err(ConnectionError::Unsent(_)) => {}
            Err(error) => return Err(call.family.disconnected(call.pool, error)),
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
        Err(error) => Err(call.family.disconnected(call.pool, error)),
    }
}

/// The connection that was used last and is still good.
fn take() -> Option<Connection> {
    loop {
        let connection = lock(&IDLE).take()?;
        if connection.is_usable() {
            return Some(connection);
        }
    }
}

/// Keeps a connection for the next call.
pub fn release(connection: Connection) {
    let mut idle = lock(&IDLE);
    let surplus = idle.put(connection);
    if !idle.has_closer {
        // If no thread can be started now, the next connection to be released tries again.
        idle.has_closer = runtime::spawn_small("idle", close_unneeded).is_ok();
    }
    // Closed without holding the lock.
    drop(idle);
    drop(surplus);
}

/// Closes connections that are not needed, for as long as any are idle.
fn close_unneeded() {
    loop {
        thread::sleep(CHECK_INTERVAL);
        let mut idle = lock(&IDLE);
        let unneeded = idle.unneeded();
        idle.has_closer = !idle.items.is_empty();
        let is_done = !idle.has_closer;
        // Closed without holding the lock.
        drop(idle);
        drop(unneeded);
        if is_done {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_last_is_taken_first() {
        let mut idle = Idle::new();
        assert_eq!((idle.put(1), idle.put(2)), (None, None));
        assert_eq!((idle.take(), idle.take(), idle.take()), (Some(2), Some(1), None));
    }

    #[test]
    fn only_so_many_are_kept() {
        let mut idle = Idle::new();
        let surplus: Vec<_> = (0..MAX_IDLE + 2).filter_map(|n| idle.put(n)).collect();
        assert_eq!(surplus, [MAX_IDLE, MAX_IDLE + 1]);
    }

    #[test]
    fn what_is_not_needed_between_two_checks_is_removed() {
        let mut idle = Idle::new();
        for n in 1..=4 {
            idle.put(n);
        }
        assert!(idle.unneeded().is_empty(), "all have just come");
        let used = idle.take().zip(idle.take());
        assert_eq!(used, Some((4, 3)));
        idle.put(3);
        idle.put(4);
        assert_eq!(idle.unneeded(), [1, 2]);
        assert_eq!(idle.unneeded(), [3, 4]);
        assert!(idle.unneeded().is_empty());
    }
}
