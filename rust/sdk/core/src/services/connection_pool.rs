//! Makes calls, and keeps the connections of this process that no call uses for the next ones.
//!
//! A call first goes to the actor host. For a service that has a process of its own, the answer is its address
//! (`moved`), to which this call and later ones for the same pool go. An address is forgotten when nobody listens there
//! any more, or when the service is no longer answered for there: the actor host then knows more.

use super::access::{self, Access};
use super::call::Call;
use super::connection::Connection;
use super::failure::ConnectionError;
use super::incoming::Body;
use super::reply::{self, Moved, Reply};
use crate::runtime::records::{self, ServiceCall};
use crate::runtime::{self, current, lock};
use crate::HandlerError;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// More are closed after their call. As many as requests usually run at once, or busy handlers would connect again and
/// again.
const MAX_IDLE: usize = 64;
/// A connection that was not needed for one to two of these is closed: the actor host allows a handler only so many,
/// and a burst of calls leaves more than are needed.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// How often one call may be sent elsewhere. A service that is activated again meanwhile needs two.
const MAX_MOVES: usize = 8;
/// A call that takes as long is recorded.
const SLOW: Duration = Duration::from_millis(500);
/// Pools whose address is remembered.
const MAX_ADDRESSES: usize = 1024;

/// Where calls are answered, and the connections there that no call uses.
pub struct Address {
    pub socket: String,
    pub token: String,
    idle: Mutex<Idle<Connection>>,
}

impl Address {
    fn new(socket: String, token: String) -> Arc<Address> {
        Arc::new(Address { socket, token, idle: Mutex::new(Idle::new()) })
    }

    /// The connection that was used last and is still good.
    fn take(&self) -> Option<Connection> {
        loop {
            let connection = lock(&self.idle).take()?;
            if connection.is_usable() {
                return Some(connection);
            }
        }
    }

    /// Closes its connections, now and when their calls end: nothing else would, as each of them holds it.
    fn forget(&self) {
        let left = lock(&self.idle).close();
        // Closed without holding the lock.
        drop(left);
    }
}

/// The address of the actor host.
static ACTOR_HOST: LazyLock<Option<Arc<Address>>> =
    LazyLock::new(|| access::get().map(|Access { socket, token, .. }| Address::new(socket.clone(), token.clone())));
/// By pool, those of services with a process of their own.
static ADDRESSES: LazyLock<Mutex<HashMap<String, Arc<Address>>>> = LazyLock::new(Mutex::default);
/// Whether a thread closes connections that are not needed.
static HAS_CLOSER: AtomicBool = AtomicBool::new(false);

/// A stack: what was used last is taken first, so that what is not needed stays at the bottom.
struct Idle<T> {
    items: Vec<T>,
    /// The fewest there were since the last check: as many were not needed since then.
    fewest: usize,
    /// Whether nothing is kept any more.
    is_closed: bool,
}

impl<T> Idle<T> {
    const fn new() -> Self {
        Idle { items: Vec::new(), fewest: 0, is_closed: false }
    }

    fn take(&mut self) -> Option<T> {
        let taken = self.items.pop();
        self.fewest = self.fewest.min(self.items.len());
        taken
    }

    /// Returns the item if there is no room for it.
    fn put(&mut self, item: T) -> Option<T> {
        if self.is_closed || self.items.len() == MAX_IDLE {
            return Some(item);
        }
        self.items.push(item);
        None
    }

    /// Removes all, and keeps nothing any more.
    fn close(&mut self) -> Vec<T> {
        self.is_closed = true;
        self.fewest = 0;
        std::mem::take(&mut self.items)
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
        let began = Instant::now();
        let outcome =
            exchange(self, |head, body| self.understand(head, body, read)).and_then(|(connection, outcome)| {
                release(connection);
                outcome
            });
        self.ended(began.elapsed(), outcome.as_ref().err());
        outcome
    }

    /// Records a call that took long or has failed, and any of a trace that is recorded.
    #[inline(never)]
    pub fn ended(&self, duration: Duration, failure: Option<&HandlerError>) {
        let current = current::get();
        let trace = current.as_ref().and_then(|current| current.trace());
        let is_noteworthy = duration >= SLOW || failure.is_some();
        if is_noteworthy || trace.is_some_and(|trace| trace.wants_spans) {
            let failure = failure.map(HandlerError::kind);
            let call = ServiceCall { pool: self.pool, operation: self.operation, duration, failure, is_noteworthy };
            records::service_call(&call, trace);
        }
    }
}

/// How an attempt to make a call has ended.
enum Attempt<R> {
    Answered(Connection, Result<R, HandlerError>),
    /// It was not made. It has to be sent elsewhere.
    Moved(Connection, Moved),
    /// It was not made: nobody listens there, or does not know this process.
    NotThere(ConnectionError),
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
    let actor_host = ACTOR_HOST.as_ref().ok_or_else(|| call.family.no_access(call.pool))?;
    let mut read = Some(read);
    let mut began = None;
    for _ in 0..MAX_MOVES {
        let known = lock(&ADDRESSES).get(call.pool).cloned();
        let address = known.as_ref().unwrap_or(actor_host);
        // What is left of the time, once some of it has been spent elsewhere.
        let deadline = began.map_or(Ok(call.deadline), |began| remaining(call, began))?;
        began = began.or_else(|| Some(Instant::now()));
        match attempt(&Call { deadline, ..*call }, address, &mut read)? {
            Attempt::Answered(connection, outcome) => return Ok((connection, outcome)),
            Attempt::Moved(connection, to) => {
                remember(call.pool, address, to);
                release(connection);
            }
            Attempt::NotThere(_) if known.is_some() => forget(call.pool, address),
            Attempt::NotThere(error) => return Err(call.family.disconnected(call.pool, error)),
        }
    }
    Err(call.family.error(call.pool, "unavailable", "the service is being moved all the time; try again later"))
}

