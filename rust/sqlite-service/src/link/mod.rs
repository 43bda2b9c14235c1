//! The thread that has the file, and how it is asked. Calls of one turn of the runtime go to it as one batch, with one
//! wake-up, and its answers come back likewise.
mod ticket;
mod worker;

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use edge_service::backend::StatementResult;
use edge_service::error::{CallError, Kind};
use edge_service::memory::Share;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};

use crate::sql::Statement;
pub use ticket::Ticket;
pub use worker::File;
use worker::Worker;

/// How long an aborted statement may run on before the process ends.
const GRACE: Duration = Duration::from_secs(1);
const ENDLESS: &str = "a statement ran for too long and could only be ended together with the connection to the file";
/// How long closing the file may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// The stack of the thread: as large as that of the first thread of a program, for which the limits of SQLite are made.
/// LIKE and GLOB call themselves for each part of a pattern, and need some MiB for the longest one.
const STACK_BYTES: usize = 8 * 1024 * 1024;

/// What the thread is asked to do.
pub enum Work {
    Open,
    /// Answers with the version.
    Test,
    Run {
        statement: Statement,
        wants_rows: bool,
        place: Place,
    },
    Begin,
    Commit,
    /// Rolls back a transaction, which may have ended already.
    Rollback,
}

/// Where a statement runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Outside,
    /// Runs in the open transaction.
    Inside,
    /// Reads the state before the open transaction.
    Beside,
}

struct Request {
    /// The number of the one who waits; none for work that is done in any case.
    number: Option<usize>,
    ticket: Arc<Ticket>,
    work: Work,
}

struct FinishedWork {
    number: usize,
    outcome: Result<StatementResult, CallError>,
    /// Held until the answer is taken.
    _share: Option<Share>,
}

/// What both threads use.
#[derive(Default)]
struct LinkState {
    inbox: Mutex<Inbox>,
    /// Notified when there is something in it.
    has_requests: Condvar,
    answers: Mutex<Vec<FinishedWork>>,
    /// Notified when there are some, and when the thread has ended.
    has_answers: Notify,
}

#[derive(Default)]
struct Inbox {
    requests: Vec<Request>,
    is_closed: bool,
    has_ended: bool,
}

impl LinkState {
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        lock(&self.inbox)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic ends the process.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread, as the runtime sees it.
pub struct Link {
    shared: Arc<LinkState>,
    /// Those who wait for answers, by their number.
    askers: RefCell<Vec<Asker>>,
    /// Numbers that are not in use.
    free: RefCell<Vec<usize>>,
    /// Requests of this turn.
    outbox: RefCell<Vec<Request>>,
    has_outbox: Notify,
    is_closed: Cell<bool>,
    has_ended: Cell<bool>,
    ended: Notify,
}

/// One who waits, or has waited.
enum Asker {
    /// There is none with this number, or it has taken its answer.
    Free,
    Waits {
        ticket: Arc<Ticket>,
        waker: Waker,
    },
    /// It waits no more, but the answer will come.
    Gone,
    Answered(FinishedWork),
}

impl Link {
    /// Starts the thread.
    pub fn start(file: File) -> std::io::Result<Rc<Self>> {
        let shared = Arc::new(LinkState::default());
        let of_worker = shared.clone();
        thread::Builder::new()
            .name("sqlite".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || Worker::new(file, of_worker).work())?;
        let link = Rc::new(Self {
            shared,
            askers: RefCell::default(),
            free: RefCell::default(),
            outbox: RefCell::default(),
            has_outbox: Notify::new(),
            is_closed: Cell::new(false),
            has_ended: Cell::new(false),
            ended: Notify::new(),
        });
        spawn_local(link.clone().send());
        spawn_local(link.clone().receive());
        Ok(link)
    }

    /// Asks for something, after what was asked for before. To drop the future aborts it.
    pub fn ask(&self, work: Work) -> impl Future<Output = Result<StatementResult, CallError>> {
        let pending = (!self.is_closed.get()).then(|| PendingAnswer { link: self, number: self.enter(work) });
        poll_fn(move |context| {
            let Some(pending) = &pending else { return Poll::Ready(Err(closed())) };
            let asker = &mut self.askers.borrow_mut()[pending.number];
            match asker {
                Asker::Waits { waker, .. } if !self.is_closed.get() => {
                    waker.clone_from(context.waker());
                    return Poll::Pending;
                }
                Asker::Answered(_) => {}
                _ => return Poll::Ready(Err(closed())),
            }
            match std::mem::replace(asker, Asker::Free) {
                Asker::Answered(done) => Poll::Ready(done.outcome),
                _ => Poll::Ready(Err(closed())),
            }
        })
    }

