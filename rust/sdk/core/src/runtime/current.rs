//! The request that a thread works on: its id and its trace, for the log.

use std::cell::RefCell;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// `00-`, 32 digits of the trace, `-`, 16 digits of the parent, `-`, flags.
const TRACEPARENT_LENGTH: usize = 55;

/// A request.
#[derive(Debug)]
pub struct Current {
    request_id: String,
    trace: Option<Trace>,
    /// Whether an error of it is in the log.
    has_error: AtomicBool,
}

/// Where what it does belongs in a trace (W3C Trace Context).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// 32 digits.
    pub trace_id: String,
    /// What the gateway does for the request: 16 digits.
    pub parent_id: String,
    /// Whether the gateway wants to know of every call of a service.
    pub wants_spans: bool,
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Current>>> = const { RefCell::new(None) };
}

impl Current {
    /// One that has just arrived, with its header `traceparent`.
    pub fn new(request_id: &str, traceparent: Option<&str>, wants_spans: bool) -> Arc<Self> {
        let trace = traceparent.and_then(|text| Trace::read(text, wants_spans));
        Arc::new(Self { request_id: request_id.to_owned(), trace, has_error: AtomicBool::new(false) })
    }

    pub fn request_id(&self) -> Option<&str> {
        (!self.request_id.is_empty()).then_some(&self.request_id)
    }

    pub fn trace(&self) -> Option<&Trace> {
        self.trace.as_ref()
    }

    /// Says that an error of it is in the log.
    pub fn set_error(&self) {
        self.has_error.store(true, Relaxed);
    }

    pub fn has_error(&self) -> bool {
        self.has_error.load(Relaxed)
    }
}

impl Trace {
    fn read(text: &str, wants_spans: bool) -> Option<Self> {
        let is_one = text.len() >= TRACEPARENT_LENGTH && text.is_ascii();
        is_one.then(|| Trace { trace_id: text[3..35].to_owned(), parent_id: text[36..52].to_owned(), wants_spans })
    }
}

/// A request that a thread worked on, to work on it elsewhere.
#[derive(Default)]
pub struct CurrentRequest(Option<Arc<Current>>);

impl CurrentRequest {
    /// The one that this thread works on.
    pub fn get() -> Self {
        CurrentRequest(get())
    }

    /// What it is; one without an id outside of a request.
    #[cfg(feature = "async")]
    pub fn current(&self) -> Arc<Current> {
        self.0.clone().unwrap_or_else(|| Current::new("", None, false))
    }

    /// Makes it the one that this thread works on, see [`work_on`].
    pub fn work_on(&self) -> WorkGuard {
        work_on(self.0.clone())
    }
}

/// The request that this thread works on.
pub fn get() -> Option<Arc<Current>> {
    // Nothing in with_borrow's closure can panic; at the end of a thread there may be none.
    CURRENT.try_with(|current| current.try_borrow().ok().and_then(|current| current.clone())).ok().flatten()
}

/// Makes this the request that the thread works on, until the result is dropped, also by a panic: a task may be polled
/// within another.
pub fn work_on(current: Option<Arc<Current>>) -> WorkGuard {
    WorkGuard { before: CURRENT.replace(current) }
}

/// See [`work_on`].
pub struct WorkGuard {
    before: Option<Arc<Current>>,
}

impl Drop for WorkGuard {
    fn drop(&mut self) {
        CURRENT.set(self.before.take());
    }
}

/// A new id of a part of a trace, 16 digits: the numbers of SplitMix64 (Steele, Lea, Flood, 2014) from a random
/// beginning on. They must differ, and need not be secret.
pub fn new_span_id() -> String {
    static STATE: OnceLock<AtomicU64> = OnceLock::new();
    let state = STATE.get_or_init(|| AtomicU64::new(RandomState::new().build_hasher().finish()));
    let state = state.fetch_add(0x9E37_79B9_7F4A_7C15, Relaxed);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    // Zeros alone are no id.
    format!("{:016x}", (mixed ^ (mixed >> 31)).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trace_of_a_request_is_that_of_its_header() {
        let of = |text: &str| Trace::read(text, true);
        let trace = of("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").unwrap();
        assert_eq!((&*trace.trace_id, &*trace.parent_id), ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"));
        assert_eq!((of(""), of(&"ä".repeat(30))), (None, None));
    }

    #[test]
    fn ids_of_spans_differ() {
        let ids: std::collections::BTreeSet<String> = (0..1000).map(|_| new_span_id()).collect();
        assert!(ids.len() == 1000 && ids.iter().all(|id| id.len() == 16));
    }
}
