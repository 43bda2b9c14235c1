//! What the threads share of an endpoint.
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use super::entry_limit::EntryLimit;
use crate::memory::{MemoryBudget, MemoryShare};

/// Requests of an endpoint that may wait for a handler.
const MAX_WAITING: u32 = 1_000;

pub struct SharedEndpoint {
    pub id: Arc<str>,
    traffic: OnceLock<Box<SharedTraffic>>,
    /// Requests in a handler or waiting for one.
    active: AtomicU32,
    waiting: AtomicU32,
    /// When the last request ended, or when this was made: milliseconds of `now`.
    used_at: AtomicU64,
    /// The supervisor was told that a request needs a handler, and no new state came since.
    is_waking: AtomicBool,
}

/// What an endpoint has from its first request on: there may be very many that nobody calls.
#[derive(Default)]
struct SharedTraffic {
    /// The memory for bodies of requests, and that for answers: neither waits for the other. Both are made when they
    /// are needed.
    requests: OnceLock<Arc<MemoryBudget>>,
    answers: OnceLock<Arc<MemoryBudget>>,
    entries: EntryLimit,
}

impl SharedEndpoint {
    pub fn new(id: Arc<str>) -> Self {
        Self {
            id,
            traffic: OnceLock::new(),
            active: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            used_at: AtomicU64::new(now()),
            is_waking: AtomicBool::new(false),
        }
    }

    fn traffic(&self) -> &SharedTraffic {
        self.traffic.get_or_init(Box::default)
    }

    /// Its entries in the log.
    pub fn entries(&self) -> &EntryLimit {
        &self.traffic().entries
    }

    /// Requests in a handler or waiting for one.
    pub fn in_flight(&self) -> u32 {
        self.active.load(Ordering::Relaxed)
    }

    /// Counts a request as active; `None` when there are so many already.
    pub fn begin(&self, limit: u32) -> Option<ActiveRequest<'_>> {
        Some(ActiveRequest { permit: Permit::acquire(&self.active, limit)?, used_at: &self.used_at })
    }

    /// Counts a request as waiting for a handler; `None` when too many do.
    pub fn wait(&self) -> Option<Permit<'_>> {
        Permit::acquire(&self.waiting, MAX_WAITING)
    }

    /// How long it has had no request, milliseconds.
    pub fn idle_ms(&self) -> u64 {
        match self.in_flight() {
            0 => now().saturating_sub(self.used_at.load(Ordering::Relaxed)),
            _ => 0,
        }
    }

    /// Whether the supervisor has to be told that a request needs a handler: once for each state.
    pub fn is_first_to_wake(&self) -> bool {
        !self.is_waking.swap(true, Ordering::Relaxed)
    }

    /// A new state has come, which all threads are about to be told of.
    pub fn new_state_comes(&self) {
        self.is_waking.store(false, Ordering::Relaxed);
    }

    /// Memory for the body of a request: an endpoint may use half of it for these, and half for answers.
    pub fn request_memory(&self, memory: &Arc<MemoryBudget>) -> MemoryShare {
        MemoryShare::new(memory.clone(), Some(part(&self.traffic().requests, memory).clone()))
    }

    /// The part of the memory for answers.
    pub fn answer_budget(&self, memory: &MemoryBudget) -> &Arc<MemoryBudget> {
        part(&self.traffic().answers, memory)
    }
}

fn part<'a>(made: &'a OnceLock<Arc<MemoryBudget>>, memory: &MemoryBudget) -> &'a Arc<MemoryBudget> {
    made.get_or_init(|| Arc::new(memory.half()))
}

/// A request in a handler or waiting for one.
pub struct ActiveRequest<'a> {
    permit: Permit<'a>,
    used_at: &'a AtomicU64,
}

impl ActiveRequest<'_> {
    /// How many requests were active when this one began, with this one.
    pub fn count(&self) -> u32 {
        self.permit.count
    }
}

impl Drop for ActiveRequest<'_> {
    /// Notes the time before the request is not counted any more.
    fn drop(&mut self) {
        self.used_at.store(now(), Ordering::Relaxed);
    }
}

/// Milliseconds since the first call.
fn now() -> u64 {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    FIRST.get_or_init(Instant::now).elapsed().as_millis() as u64
}

/// One of a number that has a limit.
pub struct Permit<'a> {
    number: &'a AtomicU32,
    /// What it was when this one was added, with this one.
    count: u32,
}

impl<'a> Permit<'a> {
    /// `None` when there are so many already.
    fn acquire(number: &'a AtomicU32, limit: u32) -> Option<Self> {
        let before = number.fetch_add(1, Ordering::Relaxed);
        if before < limit {
            return Some(Self { number, count: before + 1 });
        }
        number.fetch_sub(1, Ordering::Relaxed);
        None
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.number.fetch_sub(1, Ordering::Relaxed);
    }
}