    /// Has something done without waiting for it; it cannot be aborted.
    pub fn order(&self, work: Work) {
        self.push(Request { number: None, ticket: Arc::default(), work });
    }

    /// Closes the file after what is running, which is aborted.
    pub fn close(&self) {
        if self.is_closed.replace(true) {
            return;
        }
        self.outbox.borrow_mut().clear();
        self.has_outbox.notify_one();
        for asker in self.askers.borrow().iter() {
            if let Asker::Waits { ticket, waker } = asker {
                ticket.abort();
                waker.wake_by_ref();
            }
        }
        let mut inbox = self.shared.inbox();
        inbox.requests.clear();
        inbox.is_closed = true;
        drop(inbox);
        self.shared.has_requests.notify_one();
    }

    /// Resolves when it is closed, or takes too long for that.
    pub async fn closed(&self) {
        // The file is complete without it.
        let _ = timeout(CLOSE_TIMEOUT, self.ended()).await;
    }

    /// Whether it is being closed.
    pub fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    /// Resolves when the thread has ended.
    pub async fn ended(&self) {
        loop {
            let ended = self.ended.notified();
            if self.has_ended.get() {
                return;
            }
            ended.await;
        }
    }

    fn enter(&self, work: Work) -> usize {
        let ticket = Arc::new(Ticket::default());
        let asker = Asker::Waits { ticket: ticket.clone(), waker: Waker::noop().clone() };
        let mut askers = self.askers.borrow_mut();
        let number = self.free.borrow_mut().pop().unwrap_or(askers.len());
        match askers.get_mut(number) {
            Some(free) => *free = asker,
            None => askers.push(asker),
        }
        self.push(Request { number: Some(number), ticket, work });
        number
    }

    fn push(&self, request: Request) {
        let mut outbox = self.outbox.borrow_mut();
        outbox.push(request);
        if outbox.len() == 1 {
            self.has_outbox.notify_one();
        }
    }

    /// Sends the requests of each turn: this is woken by the first of them, and runs after all that is ready then.
    async fn send(self: Rc<Self>) {
        loop {
            self.has_outbox.notified().await;
            if self.is_closed.get() {
                return;
            }
            let mut outbox = self.outbox.borrow_mut();
            let mut inbox = self.shared.inbox();
            if inbox.requests.is_empty() {
                std::mem::swap(&mut inbox.requests, &mut outbox);
            } else {
                inbox.requests.append(&mut outbox);
            }
            drop(inbox);
            self.shared.has_requests.notify_one();
        }
    }

    async fn receive(self: Rc<Self>) {
        let mut answers = Vec::new();
        loop {
            self.shared.has_answers.notified().await;
            std::mem::swap(&mut *lock(&self.shared.answers), &mut answers);
            for done in answers.drain(..) {
                self.deliver(done);
            }
            if self.shared.inbox().has_ended {
                self.has_ended.set(true);
                self.ended.notify_waiters();
                return;
            }
        }
    }

    fn deliver(&self, done: FinishedWork) {
        let number = done.number;
        let asker = &mut self.askers.borrow_mut()[number];
        match std::mem::replace(asker, Asker::Free) {
            Asker::Waits { waker, .. } => {
                *asker = Asker::Answered(done);
                waker.wake();
            }
            _ => self.free.borrow_mut().push(number),
        }
    }

    /// The one with this number waits no more.
    fn leave(&self, number: usize) {
        let asker = &mut self.askers.borrow_mut()[number];
        match std::mem::replace(asker, Asker::Free) {
            Asker::Waits { ticket, .. } => {
                *asker = Asker::Gone;
                // Otherwise this process is ending.
                if ticket.abort() && Handle::try_current().is_ok() {
                    spawn_local(end_if_endless(ticket));
                }
            }
            _ => self.free.borrow_mut().push(number),
        }
    }
}

/// Ends the process when an aborted statement does not end, as a single function may be.
async fn end_if_endless(ticket: Arc<Ticket>) {
    sleep(GRACE).await;
    if !ticket.is_done() {
        // The actor host shows it.
        eprintln!("Error: {ENDLESS}");
        std::process::exit(1);
    }
}

/// One who waits for an answer.
struct PendingAnswer<'a> {
    link: &'a Link,
    number: usize,
}

impl Drop for PendingAnswer<'_> {
    fn drop(&mut self) {
        self.link.leave(self.number);
    }
}

pub fn closed() -> CallError {
    CallError::new(Kind::Unavailable, "the database was closed")
}
