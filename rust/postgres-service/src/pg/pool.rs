//! The connections to one server, one per call or transaction. They are opened on demand. A single lost connection is
//! replaced; the server is unavailable when no new one can be opened.
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use edge_service::backend::{self, StatementResult};
use edge_service::error::{CallError, Kind};
use tokio::sync::{Notify, oneshot};
use tokio::task::spawn_local;
use tokio::time::timeout;

use super::connect::{cancel, connect};
use super::connection::{Common, Connection, Signal};
use super::failure::{Failure, closed, closed_here};
use super::lease::Lease;
use super::target::Target;
use super::tls::Encryption;
use crate::sql::Statement;

/// Timeout of a new connection, and of a call that waits for one that is in use.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Timeout of the probe for a new connection.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);
/// Cancel requests at a time; what is not cancelled ends when the server sees that its connection is closed.
const MAX_CANCELS: usize = 16;

pub struct Pool {
    target: Rc<Target>,
    encryption: Encryption,
    common: Rc<Common>,
    /// Called when a connection was lost, and no new one can be opened.
    on_lost: Box<dyn Fn(CallError)>,
    /// The one used last is at the end, and is used next.
    idle: RefCell<Vec<PooledConnection>>,
    /// Connections that are open or being opened, with what ends their statements.
    signals: RefCell<HashMap<u64, Rc<Signal>>>,
    opened: Cell<u64>,
    waiting: RefCell<VecDeque<oneshot::Sender<Turn>>>,
    /// Wakes the task that watches idle connections.
    watcher: RefCell<Waker>,
    probing: RefCell<Option<Rc<Probe>>>,
    is_checking: Cell<bool>,
    canceling: Cell<usize>,
    is_closed: Cell<bool>,
    closing: Notify,
}

/// A place in the pool. The next that waits gets it when it is dropped.
struct Slot {
    pool: Rc<Pool>,
    number: u64,
    signal: Rc<Signal>,
}

/// A connection that has a place in the pool.
pub struct PooledConnection {
    connection: Connection,
    _slot: Slot,
}

/// What one that waits gets.
enum Turn {
    Connection(Box<PooledConnection>),
    Slot(Slot),
}

/// A check whether the server accepts connections, which those share that ask at the same time.
#[derive(Default)]
struct Probe {
    outcome: OnceCell<Result<(), CallError>>,
    ended: Notify,
}

impl Pool {
    fn new(target: Rc<Target>, encryption: Encryption, on_lost: impl Fn(CallError) + 'static) -> Rc<Self> {
        let pool = Rc::new(Self {
            common: Rc::new(Common::new(target.message_limit, target.memory.clone())),
            target,
            encryption,
            on_lost: Box::new(on_lost),
            idle: RefCell::default(),
            signals: RefCell::default(),
            opened: Cell::new(0),
            waiting: RefCell::default(),
            watcher: RefCell::new(Waker::noop().clone()),
            probing: RefCell::default(),
            is_checking: Cell::new(false),
            canceling: Cell::new(0),
            is_closed: Cell::new(false),
            closing: Notify::new(),
        });
        spawn_local(watch(Rc::downgrade(&pool)));
        pool
    }

    /// Opens the first connection.
    pub async fn open(
        target: Rc<Target>,
        encryption: Encryption,
        on_lost: impl Fn(CallError) + 'static,
    ) -> Result<Rc<Self>, Failure> {
        let connecting = timeout(CONNECT_TIMEOUT, connect(&target, &encryption));
        let (stream, session) = connecting.await.unwrap_or(Err(Failure::Closed))?;
        let pool = Self::new(target, encryption, on_lost);
        let slot = pool.slot();
        let connection = Connection::new(stream, session, pool.common.clone(), slot.signal.clone());
        pool.idle.borrow_mut().push(PooledConnection { connection, _slot: slot });
        pool.watcher.borrow().wake_by_ref();
        Ok(pool)
    }

