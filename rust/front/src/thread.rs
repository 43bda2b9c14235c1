//! A thread that serves connections, as these see it: its own routes, its own connections to handlers, and no locks.
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::challenges::Challenges;
use crate::client_ip::TrustedProxies;
use crate::dates::Dates;
use crate::figures::ThreadFigures;
use crate::guard::Guard;
use crate::memory::MemoryBudget;
use crate::messages::Settings;
use crate::request::{RequestIds, TraceIds};
use crate::routes::RouteTable;
use crate::supervisor::Supervisor;
use crate::tls::Tls;
use crate::upstream::endpoint::{Context, Endpoint};
use crate::upstream::{ById, HandlerPool, SharedEndpoint};

/// What all threads share.
#[derive(Clone)]
pub struct SharedByThreads {
    pub settings: Arc<Settings>,
    pub proxies: Arc<TrustedProxies>,
    pub memory: Arc<MemoryBudget>,
    pub handled: Arc<AtomicU64>,
    pub supervisor: Supervisor,
    pub tls: Option<Arc<dyn Tls>>,
    pub challenges: Arc<Challenges>,
}

/// What the connections of a thread use. Its event loop (`event_loop.rs`) has made it.
pub struct Thread {
    pub settings: Arc<Settings>,
    pub proxies: Arc<TrustedProxies>,
    pub memory: Arc<MemoryBudget>,
    pub supervisor: Supervisor,
    pub tls: Option<Arc<dyn Tls>>,
    pub challenges: Arc<Challenges>,
    /// A header line of responses over TLS.
    pub strict_transport: Option<Box<str>>,
    pub routes: RefCell<RouteTable<Rc<Endpoint>>>,
    pub endpoints: RefCell<HashSet<ById<Rc<Endpoint>>>>,
    pub context: Rc<Context>,
    pub guard: Rc<Guard>,
    pub request_ids: RequestIds,
    pub trace_ids: TraceIds,
    pub dates: Dates,
    /// Requests that handlers answered and that are not in the count of all threads yet.
    handled: Cell<u64>,
    /// The count of all threads.
    all_handled: Arc<AtomicU64>,
    /// Requests that belong to no endpoint, by status.
    refused: RefCell<BTreeMap<u16, u64>>,
    /// Requests that policies answered.
    policies: RefCell<BTreeMap<&'static str, u64>>,
    /// Requests that policies let through though something is wrong with them.
    reported: RefCell<BTreeMap<&'static str, u64>>,
    /// Endpoints that have had requests without an entry in the log.
    pub left_out: RefCell<Vec<Arc<SharedEndpoint>>>,
    /// Endpoints that have had requests in the current interval.
    pub counted: RefCell<Vec<Rc<Endpoint>>>,
}

impl Thread {
    pub fn new(shared: SharedByThreads, request_ids: RequestIds, trace_ids: TraceIds) -> Rc<Self> {
        Rc::new(Self {
            guard: Guard::new(&shared.settings),
            context: Rc::new(Context {
                pool: HandlerPool::new(shared.memory.clone()),
                supervisor: shared.supervisor.clone(),
            }),
            strict_transport: strict_transport(&shared.settings),
            settings: shared.settings,
            tls: shared.tls,
            challenges: shared.challenges,
            proxies: shared.proxies,
            memory: shared.memory,
            supervisor: shared.supervisor,
            routes: RefCell::default(),
            endpoints: RefCell::default(),
            request_ids,
            trace_ids,
            dates: Dates::default(),
            handled: Cell::default(),
            all_handled: shared.handled,
            refused: RefCell::default(),
            policies: RefCell::default(),
            reported: RefCell::default(),
            left_out: RefCell::default(),
            counted: RefCell::default(),
        })
    }

    pub fn endpoint(&self, id: &str) -> Option<Rc<Endpoint>> {
        self.endpoints.borrow().get(id).map(|ById(endpoint)| endpoint.clone())
    }

    pub fn endpoints(&self) -> Vec<Rc<Endpoint>> {
        self.endpoints.borrow().iter().map(|ById(endpoint)| endpoint.clone()).collect()
    }

    /// Counts a request that a handler answered.
    pub fn answered_by_handler(&self) {
        self.handled.set(self.handled.get() + 1);
    }

    /// Adds the requests that handlers answered to the count of all threads.
    pub fn sum_handled(&self) {
        self.all_handled.fetch_add(self.handled.take(), Ordering::Relaxed);
    }

    /// Counts a request that belongs to no endpoint.
    pub fn refused(&self, status: u16) {
        *self.refused.borrow_mut().entry(status).or_default() += 1;
    }

    /// Counts a request that a policy answered.
    pub fn answered_by(&self, policy: &'static str) {
        *self.policies.borrow_mut().entry(policy).or_default() += 1;
    }

    /// Counts a request that a policy let through though something is wrong with it.
    pub fn reported_by(&self, policy: &'static str) {
        *self.reported.borrow_mut().entry(policy).or_default() += 1;
    }

    /// What was counted so far.
    pub fn figures(&self) -> ThreadFigures {
        let endpoints = self.endpoints.borrow();
        let with_requests =
            |ById(endpoint): &ById<Rc<Endpoint>>| Some((endpoint.shared.id.clone(), endpoint.figures()?));
        ThreadFigures {
            in_flight: self.context.pool.in_flight(),
            refused: self.refused.borrow().clone(),
            policies: self.policies.borrow().clone(),
            reported: self.reported.borrow().clone(),
            endpoints: endpoints.iter().filter_map(with_requests).collect(),
        }
    }
}

fn strict_transport(settings: &Settings) -> Option<Box<str>> {
    let seconds = settings.strict_transport_seconds;
    (seconds > 0).then(|| format!("Strict-Transport-Security: max-age={seconds}\r\n").into())
}
