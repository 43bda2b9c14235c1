//! The Unix socket on which handlers call the service.
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Notify;
use tokio::task::{spawn_local, yield_now};
use tokio::time::{sleep, timeout};

use super::connections::{ConnectionLimits, Maximums};
use super::host::Host;
use super::line_limiter::LineLimiter;
use super::session::Session;
use super::session_commands::SessionCommands;
use crate::backend::Backend;
use crate::log::Log;

/// How long a call can be on its way.
const GOODBYE: Duration = Duration::from_millis(100);
/// How long handlers may take to read their last answers.
const FLUSH_LIMIT: Duration = Duration::from_secs(1);
/// The time between two looks for connections of handlers that have ended.
const EXPIRE_EVERY: Duration = Duration::from_secs(2);
/// The time until connections are accepted again when there is no descriptor for one more.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Listens on a socket that only one process may serve. Removes the stale socket of a killed process.
pub async fn listen(path: &str) -> io::Result<UnixListener> {
    if UnixStream::connect(path).await.is_ok() {
        let advice = "one DATA_DIR has one actor host. End the other first.";
        return Err(io::Error::other(format!("Another actor host serves {path}: {advice}")));
    }
    remove(path)?;
    let listener = UnixListener::bind(path)?;
    // Handlers in a sandbox run as other users; they are authorised by their token.
    fs::set_permissions(path, Permissions::from_mode(0o666))?;
    Ok(listener)
}

fn remove(path: &str) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// What the connections of handlers share.
pub struct Server<B: Backend> {
    pub host: Rc<Host<B>>,
    pub connections: ConnectionLimits,
    path: String,
    /// Commands to the sessions, by their numbers.
    sessions: RefCell<HashMap<u64, Rc<SessionCommands>>>,
    last_id: Cell<u64>,
    /// Notified when the last of them is closed.
    all_closed: Notify,
    /// Whether clients are asked to leave.
    pub is_retiring: Cell<bool>,
    warnings: Rc<LineLimiter>,
}

impl<B: Backend> Server<B> {
    /// Serves handlers until they have left.
    pub fn start(listener: UnixListener, path: String, host: Rc<Host<B>>, maximums: Maximums, log: Log) -> Rc<Self> {
        let server = Rc::new(Self {
            host,
            connections: ConnectionLimits::new(maximums),
            path,
            sessions: RefCell::default(),
            last_id: Cell::default(),
            all_closed: Notify::new(),
            is_retiring: Cell::default(),
            warnings: LineLimiter::new(log),
        });
        spawn_local(server.clone().accept(listener));
        spawn_local(server.clone().expire());
        server
    }

    /// Logs what a handler does, unless there is too much of it.
    pub fn warn(&self, details: Value, message: &str) {
        self.warnings.warn(details, message);
    }

    /// Asks handlers to leave; resolves when they have closed all connections.
    pub async fn retire(&self) {
        self.retire_sessions();
        loop {
            self.closed().await;
            // Connections that wait to be accepted come in the next turn.
            yield_now().await;
            yield_now().await;
            if self.sessions.borrow().is_empty() {
                return;
            }
        }
    }

    /// Closes the remaining connections; resolves when answers have been sent, or after a while.
    pub async fn close_connections(&self) {
        self.retire_sessions();
        // Calls that are on their way have to be answered.
        if !self.sessions.borrow().is_empty() {
            sleep(GOODBYE).await;
        }
        for session in self.sessions.borrow().values() {
            session.close();
        }
        self.warnings.report_dropped();
        // Those who do not read them miss them.
        let _ = timeout(FLUSH_LIMIT, self.closed()).await;
    }

    /// Forgets a connection. It is called when that is closed.
    pub fn forget(&self, id: u64) {
        let mut sessions = self.sessions.borrow_mut();
        sessions.remove(&id);
        if sessions.is_empty() {
            self.all_closed.notify_waiters();
        }
    }

    fn retire_sessions(&self) {
        // Where it cannot be removed, handlers find nobody there when the process has ended.
        let _ = remove(&self.path);
        self.is_retiring.set(true);
        for session in self.sessions.borrow().values() {
            session.retire();
        }
    }

    async fn closed(&self) {
        while !self.sessions.borrow().is_empty() {
            self.all_closed.notified().await;
        }
    }

    /// Closes connections of handlers that have ended: others than the process itself may have used its token.
    async fn expire(self: Rc<Self>) {
        loop {
            sleep(EXPIRE_EVERY).await;
            if self.sessions.borrow().is_empty() {
                continue;
            }
            match self.host.tokens.valid_nonces() {
                Ok(valid) => {
                    for session in self.sessions.borrow().values() {
                        if session.nonce.get().is_some_and(|nonce| !valid.contains(OsStr::new(&**nonce))) {
                            session.drop_connection();
                        }
                    }
                }
                Err(error) => {
                    let details = json!({ "problem": error.to_string() });
                    self.warn(details, "connections of ended handlers could not be looked for");
                }
            }
        }
    }

    async fn accept(self: Rc<Self>, listener: UnixListener) {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let id = self.last_id.get() + 1;
            self.last_id.set(id);
            let commands = Rc::new(SessionCommands::default());
            self.sessions.borrow_mut().insert(id, commands.clone());
            self.connections.enter(id, commands.clone());
            spawn_local(Session::new(id, stream, commands, self.clone()).run());
        }
    }
}