    pub fn common(&self) -> &Common {
        &self.common
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    /// Waits for a free connection, or opens one.
    pub async fn lease(self: &Rc<Self>) -> Result<Lease, CallError> {
        if self.is_closed() {
            return Err(closed_here(&self.target.address));
        }
        let idle = self.idle.borrow_mut().pop();
        if let Some(pooled) = idle {
            return Ok(Lease::new(self.clone(), pooled));
        }
        if self.signals.borrow().len() < self.target.config.pool_size {
            let slot = self.slot();
            return self.connect(slot).await;
        }
        let (sender, receiver) = oneshot::channel();
        self.waiting.borrow_mut().push_back(sender);
        match timeout(CONNECT_TIMEOUT, receiver).await {
            Ok(Ok(Turn::Connection(pooled))) => Ok(Lease::new(self.clone(), *pooled)),
            Ok(Ok(Turn::Slot(slot))) => self.connect(slot).await,
            Ok(Err(_)) => Err(closed_here(&self.target.address)),
            Err(_) => {
                let failure = Failure::Other("timeout exceeded when trying to connect".to_owned());
                Err(failure.into_connect_error(&self.target))
            }
        }
    }

    /// The error of a failed call, whose lease is over. It is not `unavailable` if only the connection of this call was
    /// lost.
    pub async fn call_error(self: &Rc<Self>, failure: Failure) -> CallError {
        let error = failure.into_call_error(&self.target);
        if error.kind != Kind::Unavailable || self.is_closed() {
            return error;
        }
        if let Err(reason) = self.probe().await {
            return reason;
        }
        CallError::new(
            Kind::Backend,
            format!(
                "the connection broke during the call, and whether the call was done is not known: {}",
                error.message
            ),
        )
    }

    /// Takes a connection back whose call has ended.
    pub fn give_back(self: &Rc<Self>, mut pooled: PooledConnection) {
        let PooledConnection { connection, .. } = &mut pooled;
        if connection.is_busy() && !self.is_closed() && !connection.key().is_empty() {
            self.cancel(connection.key().to_vec());
        }
        if !connection.is_clean() || self.is_closed() {
            pooled.connection.terminate();
            return;
        }
        // From now on the task that watches idle connections is woken.
        let waker = self.watcher.borrow().clone();
        if connection.poll_idle(&mut Context::from_waker(&waker)).is_ready() || !connection.is_clean() {
            let is_lost = connection.is_broken();
            drop(pooled);
            if is_lost {
                self.connection_lost();
            }
            return;
        }
        match self.next_waiting() {
            // It waits.
            Some(waiting) => drop(waiting.send(Turn::Connection(Box::new(pooled)))),
            None => self.idle.borrow_mut().push(pooled),
        }
    }

    fn cancel(self: &Rc<Self>, key: Vec<u8>) {
        if self.canceling.get() >= MAX_CANCELS {
            return;
        }
        self.canceling.set(self.canceling.get() + 1);
        let pool = self.clone();
        spawn_local(async move {
            cancel(&pool.target, &key).await;
            pool.canceling.set(pool.canceling.get() - 1);
        });
    }

    fn slot(self: &Rc<Self>) -> Slot {
        let number = self.opened.get();
        self.opened.set(number + 1);
        let signal = Rc::new(Signal::default());
        self.signals.borrow_mut().insert(number, signal.clone());
        Slot { pool: self.clone(), number, signal }
    }

    async fn connect(self: &Rc<Self>, slot: Slot) -> Result<Lease, CallError> {
        let connecting = timeout(CONNECT_TIMEOUT, connect(&self.target, &self.encryption));
        let connected = tokio::select! {
            connected = connecting => connected,
            () = self.closing.notified() => return Err(closed_here(&self.target.address)),
        };
        match connected {
            Err(_) => Err(CallError::new(Kind::Unavailable, closed(&self.target.address))),
            Ok(Err(failure)) => Err(failure.into_connect_error(&self.target)),
            Ok(Ok((stream, session))) => {
                let connection = Connection::new(stream, session, self.common.clone(), slot.signal.clone());
                Ok(Lease::new(self.clone(), PooledConnection { connection, _slot: slot }))
            }
        }
    }

    fn next_waiting(&self) -> Option<oneshot::Sender<Turn>> {
        let mut waiting = self.waiting.borrow_mut();
        while let Some(sender) = waiting.pop_front() {
            if !sender.is_closed() {
                return Some(sender);
            }
        }
        None
    }

    /// Receives what has come on idle connections, and removes those that are lost.
    fn poll_idle(self: &Rc<Self>, cx: &mut Context<'_>) {
        let mut kept = Vec::new();
        let mut is_lost = false;
        for mut pooled in self.idle.take() {
            if pooled.connection.poll_idle(cx).is_pending() && pooled.connection.is_clean() {
                kept.push(pooled);
            } else {
                is_lost |= pooled.connection.is_broken();
            }
        }
        self.idle.replace(kept);
        if is_lost {
            self.connection_lost();
        }
    }

    /// An idle connection was lost, and the pool has removed it.
    fn connection_lost(self: &Rc<Self>) {
        if self.is_closed() || self.is_checking.replace(true) {
            return;
        }
        let pool = self.clone();
        spawn_local(async move {
            let outcome = pool.probe().await;
            pool.is_checking.set(false);
            if let (Err(error), false) = (outcome, pool.is_closed()) {
                (pool.on_lost)(error);
            }
        });
    }

    /// Checks that the server still accepts connections; concurrent checks share one probe.
    async fn probe(self: &Rc<Self>) -> Result<(), CallError> {
        let current = self.probing.borrow().clone();
        let probe = current.unwrap_or_else(|| {
            let probe = Rc::new(Probe::default());
            self.probing.replace(Some(probe.clone()));
            let (pool, started) = (self.clone(), probe.clone());
            spawn_local(async move {
                // Nobody else sets it.
                let _ = started.outcome.set(pool.connect_once().await);
                pool.probing.take();
                started.ended.notify_waiters();
            });
            probe
        });
        loop {
            let ended = probe.ended.notified();
            if let Some(outcome) = probe.outcome.get() {
                return outcome.clone();
            }
            ended.await;
        }
    }

    /// Opens and closes a connection outside of the pool.
    async fn connect_once(&self) -> Result<(), CallError> {
        if self.is_closed() {
            return Err(closed_here(&self.target.address));
        }
        let connecting = timeout(PROBE_TIMEOUT, connect(&self.target, &self.encryption));
        let connected = tokio::select! {
            connected = connecting => connected,
            () = self.closing.notified() => return Err(closed_here(&self.target.address)),
        };
        let late = |_| Err(Failure::Other("timeout expired".to_owned()));
        let (stream, session) =
            connected.unwrap_or_else(late).map_err(|failure| failure.into_connect_error(&self.target))?;
        Connection::new(stream, session, self.common.clone(), Rc::default()).terminate();
        Ok(())
    }
}

impl backend::Connection for Pool {
    type Statement = Statement;

