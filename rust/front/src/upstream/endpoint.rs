//! An endpoint in a thread: sends its requests to the handlers that serve it, across restarts and replacements.
use std::cell::{Cell, OnceCell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::Notify;

use super::connection::{Events, HandlerConnection};
use super::outgoing::{self, RequestBody};
use super::pool::HandlerPool;
use super::reply::{Answer, AnswerBody, Outcome, Reply, Streamed};
use super::shared::{Active, SharedEndpoint};
use super::socket::is_out_of_descriptors;
use super::upload::Upload;
use crate::endpoint_state::{EndpointState, Serving, Takes, Target};
use crate::figures::Figures;
use crate::intervals::Interval;
use crate::memory::{MemoryBudget, Share};
use crate::messages::FromFront;
use crate::supervisor::Supervisor;

/// How long requests wait for a handler that is being started. For one that was asleep they wait as long as they may:
/// it is started because of them, after others perhaps.
const WAIT: Duration = Duration::from_secs(5);
/// A front that is out of file descriptors tries to connect again after this.
const DESCRIPTORS_RETRY: Duration = Duration::from_millis(100);

/// Why a request has no answer of a handler.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// The handler exited, or violated the protocol.
    Aborted(Rc<str>),
    Expired,
    /// No handler is running.
    Unavailable,
    /// The endpoint has reached its limit of concurrent requests.
    Overloaded,
    /// The request fits into no frame.
    TooLarge(String),
    /// There is no memory for the answer.
    OutOfMemory,
    /// The handler takes WebSockets only, and this is none.
    NoSocket,
}

/// What a handler answers with.
pub enum Answered<'a> {
    Whole(Answer),
    /// The request counts as active until the end of the stream.
    Streamed(Streamed, Active<'a>),
}

/// Of 2^32.
const GOLDEN_RATIO: u32 = 0x9E37_79B9;

/// A handler that serves, and its share of the requests.
struct Upstream {
    weight: u32,
    version: u32,
    connection: Rc<HandlerConnection>,
    takes: Takes,
}

/// A handler for one request.
struct Picked {
    version: u32,
    takes: Takes,
    connection: Rc<HandlerConnection>,
}

impl Upstream {
    fn picked(&self) -> Picked {
        Picked { version: self.version, takes: self.takes, connection: self.connection.clone() }
    }
}

/// Small, because there may be very many that nobody calls.
pub struct Endpoint {
    pub shared: Arc<SharedEndpoint>,
    state: RefCell<Arc<EndpointState>>,
    traffic: OnceCell<Box<Traffic>>,
    context: Rc<Context>,
}

/// What all endpoints of a thread use.
pub struct Context {
    pub pool: Rc<HandlerPool>,
    pub supervisor: Supervisor,
}

/// What an endpoint has from its first handler, or its first request, on.
#[derive(Default)]
struct Traffic {
    upstreams: RefCell<Vec<Upstream>>,
    is_removed: Cell<bool>,
    /// For the shares of several handlers.
    turn: Cell<u32>,
    /// Counts states. Connecting takes a while, in which a newer one may come.
    received: Cell<u64>,
    settled: Cell<u64>,
    has_settled: Notify,
    /// The handlers, or whether there are any, have changed.
    changed: Notify,
    figures: RefCell<Option<Box<Figures>>>,
    interval: Interval,
}

impl Endpoint {
    pub fn new(shared: Arc<SharedEndpoint>, state: Arc<EndpointState>, context: Rc<Context>) -> Rc<Self> {
        Rc::new(Self { shared, state: RefCell::new(state), traffic: OnceCell::new(), context })
    }

    fn traffic(&self) -> &Traffic {
        self.traffic.get_or_init(Box::default)
    }

    pub fn interval(&self) -> &Interval {
        &self.traffic().interval
    }

    pub fn state(&self) -> Arc<EndpointState> {
        self.state.borrow().clone()
    }

    /// Counts a finished request.
    pub fn finished(&self, status: u16, duration: Duration) {
        self.traffic().figures.borrow_mut().get_or_insert_default().finished(status, duration.as_secs_f64());
    }

