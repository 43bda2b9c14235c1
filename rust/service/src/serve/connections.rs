//! Limits the connections of handlers: per endpoint, and in total, so that the process keeps file descriptors for its
//! own work. A connection belongs to an endpoint once its token has arrived. The number of connections without a token
//! is limited too; a new one evicts the oldest, because the SDK sends the token at once.
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use super::session_commands::SessionCommands;

/// A handler has two processes while it is replaced.
const PROCESSES: usize = 2;
/// A request has one for one call at a time, and one for an open transaction.
const CONNECTIONS_PER_REQUEST: usize = 2;
/// Connections for threads that handlers start themselves.
const ADDITIONAL_CONNECTIONS: usize = 32;
/// The largest share of all connections that one endpoint gets: a quarter.
const SHARES: usize = 4;
/// Share of the descriptors for handlers; the rest is for the backend.
const SHARE_OF_CONNECTIONS: f64 = 0.8;
const MAX_WITHOUT_TOKEN: usize = 1_024;

/// Maximum numbers of connections.
#[derive(Debug, PartialEq, Eq)]
pub struct Maximums {
    pub per_endpoint: usize,
    pub with_token: usize,
    pub without_token: usize,
}

impl Maximums {
    /// `threads` is the number of concurrent requests of one handler process.
    pub fn of(threads: usize) -> Self {
        Self::within(threads, (file_descriptors() as f64 * SHARE_OF_CONNECTIONS) as usize)
    }

    fn within(threads: usize, all: usize) -> Self {
        let without_token = MAX_WITHOUT_TOKEN.min(all / 2);
        let with_token = all - without_token;
        let needed = PROCESSES * (CONNECTIONS_PER_REQUEST * threads + ADDITIONAL_CONNECTIONS);
        Self { per_endpoint: needed.min(with_token / SHARES).max(1), with_token, without_token }
    }
}

/// The limit on open files of this process.
fn file_descriptors() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes to the place given, which has the right type.
    let is_known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } == 0;
    if is_known { usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX) } else { usize::MAX }
}

pub struct ConnectionLimits {
    maximums: Maximums,
    /// Connections by their numbers, which begin with the oldest.
    without_token: RefCell<BTreeMap<u64, Rc<SessionCommands>>>,
    by_endpoint: RefCell<HashMap<Box<str>, usize>>,
    identified: Cell<usize>,
}

impl ConnectionLimits {
    pub fn new(maximums: Maximums) -> Self {
        Self {
            maximums,
            without_token: RefCell::default(),
            by_endpoint: RefCell::default(),
            identified: Cell::default(),
        }
    }

    /// Adds a new connection, which has not sent its token yet; may evict the oldest of these.
    pub fn enter(&self, id: u64, connection: Rc<SessionCommands>) {
        let mut without_token = self.without_token.borrow_mut();
        without_token.insert(id, connection);
        if without_token.len() > self.maximums.without_token {
            if let Some((_, oldest)) = without_token.pop_first() {
                oldest.drop_connection();
            }
        }
    }

    /// Assigns a connection to the endpoint of its token.
    ///
    /// # Errors
    ///
    /// Why it must be closed.
    pub fn identify(&self, id: u64, endpoint: &str) -> Result<(), String> {
        self.without_token.borrow_mut().remove(&id);
        let mut by_endpoint = self.by_endpoint.borrow_mut();
        let own = by_endpoint.get(endpoint).copied().unwrap_or(0);
        if own >= self.maximums.per_endpoint {
            return Err(format!("its endpoint has {own} connections with the actor host already, as many as it may"));
        }
        if self.identified.get() >= self.maximums.with_token {
            return Err("the actor host has as many connections as it may".to_owned());
        }
        by_endpoint.insert(endpoint.into(), own + 1);
        self.identified.set(self.identified.get() + 1);
        Ok(())
    }

    /// Removes a closed connection; `endpoint` is given when `identify` has accepted it.
    pub fn leave(&self, id: u64, endpoint: Option<&str>) {
        self.without_token.borrow_mut().remove(&id);
        let Some(endpoint) = endpoint else { return };
        self.identified.set(self.identified.get().saturating_sub(1));
        let mut by_endpoint = self.by_endpoint.borrow_mut();
        match by_endpoint.get_mut(endpoint) {
            Some(own) if *own > 1 => *own -= 1,
            _ => {
                by_endpoint.remove(endpoint);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maximums_follow_the_limit_on_open_files() {
        let few = Maximums { per_endpoint: 51, with_token: 205, without_token: 204 };
        assert_eq!(Maximums::within(64, 409), few);
        let many = Maximums { per_endpoint: 320, with_token: 818_176, without_token: 1_024 };
        assert_eq!(Maximums::within(64, 819_200), many);
        assert_eq!(Maximums::within(64, 0), Maximums { per_endpoint: 1, with_token: 0, without_token: 0 });
    }

    #[test]
    fn connections_of_an_endpoint_are_limited() {
        let limits = ConnectionLimits::new(Maximums { per_endpoint: 2, with_token: 3, without_token: 1 });
        assert!(limits.identify(1, "a").is_ok() && limits.identify(2, "a").is_ok());
        assert!(limits.identify(3, "a").unwrap_err().contains("has 2 connections"));
        assert!(limits.identify(4, "b").is_ok());
        assert!(limits.identify(5, "b").unwrap_err().contains("as many connections as it may"));
        limits.leave(1, Some("a"));
        assert!(limits.identify(6, "a").is_ok());
    }
}
