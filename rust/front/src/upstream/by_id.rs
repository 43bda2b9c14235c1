//! Endpoints in a set, found by their ids: the id of each is in memory once.
use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

use super::SharedEndpoint;
use super::endpoint::Endpoint;

pub trait HasId {
    fn id(&self) -> &str;
}

impl HasId for Rc<Endpoint> {
    fn id(&self) -> &str {
        &self.shared.id
    }
}

impl HasId for Arc<SharedEndpoint> {
    fn id(&self) -> &str {
        &self.id
    }
}

/// What is equal to another one with the same id.
pub struct ById<T>(pub T);

impl<T: HasId> Borrow<str> for ById<T> {
    fn borrow(&self) -> &str {
        self.0.id()
    }
}

impl<T: HasId> Hash for ById<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id().hash(state);
    }
}

impl<T: HasId> PartialEq for ById<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0.id() == other.0.id()
    }
}

impl<T: HasId> Eq for ById<T> {}