    pub fn figures(&self) -> Option<Figures> {
        self.traffic.get()?.figures.borrow().as_deref().cloned()
    }

    /// Memory for the body of a request.
    pub fn share(&self, memory: &Arc<MemoryBudget>) -> Share {
        self.shared.share(memory)
    }

    /// Further memory for an answer.
    pub fn answers_share(&self, memory: &Arc<MemoryBudget>) -> Share {
        Share::new(memory.clone(), Some(self.shared.answers(memory).clone()))
    }

    /// Memory for an answer of so many bytes; `None` when there is none.
    pub fn share_for(&self, body: &mut AnswerBody, bytes: usize, memory: &Arc<MemoryBudget>) -> Option<Share> {
        let mut share = body.share.take().unwrap_or_else(|| self.answers_share(memory));
        share.set(bytes).then_some(share)
    }

    /// Sends a request, and waits for its answer. It waits for a handler that is being started, and goes to another one
    /// if its handler ends before it was sent. `place` is that of a caller that keeps its handler, see `sticky.rs`.
    /// `socket_head`: of a request that asks for a WebSocket, for handlers that take those.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn request(
        &self,
        head: &[u8],
        body: &Arc<RequestBody>,
        reply: &Rc<Reply>,
        deadline: Instant,
        place: Option<u32>,
        socket_head: Option<&[u8]>,
    ) -> Result<Answered<'_>, Failure> {
        reply.version.set(None);
        if let Some(problem) = outgoing::problem(head, &body.bytes) {
            return Err(Failure::TooLarge(problem));
        }
        let limit = self.state.borrow().limits.concurrent_requests;
        let Some(active) = self.shared.begin(limit) else { return Err(Failure::Overloaded) };
        self.interval().began(active.count());
        loop {
            let Picked { version, takes, connection } = match self.pick(place) {
                Some(picked) => picked,
                None => self.wait_for_handler(deadline, place).await?,
            };
            reply.version.set(Some(version));
            let is_sent = match (takes, socket_head) {
                (Takes::Websockets, None) => return Err(Failure::NoSocket),
                (Takes::Websockets, Some(head)) => connection.open_socket(head, reply, deadline),
                _ => connection.send(head, body, reply, deadline),
            };
            if !is_sent {
                return Err(Failure::Unavailable);
            }
            drop(connection);
            match reply.outcome().await {
                Outcome::Answered(answer) => return Ok(Answered::Whole(answer)),
                Outcome::Streamed(streamed) => return Ok(Answered::Streamed(streamed, active)),
                Outcome::Aborted(reason) => return Err(Failure::Aborted(reason)),
                Outcome::TooLarge => return Err(Failure::OutOfMemory),
                Outcome::Expired => return Err(Failure::Expired),
                Outcome::Unsent => {}
            }
        }
    }

    /// Sends a request whose body follows, once there is a handler. `None` if one of those that serve takes whole
    /// requests only: it must not depend on chance what a client may send.
    ///
    /// # Errors
    /// Why it cannot be sent.
    pub async fn open(
        &self,
        head: &[u8],
        reply: &Rc<Reply>,
        deadline: Instant,
        place: Option<u32>,
        memory: &Arc<MemoryBudget>,
    ) -> Result<Option<(Upload, Active<'_>)>, Failure> {
        reply.version.set(None);
        if let Some(problem) = outgoing::problem(head, b"") {
            return Err(Failure::TooLarge(problem));
        }
        let limit = self.state.borrow().limits.concurrent_requests;
        let Some(active) = self.shared.begin(limit) else { return Err(Failure::Overloaded) };
        let Picked { version, takes, connection } = match self.pick(place) {
            Some(picked) => picked,
            None => self.wait_for_handler(deadline, place).await?,
        };
        if self.traffic().upstreams.borrow().iter().any(|upstream| upstream.takes == Takes::Whole) {
            return Ok(None);
        }
        if takes == Takes::Websockets {
            return Err(Failure::NoSocket);
        }
        self.interval().began(active.count());
        reply.version.set(Some(version));
        let upload = connection.open_request(head, reply, self.share(memory)).ok_or(Failure::Unavailable)?;
        Ok(Some((upload, active)))
    }

    async fn wait_for_handler(&self, deadline: Instant, place: Option<u32>) -> Result<Picked, Failure> {
        let mut until = deadline.min(Instant::now() + WAIT);
        let Some(_waiting) = self.shared.wait() else { return Err(Failure::Unavailable) };
        loop {
            let changed = self.traffic().changed.notified();
            if let Some(picked) = self.pick(place) {
                return Ok(picked);
            }
            match self.state.borrow().serving {
                _ if self.traffic().is_removed.get() => return Err(Failure::Unavailable),
                Serving::None => return Err(Failure::Unavailable),
                Serving::Asleep { .. } => {
                    until = deadline;
                    self.wake();
                }
                Serving::Starting | Serving::Running { .. } => {}
            }
            if tokio::time::timeout_at(until.into(), changed).await.is_err() {
                return Err(Failure::Unavailable);
            }
        }
    }

    /// Has the supervisor start the handlers, unless it was told already.
    fn wake(&self) {
        if self.shared.is_first_to_wake() {
            self.context.supervisor.send(FromFront::Wake { endpoint_id: self.shared.id.to_string() });
        }
    }

    /// The handler for the next request, as their weights say. Shares hold for few requests, too: turns are spread
    /// evenly, by the golden ratio (the additive recurrence of Knuth, TAOCP 3, 6.4).
    fn pick(&self, place: Option<u32>) -> Option<Picked> {
        let upstreams = self.traffic().upstreams.borrow();
        if let [only] = &upstreams[..] {
            return only.connection.is_open().then(|| only.picked());
        }
        let open = || upstreams.iter().filter(|upstream| upstream.connection.is_open());
        let total: u32 = open().map(|upstream| upstream.weight).sum();
        let place = place.unwrap_or_else(|| {
            self.traffic().turn.set(self.traffic().turn.get().wrapping_add(GOLDEN_RATIO));
            self.traffic().turn.get()
        });
        let mut at = ((u64::from(place) * u64::from(total)) >> u32::BITS) as u32;
        for upstream in open() {
            match at.checked_sub(upstream.weight) {
                Some(rest) => at = rest,
                None => return Some(upstream.picked()),
            }
        }
        None
    }

    /// Takes a new state. The future resolves when requests go where it says, or where a newer one does; there is none
    /// when they do at once.
    pub fn set_state(self: &Rc<Self>, state: Arc<EndpointState>) -> Option<impl Future<Output = ()> + use<>> {
        let has_address_changed = self.state.borrow().address != state.address;
        if let Some(traffic) = self.traffic.get().filter(|_| has_address_changed) {
            *traffic.figures.borrow_mut() = None;
        }
        *self.state.borrow_mut() = state.clone();
        if self.traffic.get().is_none() && !matches!(state.serving, Serving::Running { .. }) {
            return None;
        }
        let number = self.traffic().received.get() + 1;
        self.traffic().received.set(number);
        match &state.serving {
            Serving::Running { targets, .. } if !self.serves(targets) => {
                let endpoint = self.clone();
                Some(async move { endpoint.connect(number, state).await })
            }
            Serving::Running { targets, .. } => {
                for (upstream, target) in self.traffic().upstreams.borrow_mut().iter_mut().zip(targets) {
                    upstream.weight = target.weight;
                }
                self.settle(number);
                None
            }
            Serving::None | Serving::Starting | Serving::Asleep { .. } => {
                self.replace(Vec::new());
                self.settle(number);
                None
            }
        }
    }

    /// Nothing serves it any more. Requests in flight are answered.
    pub fn close(&self) {
        let traffic = self.traffic();
        traffic.is_removed.set(true);
        traffic.received.set(traffic.received.get() + 1);
        self.replace(Vec::new());
        self.settle(traffic.received.get());
    }

    /// Whether requests go to these handlers already.
    fn serves(&self, targets: &[Target]) -> bool {
        let upstreams = self.traffic().upstreams.borrow();
        let is_same = |(upstream, target): (&Upstream, &Target)| {
            upstream.connection.instance_id == target.instance.id && upstream.connection.is_open()
        };
        upstreams.len() == targets.len() && upstreams.iter().zip(targets).all(is_same)
    }

    async fn connect(self: Rc<Self>, number: u64, state: Arc<EndpointState>) {
        let Serving::Running { targets, .. } = &state.serving else { return };
        let mut upstreams = Vec::with_capacity(targets.len());
        for Target { weight, version, instance } in targets {
            let connection = match self.open_connection(instance.id) {
                Some(connection) => Ok(connection),
                None => self.connect_to(number, instance).await,
            };
            match connection {
                Ok(connection) => {
                    upstreams.push(Upstream { weight: *weight, version: *version, connection, takes: instance.takes })
                }
                // It has just ended. Those before it are being replaced all the same: requests wait for the next.
                Err(error) if self.traffic().received.get() == number => {
                    self.context.supervisor.send(FromFront::ConnectionLost {
                        endpoint_id: self.shared.id.to_string(),
                        instance_id: instance.id,
                        reason: format!("it cannot be reached: {error}"),
                    })
                }
                Err(_) => {}
            }
        }
        if self.traffic().received.get() == number {
            self.replace(upstreams);
            self.settle(number);
            return;
        }
        self.retire(upstreams);
        loop {
            let settled = self.traffic().has_settled.notified();
            if self.traffic().settled.get() >= number {
                return;
            }
            settled.await;
        }
    }

    async fn connect_to(
        self: &Rc<Self>,
        number: u64,
        instance: &crate::endpoint_state::Instance,
    ) -> io::Result<Rc<HandlerConnection>> {
        loop {
            let answers = self.shared.answers(self.context.pool.memory()).clone();
            match self.context.pool.connect(instance.id, &instance.socket, answers, self.clone()).await {
                // The failure is this front's own, not the handler's. What serves now stays.
                Err(error) if is_out_of_descriptors(&error) && self.traffic().received.get() == number => {
                    let text = "out of file descriptors for connections to handlers; trying again. \
                                Raise the limit of open files (ulimit -n)";
                    self.context.supervisor.warn_rarely(json!({ "error": error.to_string() }), text);
                    tokio::time::sleep(DESCRIPTORS_RETRY).await;
                }
                result => return result,
            }
        }
    }

    fn open_connection(&self, instance_id: u64) -> Option<Rc<HandlerConnection>> {
        let upstreams = self.traffic().upstreams.borrow();
        let found = upstreams.iter().find(|one| one.connection.instance_id == instance_id)?;
        found.connection.is_open().then(|| found.connection.clone())
    }

    /// Sends requests to these handlers from now on.
    fn replace(&self, upstreams: Vec<Upstream>) {
        let old = self.traffic().upstreams.replace(upstreams);
        self.retire(old);
        self.traffic().changed.notify_waiters();
    }

    /// Retires the connections that do not serve.
    fn retire(&self, old: Vec<Upstream>) {
        let current = self.traffic().upstreams.borrow();
        for Upstream { connection, .. } in old {
            if !current.iter().any(|one| Rc::ptr_eq(&one.connection, &connection)) {
                connection.retire();
            }
        }
    }

    fn settle(&self, number: u64) {
        self.traffic().settled.set(number);
        self.traffic().has_settled.notify_waiters();
    }
}

impl Events for Endpoint {
    fn deadline_exceeded(&self, instance_id: u64) {
        let endpoint_id = self.shared.id.to_string();
        self.context.supervisor.send(FromFront::DeadlineExceeded { endpoint_id, instance_id });
    }

    fn connection_lost(&self, instance_id: u64, reason: &str) {
        let endpoint_id = self.shared.id.to_string();
        self.context.supervisor.send(FromFront::ConnectionLost { endpoint_id, instance_id, reason: reason.to_owned() });
    }
}
