//! What answers the calls of connections: the actor, for the endpoints that are bound to it.
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use serde::Deserialize;

use super::actor::Actor;
use super::token::TokenReader;
use crate::backend::Backend;
use crate::memory::MemoryBudget;

/// An endpoint that can use the service, and the name it uses.
#[derive(Deserialize)]
pub struct Binding {
    pub endpoint_id: String,
    pub pool_id: String,
}

/// Who answers the calls of connections, and within which limits.
pub struct Host<B: Backend> {
    pub actor: Rc<Actor<B>>,
    pub tokens: TokenReader,
    pub bindings: RefCell<BindingTable>,
    pub is_draining: Cell<bool>,
    /// Deadline of a call that names none, milliseconds.
    pub default_call_ms: u64,
    /// Maximum deadline of a call, time to receive one, and duration of a transaction, milliseconds.
    pub longest_call_ms: u64,
    pub memory: Arc<MemoryBudget>,
}

impl<B: Backend> Host<B> {
    /// The actor of a pool; `None` when the call belongs elsewhere.
    pub fn actor_for(&self, endpoint: &str, pool: &str) -> Option<&Rc<Actor<B>>> {
        let is_bound = || self.bindings.borrow().get(endpoint).is_some_and(|pools| pools.contains(pool));
        (!self.is_draining.get() && is_bound()).then_some(&self.actor)
    }
}

/// The pools that each endpoint may use.
pub type BindingTable = HashMap<Box<str>, HashSet<Box<str>>>;

pub fn table_of(bindings: &[Binding]) -> BindingTable {
    let mut table = BindingTable::new();
    for Binding { endpoint_id, pool_id } in bindings {
        table.entry(endpoint_id.as_str().into()).or_default().insert(pool_id.as_str().into());
    }
    table
}
