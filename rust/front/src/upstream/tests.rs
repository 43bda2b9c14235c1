//! The connection to a handler, with a handler that does as it likes.
use std::cell::RefCell;
use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use edge_wire::{HEADER_BYTES, Kind, header, parse_header};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::{Builder, LocalOptions};

use super::connection::{Events, HandlerConnection};
use super::reply::{Outcome, Reply};
use super::{HandlerPool, RequestBody};
use crate::memory::{MemoryBudget, MemoryShare};

const WHOLE: usize = 1 << 20;
/// Part of an answer that is counted: more than one read takes.
const COUNTED: usize = 70_000;

#[derive(Default)]
pub(super) struct Lost(pub RefCell<Vec<String>>);

impl Events for Lost {
    fn deadline_exceeded(&self, _: u64) {}

    fn connection_lost(&self, _: u64, reason: &str) {
        self.0.borrow_mut().push(reason.to_owned());
    }
}

/// Both ends of a connection, and what its answers may take.
pub(super) struct Ends {
    pub connection: Rc<HandlerConnection>,
    pub handler: UnixStream,
    pool: Rc<HandlerPool>,
    memory: Arc<MemoryBudget>,
    pub lost: Rc<Lost>,
    socket: PathBuf,
}

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.socket);
    }
}

impl Ends {
    pub async fn open() -> Self {
        Self::open_with(WHOLE).await
    }

    /// Opens it with so much memory for answers, in bytes, of which an endpoint may take half.
    pub async fn open_with(bytes: usize) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("front-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let socket = std::env::temp_dir().join(name);
        let listener = UnixListener::bind(&socket).unwrap();
        let memory = Arc::new(MemoryBudget::new(bytes));
        let lost = Rc::new(Lost::default());
        let pool = HandlerPool::new(memory.clone());
        let connection = pool.connect(1, &socket, Arc::new(memory.half()), lost.clone()).await.unwrap();
        let (handler, _) = listener.accept().await.unwrap();
        Self { connection, handler, pool, memory, lost, socket }
    }

    /// Sends a request without a body. Returns its number, as the handler sees it.
    pub async fn request(&mut self, reply: &Rc<Reply>, deadline: Instant) -> u32 {
        let body = Arc::new(RequestBody::new(Vec::new(), None));
        assert!(self.connection.send(b"{}", &body, reply, deadline));
        let mut bytes = [0; HEADER_BYTES + 2];
        self.handler.read_exact(&mut bytes).await.unwrap();
        parse_header(&bytes).unwrap().unwrap().number
    }

    /// Begins an answer with so much of its body.
    pub async fn begin_answer(&mut self, number: u32, body: usize, sent: usize) {
        let frame = [&header(Kind::Response, number, 2, body)[..], b"{}", &vec![7; sent]].concat();
        self.handler.write_all(&frame).await.unwrap();
    }

    pub fn is_free(&self) -> bool {
        MemoryShare::new(self.memory.clone(), None).set(WHOLE)
    }
}

pub(super) fn run(test: impl Future<Output = ()>) {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).unwrap();
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(30), test).await.expect("it ends") });
}

pub(super) async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

pub(super) async fn reply() -> Rc<Reply> {
    Reply::new(poll_fn(|cx| Poll::Ready(cx.waker().clone())).await)
}

pub(super) fn later() -> Instant {
    Instant::now() + Duration::from_secs(600)
}

#[test]
fn part_of_an_answer_has_no_memory_once_its_request_has_expired() {
    run(async {
        let mut ends = Ends::open().await;
        let reply = reply().await;
        let number = ends.request(&reply, later()).await;
        ends.begin_answer(number, WHOLE / 4, COUNTED).await;
        until(|| !ends.is_free()).await;
        ends.connection.expire(later(), None);
        assert!(matches!(reply.outcome().await, Outcome::Expired));
        until(|| ends.is_free()).await;
        // The rest of it is no violation.
        ends.handler.write_all(&vec![7; WHOLE / 4 - COUNTED]).await.unwrap();
        let number = ends.request(&reply, later()).await;
        ends.begin_answer(number, 1, 1).await;
        reply.outcome().await;
        assert!(ends.connection.is_open());
    });
}

#[test]
fn an_instance_with_a_request_is_not_drained_before_its_connection_is_retired_or_after() {
    run(async {
        let mut ends = Ends::open().await;
        let reply = reply().await;
        let number = ends.request(&reply, later()).await;
        let pool = ends.pool.clone();
        let mut drained = pin!(pool.drained(1));
        assert!(poll_fn(|cx| Poll::Ready(drained.as_mut().poll(cx))).await.is_pending());
        ends.connection.retire();
        assert!(poll_fn(|cx| Poll::Ready(drained.as_mut().poll(cx))).await.is_pending());
        let head = br#"{"status":200,"headers":[]}"#;
        let frame = [&header(Kind::Response, number, head.len(), 0)[..], head].concat();
        ends.handler.write_all(&frame).await.unwrap();
        drained.await;
        assert!(matches!(reply.outcome().await, Outcome::Answered(_)));
    });
}

#[test]
fn part_of_an_answer_to_no_request_gets_no_memory() {
    run(async {
        let mut ends = Ends::open().await;
        ends.begin_answer(0, WHOLE / 4, COUNTED).await;
        ends.connection.closed().await;
        assert!(ends.lost.0.borrow()[0].contains("a response to no request"));
        assert!(ends.is_free());
    });
}

#[test]
fn an_answer_beyond_the_part_of_its_endpoint_is_dropped() {
    run(async {
        let mut ends = Ends::open().await;
        let reply = reply().await;
        let number = ends.request(&reply, later()).await;
        ends.connection.retire();
        ends.begin_answer(number, WHOLE / 2 + 1, COUNTED).await;
        assert!(matches!(reply.outcome().await, Outcome::TooLarge));
        // Nothing else is in flight.
        ends.connection.closed().await;
        until(|| ends.is_free()).await;
    });
}

#[test]
fn bodies_that_cannot_be_written_have_memory_until_the_connection_closes() {
    run(async {
        let ends = Ends::open().await;
        for _ in 0..2 {
            let mut share = MemoryShare::new(ends.memory.clone(), None);
            assert!(share.set(WHOLE / 2));
            let body = Arc::new(RequestBody::new(vec![7; WHOLE / 2], Some(share)));
            assert!(ends.connection.send(b"{}", &body, &reply().await, later()));
        }
        ends.connection.expire(later(), None);
        tokio::task::yield_now().await;
        assert!(!MemoryShare::new(ends.memory.clone(), None).set(1));
        ends.connection.retire();
        ends.connection.closed().await;
        assert!(ends.is_free());
    });
}

#[test]
fn requests_of_which_nothing_could_be_written_are_unsent() {
    run(async {
        let mut ends = Ends::open().await;
        let reply = reply().await;
        ends.request(&reply, later()).await;
        let (_, other) = UnixStream::pair().unwrap();
        // The end of the connection has not been seen when the next request is written.
        drop(std::mem::replace(&mut ends.handler, other));
        let body = Arc::new(RequestBody::new(Vec::new(), None));
        let next = self::reply().await;
        assert!(ends.connection.send(b"{}", &body, &next, later()));
        assert!(matches!(next.outcome().await, Outcome::Unsent));
        assert!(matches!(reply.outcome().await, Outcome::Aborted(_)));
    });
}