    async fn run(self: &Rc<Self>, statement: Statement, wants_rows: bool) -> Result<StatementResult, CallError> {
        let mut lease = self.lease().await?;
        match lease.run(&statement, wants_rows).await {
            Ok(answer) => Ok(answer),
            Err(failure) => {
                drop(lease);
                Err(self.call_error(failure).await)
            }
        }
    }

    fn close(&self) {
        if self.is_closed.replace(true) {
            return;
        }
        self.closing.notify_waiters();
        self.waiting.take();
        self.watcher.borrow().wake_by_ref();
        for pooled in self.idle.take() {
            pooled.connection.terminate();
        }
        let busy: Vec<_> = self.signals.borrow().values().cloned().collect();
        for signal in busy {
            signal.close();
        }
    }

    /// Resolves at once: what the server makes of it is not waited for.
    async fn closed(&self) {}
}

impl std::ops::Deref for PooledConnection {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl std::ops::DerefMut for PooledConnection {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.pool.signals.borrow_mut().remove(&self.number);
        if self.pool.is_closed() {
            return;
        }
        if let Some(waiting) = self.pool.next_waiting() {
            // It waits.
            drop(waiting.send(Turn::Slot(self.pool.slot())));
        }
    }
}

/// Watches the idle connections of a pool until it is closed.
async fn watch(pool: Weak<Pool>) {
    poll_fn(|cx| match pool.upgrade() {
        Some(pool) if !pool.is_closed() => {
            pool.watcher.replace(cx.waker().clone());
            pool.poll_idle(cx);
            Poll::Pending
        }
        _ => Poll::Ready(()),
    })
    .await;
}
