//! The search for one request in the route table. No more of the path than a segment is decoded at a time, and nothing
//! is allocated unless the route has parameters or the path is percent-encoded.
use std::borrow::Cow;

use super::node::{Leaf, Node};
use super::pattern::decode;
use super::{Lookup, METHODS, Params, index_of};

pub struct Search<'a> {
    /// Index of the method; `None` when no endpoint has it.
    method: Option<u8>,
    is_encoded: bool,
    values: Params<'a>,
    /// Methods, as bits, of routes that match the path.
    other_methods: u8,
}

impl<'a> Search<'a> {
    pub fn new(method: &str, is_encoded: bool) -> Self {
        // Routes of GET answer HEAD.
        let method = if method == "HEAD" { "GET" } else { method };
        let method = index_of(method);
        Self { method, is_encoded, values: Params::new(), other_methods: 0 }
    }

    /// The route that matches best below a node.
    /// `rest`: the path from the next segment on, if there is one.
    pub fn descend<T>(&mut self, node: &'a Node<T>, rest: Option<&'a str>) -> Option<&'a Leaf<T>> {
        let Some(rest) = rest else { return self.leaf_of(node) };
        let (segment, after) = match rest.bytes().position(|byte| byte == b'/') {
            Some(end) => (&rest[..end], Some(&rest[end + 1..])),
            None => (rest, None),
        };
        if segment.is_empty() {
            return None;
        }
        let segment = self.decode(segment);
        let found = node.after(&segment).and_then(|next| self.descend(next, after));
        if found.is_some() {
            return found;
        }
        if let Some(mixed) = node.mixed() {
            let found = mixed.find_map(&segment, |one| {
                let had = self.values.len();
                let fits = one.read(&segment, |range| {
                    self.values.push(match &segment {
                        Cow::Borrowed(text) => Cow::Borrowed(&text[range]),
                        Cow::Owned(text) => Cow::Owned(text[range].to_owned()),
                    });
                });
                let found = if fits { self.descend(&one.target, after) } else { None };
                if found.is_none() {
                    self.values.truncate(had);
                }
                found
            });
            if found.is_some() {
                return found;
            }
        }
        if let Some(next) = &node.param {
            let found = self.with(segment, next, after);
            if found.is_some() {
                return found;
            }
        }
        let catch_all = node.catch_all()?;
        self.with(self.decode(rest), catch_all, None)
    }

    /// What there is to say when nothing was found.
    pub fn miss<T>(&self) -> Lookup<'a, T> {
        if self.other_methods == 0 {
            return Lookup::Unknown;
        }
        let mut allow = Vec::with_capacity(METHODS.len() + 1);
        for (index, method) in METHODS.iter().enumerate() {
            if self.other_methods & 1 << index != 0 {
                allow.push(*method);
                if *method == "GET" {
                    allow.push("HEAD");
                }
            }
        }
        Lookup::WrongMethod { allow }
    }

    pub fn into_values(self) -> Params<'a> {
        self.values
    }

    /// Searches below a segment that has given this value, and forgets it when there is nothing.
    fn with<T>(&mut self, value: Cow<'a, str>, node: &'a Node<T>, rest: Option<&'a str>) -> Option<&'a Leaf<T>> {
        self.values.push(value);
        let found = self.descend(node, rest);
        if found.is_none() {
            self.values.pop();
        }
        found
    }

    fn leaf_of<T>(&mut self, node: &'a Node<T>) -> Option<&'a Leaf<T>> {
        let leaf = node.leaves().find(|leaf| Some(leaf.signature.method) == self.method);
        if leaf.is_none() {
            self.other_methods |= node.leaves().fold(0, |bits, leaf| bits | 1 << leaf.signature.method);
        }
        leaf
    }

    fn decode(&self, text: &'a str) -> Cow<'a, str> {
        let decoded = if self.is_encoded { decode(text) } else { None };
        decoded.unwrap_or(Cow::Borrowed(text))
    }
}