fn attempt<R, F>(call: &Call<'_>, address: &Arc<Address>, read: &mut Option<F>) -> Result<Attempt<R>, HandlerError>
where
    F: FnOnce(&[u8], Body<'_>) -> Result<R, HandlerError>,
{
    if let Some(connection) = address.take() {
        // What was not sent may have been closed since it was checked. Nothing is done twice.
        match attempt_on(connection, call, read)? {
            Attempt::NotThere(ConnectionError::Unsent(_)) => {}
            other => return Ok(other),
        }
    }
    let access = access::get().ok_or_else(|| call.family.no_access(call.pool))?;
    let limit = call.deadline.unwrap_or(access.default_deadline);
    match Connection::open(address, access.default_deadline, limit) {
        Ok(connection) => attempt_on(connection, call, read),
        Err(error) => Ok(Attempt::NotThere(ConnectionError::Unsent(error))),
    }
}

fn attempt_on<R, F>(
    mut connection: Connection,
    call: &Call<'_>,
    read: &mut Option<F>,
) -> Result<Attempt<R>, HandlerError>
where
    F: FnOnce(&[u8], Body<'_>) -> Result<R, HandlerError>,
{
    let moved = match connection.exchange(call) {
        Ok((head, body)) => match reply::moved(head) {
            Some(moved) => moved,
            None => {
                let read = read.take().expect("a call is answered once");
                let outcome = read(head, body);
                return Ok(Attempt::Answered(connection, outcome));
            }
        },
        Err(error) if error.is_not_made() => return Ok(Attempt::NotThere(error)),
        Err(error) => return Err(call.family.disconnected(call.pool, error)),
    };
    Ok(Attempt::Moved(connection, moved))
}

/// What is left of a call's time.
fn remaining(call: &Call<'_>, began: Instant) -> Result<Option<Duration>, HandlerError> {
    let limit = call.deadline.or_else(|| access::get().map(|access| access.default_deadline));
    match limit.map(|limit| limit.checked_sub(began.elapsed())) {
        Some(None) => Err(call.family.error(call.pool, "deadline", "its time was over before it was made")),
        // In whole milliseconds, of which there is at least one.
        Some(Some(left)) => Ok(Some(left.max(Duration::from_millis(1)))),
        None => Ok(None),
    }
}

/// Remembers the new address of a pool; without one, the actor host is asked.
fn remember(pool: &str, from: &Arc<Address>, Moved { to }: Moved) {
    let Some(to) = to else { return forget(pool, from) };
    let socket = access::beside(&to.socket);
    let mut addresses = lock(&ADDRESSES);
    // Another call may have been told the same, and its connections are there.
    if addresses.get(pool).is_some_and(|known| known.socket == socket) {
        return;
    }
    let mut replaced = Vec::new();
    if addresses.len() >= MAX_ADDRESSES {
        replaced.extend(addresses.drain().map(|(_, address)| address));
    }
    replaced.extend(addresses.insert(pool.to_owned(), Address::new(socket, to.token)));
    drop(addresses);
    for address in replaced {
        address.forget();
    }
}

/// Forgets the address of a pool, unless it is another one by now.
fn forget(pool: &str, address: &Arc<Address>) {
    let mut addresses = lock(&ADDRESSES);
    if addresses.get(pool).is_some_and(|known| Arc::ptr_eq(known, address)) {
        addresses.remove(pool);
        drop(addresses);
        address.forget();
    }
}

/// Keeps a connection for the next call.
pub fn release(connection: Connection) {
    let address = Arc::clone(&connection.address);
    let surplus = lock(&address.idle).put(connection);
    // Closed without holding the lock.
    drop(surplus);
    // If no thread can be started now, the next connection to be released tries again.
    if !HAS_CLOSER.swap(true, Ordering::SeqCst) && runtime::spawn_small("idle", close_unneeded).is_err() {
        HAS_CLOSER.store(false, Ordering::SeqCst);
    }
}

/// Closes connections that are not needed, for as long as any are idle.
fn close_unneeded() {
    loop {
        thread::sleep(CHECK_INTERVAL);
        let addresses: Vec<_> = ACTOR_HOST.iter().cloned().chain(lock(&ADDRESSES).values().cloned()).collect();
        let mut is_done = true;
        for address in addresses {
            let mut idle = lock(&address.idle);
            let unneeded = idle.unneeded();
            is_done &= idle.items.is_empty();
            // Closed without holding the lock.
            drop(idle);
            drop(unneeded);
        }
        if !is_done {
            continue;
        }
        HAS_CLOSER.store(false, Ordering::SeqCst);
        // One may have been released since it was looked at, which took this thread to go on.
        let none_left = ACTOR_HOST.iter().all(|address| lock(&address.idle).items.is_empty())
            && lock(&ADDRESSES).values().all(|address| lock(&address.idle).items.is_empty());
        if none_left || HAS_CLOSER.swap(true, Ordering::SeqCst) {
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

    #[test]
    fn nothing_is_kept_once_it_is_closed() {
        let mut idle = Idle::new();
        idle.put(1);
        assert!(idle.unneeded().is_empty());
        assert_eq!(idle.close(), [1]);
        assert_eq!((idle.put(2), idle.take()), (Some(2), None));
        assert!(idle.unneeded().is_empty());
    }
}
