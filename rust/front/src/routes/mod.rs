//! The route table: maps host, method and path to a target. It is a trie of path segments for each host, so that adding
//! or removing a route costs the length of that route, however many there are.
//!
//! Exact hosts take precedence over `*`; segment by segment from the left, static ones over mixed ones, those over
//! parameters, and those over a catch-all. A route that matches the path but not the method does not hide a less
//! specific one that matches both. `docs/HTTP.md` describes it for users.
mod mixed;
mod node;
mod pattern;
mod search;

use std::borrow::Cow;
use std::collections::HashSet;
use std::rc::Rc;

use node::{Leaf, Node, RouteSignature};
use search::Search;

pub use pattern::{RouteError, decode};

/// Clients look up what they like, but only operators insert, so no client can make keys collide. The seed is random
/// nevertheless: routes may come from documents that others wrote.
type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;

/// The methods of endpoints (`src/model/endpoint-method.ts`), sorted.
const METHODS: [&str; 5] = ["DELETE", "GET", "PATCH", "POST", "PUT"];

/// The decoded values of a route's parameters, in the order of their names.
pub type Params<'a> = Vec<Cow<'a, str>>;

/// Routes and their targets. A target that is shared is best an `Rc`.
pub struct RouteTable<T> {
    hosts: HashMap<Box<str>, Node<T>>,
    /// The routes for `*`.
    any_host: Node<T>,
    /// The signatures that routes share.
    signatures: HashSet<Rc<RouteSignature>>,
}

/// More are not shared.
const MAX_INTERNED: usize = 1_000;

/// The result of a lookup.
#[derive(Debug, PartialEq, Eq)]
pub enum Lookup<'a, T> {
    Found {
        target: &'a T,
        names: &'a [Box<str>],
        values: Params<'a>,
    },
    /// The path has routes of other methods: these, sorted, with `HEAD` where there is `GET`.
    WrongMethod {
        allow: Vec<&'static str>,
    },
    Unknown,
    /// The path does not begin with a slash, or is not percent-encoded UTF-8.
    Malformed,
}

impl<T> Default for RouteTable<T> {
    fn default() -> Self {
        Self { hosts: HashMap::default(), any_host: Node::default(), signatures: HashSet::new() }
    }
}

impl<T> RouteTable<T> {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a route, or replaces the target of the route that matches the same requests.
    /// `domain`: a host name in lower case, or `*` for all.
    pub fn add(&mut self, domain: &str, method: &str, route: &str, target: T) -> Result<(), RouteError> {
        let segments = pattern::read_route(route)?;
        let method = index_of(method).ok_or_else(|| RouteError::method(method))?;
        let names = segments.iter().flat_map(|segment| segment.names()).cloned().collect();
        let signature = self.interned(RouteSignature { method, names });
        let root = match domain {
            "*" => &mut self.any_host,
            domain => self.hosts.entry(domain.into()).or_default(),
        };
        root.add(segments, Leaf { signature, target });
        Ok(())
    }

    fn interned(&mut self, signature: RouteSignature) -> Rc<RouteSignature> {
        if let Some(known) = self.signatures.get(&signature) {
            return known.clone();
        }
        let signature = Rc::new(signature);
        if self.signatures.len() < MAX_INTERNED {
            self.signatures.insert(signature.clone());
        }
        signature
    }

    /// Removes a route if its target is still this one.
    pub fn remove(&mut self, domain: &str, method: &str, route: &str, is_target: impl Fn(&T) -> bool) {
        let (Ok(segments), Some(method)) = (pattern::read_route(route), index_of(method)) else { return };
        if domain == "*" {
            return self.any_host.remove(&segments, method, is_target);
        }
        let Some(root) = self.hosts.get_mut(domain) else { return };
        root.remove(&segments, method, is_target);
        if root.is_empty() {
            self.hosts.remove(domain);
        }
    }

    /// Finds the target for a request.
    /// `host`: in lower case, without port. `path`: as received, without query.
    pub fn find<'a>(&'a self, host: &str, method: &str, path: &'a str) -> Lookup<'a, T> {
        let Some(inner) = path.strip_prefix('/') else { return Lookup::Malformed };
        let is_encoded = path.contains('%');
        if is_encoded && pattern::decode(path).is_none() {
            return Lookup::Malformed;
        }
        let inner = inner.strip_suffix('/').unwrap_or(inner);
        let rest = (!inner.is_empty()).then_some(inner);
        let mut search = Search::new(method, is_encoded);
        let own = self.hosts.get(host).and_then(|root| search.descend(root, rest));
        match own.or_else(|| search.descend(&self.any_host, rest)) {
            Some(Leaf { signature, target }) => {
                Lookup::Found { target, names: &signature.names, values: search.into_values() }
            }
            None => search.miss(),
        }
    }
}

fn index_of(method: &str) -> Option<u8> {
    METHODS.iter().position(|known| *known == method).map(|index| index as u8)
}

#[cfg(test)]
mod tests;
