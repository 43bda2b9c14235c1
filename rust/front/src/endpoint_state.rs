//! What a front knows of an endpoint: where it is reached, with which limits and policies, and what serves it.
use std::cell::RefCell;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use crate::policies::{CompiledPolicies, Policies, Texts};
use serde::Deserialize;

/// An endpoint as it is sent: its id, and its state.
#[derive(Deserialize)]
pub struct NamedState {
    id: Box<str>,
    domain: Box<str>,
    method: Box<str>,
    route: Box<str>,
    routed: bool,
    limits: Limits,
    policies: Option<CompiledPolicies>,
    serving: Serving,
}

impl NamedState {
    /// `texts`: of parts of its policies, among others.
    pub fn into_parts(self, texts: &Texts) -> (Box<str>, EndpointState) {
        let Self { id, domain, method, route, routed, limits, policies, serving } = self;
        let address = Address { domain: interned(&domain), method: interned(&method), route, routed };
        let policies = policies.map(|policies| Policies::interned(policies, texts, &address.domain));
        (id, EndpointState { address, limits, policies, serving })
    }
}

/// All that a front needs to know of an endpoint.
#[derive(Debug)]
pub struct EndpointState {
    pub address: Address,
    pub limits: Limits,
    /// None for most.
    pub policies: Option<Arc<Policies>>,
    pub serving: Serving,
}

/// Where an endpoint is reached.
#[derive(Debug, PartialEq, Eq)]
pub struct Address {
    /// A host name, or `*` for all.
    pub domain: Arc<str>,
    pub method: Arc<str>,
    /// e.g. `/items/{id}`.
    pub route: Box<str>,
    /// False: defined, but disabled.
    pub routed: bool,
}

/// Texts that many states share are in memory once.
const MAX_INTERNED: usize = 1_000;

/// The text, shared with others that are equal.
fn interned(text: &str) -> Arc<str> {
    thread_local! {
        static KNOWN: RefCell<HashSet<Arc<str>>> = RefCell::default();
    }
    KNOWN.with_borrow_mut(|known| {
        if let Some(found) = known.get(text) {
            return found.clone();
        }
        if known.len() >= MAX_INTERNED {
            known.clear();
        }
        let new: Arc<str> = text.into();
        known.insert(new.clone());
        new
    })
}

/// The limits that a front enforces.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Deadline of one request, milliseconds.
    pub timeout_ms: u32,
    /// Longest time between two pieces of a streamed response, milliseconds.
    pub idle_timeout_ms: u32,
    /// Requests of the endpoint at a time, in a handler or waiting for one.
    pub concurrent_requests: u32,
}

/// What serves an endpoint.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Serving {
    /// Nothing should run: requests get 503.
    None,
    /// A handler is being started: requests wait for a moment.
    Starting,
    /// A handler is started when a request comes, which waits for it.
    Asleep {
        sticky: Option<Box<Sticky>>,
    },
    Running {
        targets: Box<[Target]>,
        sticky: Option<Box<Sticky>>,
    },
}

/// What tells callers apart that keep their target. Others are shared out request by request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Sticky {
    /// The value of this header.
    Header(Box<str>),
    /// The value of this cookie.
    Cookie(Box<str>),
}

/// A handler process, and its share of the requests.
#[derive(Debug, Deserialize)]
pub struct Target {
    pub weight: u32,
    pub version: u32,
    pub instance: Instance,
}

#[derive(Debug, Deserialize)]
pub struct Instance {
    /// Unique on this machine for the life of the gateway.
    pub id: u64,
    /// Its Unix socket; the path may lead into the handler's sandbox.
    pub socket: PathBuf,
    pub takes: Takes,
}

/// What a handler takes besides whole requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Takes {
    /// Nothing else: as those do that were made with an earlier SDK.
    Whole,
    /// Requests whose body follows.
    Streams,
    Websockets,
}
