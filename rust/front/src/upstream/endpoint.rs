//! An endpoint in a thread: sends its requests to the handlers that serve it, across restarts and replacements.
mod targets;

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::connection::{Events, HandlerConnection};
use super::interval::Interval;
use super::outgoing::{self, RequestBody};
use super::pool::HandlerPool;
use super::reply::{Answer, AnswerBody, Outcome, Reply, StreamedAnswer};
use super::shared::{ActiveRequest, SharedEndpoint};
use super::upload::Upload;
use crate::endpoint_state::EndpointState;
use crate::figures::Figures;
use crate::memory::{MemoryBudget, MemoryShare};
use crate::messages::{FromFront, Serving, Takes};
use crate::supervisor::Supervisor;

/// How long requests wait for a handler that is being started. For one that was asleep they wait as long as they may:
/// it is started because of them, after others perhaps.
const WAIT: Duration = Duration::from_secs(5);

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
pub enum HandlerAnswer<'a> {
    Whole(Answer),
    /// The request counts as active until the end of the stream.
    Streamed(StreamedAnswer, ActiveRequest<'a>),
}

/// 2^32 divided by the golden ratio: it spreads turns evenly.
const GOLDEN_RATIO: u32 = 0x9E37_79B9;

/// A handler that serves, and its share of the requests.
struct Upstream {
    weight: u32,
    version: u32,
    connection: Rc<HandlerConnection>,
    takes: Takes,
}

/// A handler for one request.
struct PickedHandler {
    version: u32,
    takes: Takes,
    connection: Rc<HandlerConnection>,
}

impl Upstream {
    fn picked(&self) -> PickedHandler {
        PickedHandler { version: self.version, takes: self.takes, connection: self.connection.clone() }
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
    /// The turn of the last request, by which several handlers get their shares.
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
    pub fn count_finished(&self, status: u16, duration: Duration) {
        self.traffic().figures.borrow_mut().get_or_insert_default().count_finished(status, duration.as_secs_f64());
    }

    pub fn figures(&self) -> Option<Figures> {
        self.traffic.get()?.figures.borrow().as_deref().cloned()
    }

    /// Memory for the body of a request.
    pub fn request_memory(&self, memory: &Arc<MemoryBudget>) -> MemoryShare {
        self.shared.request_memory(memory)
    }

    /// Further memory for an answer.
    pub fn answer_memory(&self, memory: &Arc<MemoryBudget>) -> MemoryShare {
        MemoryShare::new(memory.clone(), Some(self.shared.answer_budget(memory).clone()))
    }

    /// Memory for an answer of so many bytes; `None` when there is none.
    pub fn memory_for_answer(
        &self,
        body: &mut AnswerBody,
        bytes: usize,
        memory: &Arc<MemoryBudget>,
    ) -> Option<MemoryShare> {
        let mut share = body.share.take().unwrap_or_else(|| self.answer_memory(memory));
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
    ) -> Result<HandlerAnswer<'_>, Failure> {
        let active = self.begin(head, &body.bytes, reply)?;
        self.interval().request_began(active.count());
        loop {
            let PickedHandler { version, takes, connection } = self.picked(deadline, place).await?;
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
                Outcome::Answered(answer) => return Ok(HandlerAnswer::Whole(answer)),
                Outcome::Streamed(streamed) => return Ok(HandlerAnswer::Streamed(streamed, active)),
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
    ) -> Result<Option<(Upload, ActiveRequest<'_>)>, Failure> {
        let active = self.begin(head, b"", reply)?;
        let PickedHandler { version, takes, connection } = self.picked(deadline, place).await?;
        if self.traffic().upstreams.borrow().iter().any(|upstream| upstream.takes == Takes::Whole) {
            return Ok(None);
        }
        if takes == Takes::Websockets {
            return Err(Failure::NoSocket);
        }
        self.interval().request_began(active.count());
        reply.version.set(Some(version));
        let upload = connection.open_request(head, reply, self.request_memory(memory)).ok_or(Failure::Unavailable)?;
        Ok(Some((upload, active)))
    }

    /// Counts a request as active.
    fn begin(&self, head: &[u8], body: &[u8], reply: &Reply) -> Result<ActiveRequest<'_>, Failure> {
        reply.version.set(None);
        if let Some(problem) = outgoing::problem(head, body) {
            return Err(Failure::TooLarge(problem));
        }
        let limit = self.state.borrow().limits.concurrent_requests;
        self.shared.begin(limit).ok_or(Failure::Overloaded)
    }

    /// The handler for the next request, which is waited for.
    async fn picked(&self, deadline: Instant, place: Option<u32>) -> Result<PickedHandler, Failure> {
        match self.pick(place) {
            Some(picked) => Ok(picked),
            None => self.wait_for_handler(deadline, place).await,
        }
    }

    async fn wait_for_handler(&self, deadline: Instant, place: Option<u32>) -> Result<PickedHandler, Failure> {
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
    fn pick(&self, place: Option<u32>) -> Option<PickedHandler> {
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
