//! What a front knows of an endpoint: where it is reached, with which limits and policies, and what serves it.
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

use crate::messages::{EndpointMessage, Limits, Serving};
use crate::policies::{Policies, Texts};

/// All that a front needs to know of an endpoint.
#[derive(Debug)]
pub struct EndpointState {
    pub address: Address,
    pub limits: Limits,
    /// Its policies, which most endpoints have not.
    pub policies: Option<Arc<Policies>>,
    pub serving: Serving,
}

impl EndpointState {
    /// The id of an endpoint, and its state. `texts`: of parts of its policies, among others.
    pub fn of_message(message: EndpointMessage, texts: &Texts) -> (Box<str>, Self) {
        let EndpointMessage { id, domain, method, route, routed, limits, policies, serving } = message;
        let address = Address { domain: interned(&domain), method: interned(&method), route, routed };
        let policies = policies.map(|policies| Policies::interned(policies, texts, &address.domain));
        (id, Self { address, limits, policies, serving })
    }
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
