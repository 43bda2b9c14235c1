//! Makes calls, on connections that were used before where there are any, and knows where each service is called.
//!
//! A call first goes to the actor host. For a service that has a process of its own, the answer is its address
//! (`moved`), to which this call and later ones for the same pool go. An address is forgotten when nobody listens there
//! any more, or when the service is no longer answered for there: the actor host then knows more.

use super::answer_reader::AnswerBody;
use super::call::Call;
use super::connection::{Address, Connection};
use super::failure::ConnectionError;
use super::reply::{self, RedirectedCall, Reply};
use crate::error::HandlerError;
use crate::runtime::current;
use crate::runtime::records::{self, ServiceCall};
use crate::runtime::threads::{lock, spawn_small};
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// A connection that was not needed for one to two of these is closed: the actor host allows a handler only so many,
/// and a burst of calls leaves more than are needed.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// How often one call may be sent elsewhere. A service that is activated again meanwhile needs two.
const MAX_MOVES: usize = 8;
/// A call that takes as long is recorded.
const SLOW: Duration = Duration::from_millis(500);
/// The actor host gives a deadline to calls that name none. This is assumed when the gateway has not said which.
const ASSUMED_DEADLINE: Duration = Duration::from_secs(60);
/// Pools whose address is remembered.
const MAX_ADDRESSES: usize = 1024;

/// What the gateway gives a handler for its services: where the actor host listens, and a token.
struct Access {
    socket: String,
    token: String,
    /// The deadline the actor host gives to calls that name none.
    default_deadline: Duration,
}

impl Access {
    /// `None` if this process was started without access to services.
    fn get() -> Option<&'static Access> {
        static ACCESS: OnceLock<Option<Access>> = OnceLock::new();
        ACCESS.get_or_init(Access::of_environment).as_ref()
    }

    fn of_environment() -> Option<Access> {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let default_deadline = variable("EDGE_SERVICES_TIMEOUT_MS").and_then(|ms| ms.parse().ok());
        Some(Access {
            socket: variable("EDGE_SERVICES_SOCKET")?,
            token: variable("EDGE_SERVICES_TOKEN")?,
            default_deadline: default_deadline.map_or(ASSUMED_DEADLINE, Duration::from_millis),
        })
    }
}

/// The path of a socket that lies beside that of the actor host.
fn beside(name: &str) -> String {
    let folder = Access::get().and_then(|access| access.socket.rsplit_once('/')).map_or("", |(folder, _)| folder);
    format!("{folder}/{name}")
}

/// The address of the actor host.
static ACTOR_HOST: LazyLock<Option<Arc<Address>>> =
    LazyLock::new(|| Access::get().map(|Access { socket, token, .. }| Address::new(socket.clone(), token.clone())));
/// The addresses of services with a process of their own, by pool.
static ADDRESSES: LazyLock<Mutex<HashMap<String, Arc<Address>>>> = LazyLock::new(Mutex::default);
/// Whether a thread closes connections that are not needed.
static HAS_CLOSER: AtomicBool = AtomicBool::new(false);

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
    Moved(Connection, RedirectedCall),
    /// It was not made: nobody listens there, or does not know this process.
    NotThere(ConnectionError),
}

/// Makes a call, and hands its answer to `read`. The connection is the caller's to keep or to release.
///
/// # Errors
/// Why the call could not be made, or was not answered.
pub fn exchange<R>(
    call: &Call<'_>,
    read: impl FnOnce(&[u8], AnswerBody<'_>) -> Result<R, HandlerError>,
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
    F: FnOnce(&[u8], AnswerBody<'_>) -> Result<R, HandlerError>,
{
    if let Some(connection) = address.take() {
        // What was not sent may have been closed since it was checked. Nothing is done twice.
        match attempt_on(connection, call, read)? {
            Attempt::NotThere(ConnectionError::Unsent(_)) => {}
            other => return Ok(other),
        }
    }
    let access = Access::get().ok_or_else(|| call.family.no_access(call.pool))?;
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
    F: FnOnce(&[u8], AnswerBody<'_>) -> Result<R, HandlerError>,
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
    let limit = call.deadline.or_else(|| Access::get().map(|access| access.default_deadline));
    match limit.map(|limit| limit.checked_sub(began.elapsed())) {
        Some(None) => Err(call.family.error(call.pool, "deadline", "its time was over before it was made")),
        // The deadline is sent in whole milliseconds: there is at least one.
        Some(Some(left)) => Ok(Some(left.max(Duration::from_millis(1)))),
        None => Ok(None),
    }
}

/// Remembers the new address of a pool; without one, the actor host is asked.
fn remember(pool: &str, from: &Arc<Address>, RedirectedCall { to }: RedirectedCall) {
    let Some(to) = to else { return forget(pool, from) };
    let socket = beside(&to.socket);
    let mut addresses = lock(&ADDRESSES);
    // Another call may have got the same address, and its connections are there.
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
    address.keep(connection);
    // If no thread can be started now, the next connection to be released tries again.
    if !HAS_CLOSER.swap(true, Ordering::SeqCst) && spawn_small("idle", close_unneeded).is_err() {
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
            address.close_unneeded();
            is_done &= !address.has_idle();
        }
        if !is_done {
            continue;
        }
        HAS_CLOSER.store(false, Ordering::SeqCst);
        // One may have been released since it was looked at, which took this thread to go on.
        let has_idle = ACTOR_HOST.iter().any(|address| address.has_idle())
            || lock(&ADDRESSES).values().any(|address| address.has_idle());
        if !has_idle || HAS_CLOSER.swap(true, Ordering::SeqCst) {
            return;
        }
    }
}
