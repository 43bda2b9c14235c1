//! The connections of this process that no call uses right now.

use super::access;
use super::call::Call;
use super::connection::{Broken, Connection};
use super::incoming::Body;
use crate::runtime::{self, lock};
use crate::HandlerError;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

/// More are closed when their call is over. As many as requests are usually worked on at once, or busy handlers would
/// connect anew again and again.
const MOST_IDLE: usize = 64;
/// A connection that was not needed for this long, and at most for twice as long, is closed: connections that a burst
/// of calls has left are among those that the actor host can have at all.
const UNUSED: Duration = Duration::from_secs(10);

static IDLE: Mutex<Idle<Connection>> = Mutex::new(Idle::new());

/// What is idle. What was used last is taken first, so that what is not needed stays below, untouched.
struct Idle<T> {
    spare: Vec<T>,
    /// The fewest there were since the last look: as many were not needed since then.
    fewest: usize,
    /// Whether somebody looks from time to time.
    watched: bool,
}

impl<T> Idle<T> {
    const fn new() -> Self {
        Idle { spare: Vec::new(), fewest: 0, watched: false }
    }

    fn take(&mut self) -> Option<T> {
        let taken = self.spare.pop();
        self.fewest = self.fewest.min(self.spare.len());
        taken
    }

    /// Gives it back when there is no room for it.
    fn put(&mut self, item: T) -> Option<T> {
        if self.spare.len() == MOST_IDLE {
            return Some(item);
        }
        self.spare.push(item);
        None
    }

    /// Removes what was not needed since the last look.
    fn unneeded(&mut self) -> Vec<T> {
        let unneeded = self.spare.drain(..self.fewest).collect();
        self.fewest = self.spare.len();
        unneeded
    }
}

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
        let connection = lock(&IDLE).take()?;
        if connection.is_usable() {
            return Some(connection);
        }
    }
}

/// Keeps a connection for the next call.
pub fn give_back(connection: Connection) {
    let mut idle = lock(&IDLE);
    let left_over = idle.put(connection);
    if !idle.watched {
        // Where no thread can be had now, the next connection that comes back asks for one again.
        idle.watched = runtime::spawn_small("idle", close_unneeded).is_ok();
    }
    // Nobody waits while it is closed.
    drop(idle);
    drop(left_over);
}

/// Looks from time to time, for as long as there is anything to look after.
fn close_unneeded() {
    loop {
        thread::sleep(UNUSED);
        let mut idle = lock(&IDLE);
        let unneeded = idle.unneeded();
        idle.watched = !idle.spare.is_empty();
        let watched = idle.watched;
        // Nobody waits while they are closed.
        drop(idle);
        drop(unneeded);
        if !watched {
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
        let left_over: Vec<_> = (0..MOST_IDLE + 2).filter_map(|n| idle.put(n)).collect();
        assert_eq!(left_over, [MOST_IDLE, MOST_IDLE + 1]);
    }

    #[test]
    fn what_is_not_needed_between_two_looks_goes() {
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
