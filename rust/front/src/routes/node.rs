//! The nodes of the route table: each is a place in routes, between two segments. There is at least one for each route,
//! so they are small.
use std::rc::Rc;

use super::HashMap;
use super::mixed::MixedSegments;
use super::pattern::Segment;

/// What follows one place.
pub struct Node<T> {
    /// Most places have one text after them or none. The first one is here, and those that come while it is there
    /// are the others.
    first_text: Option<Box<(Box<str>, Node<T>)>>,
    pub param: Option<Box<Node<T>>>,
    /// The end of the route that ends here: of the first one, if there are several, with different methods.
    first_leaf: Option<Leaf<T>>,
    rare: Option<Box<Rare<T>>>,
}

/// What few places have.
struct Rare<T> {
    other_texts: HashMap<Box<str>, Node<T>>,
    mixed: Option<MixedSegments<Node<T>>>,
    /// The node of routes that match any path below this one.
    catch_all: Option<Node<T>>,
    other_leaves: Vec<Leaf<T>>,
}

impl<T> Default for Rare<T> {
    fn default() -> Self {
        Self { other_texts: HashMap::default(), mixed: None, catch_all: None, other_leaves: Vec::new() }
    }
}

impl<T> Rare<T> {
    fn is_empty(&self) -> bool {
        let has_nodes = !self.other_texts.is_empty() || self.mixed.is_some() || self.catch_all.is_some();
        !has_nodes && self.other_leaves.is_empty()
    }
}

/// The end of a route.
pub struct Leaf<T> {
    /// Most routes have the same as others.
    pub signature: Rc<RouteSignature>,
    pub target: T,
}

/// What tells a route from others at the same place, and what it calls the values of its parameters.
#[derive(PartialEq, Eq, Hash)]
pub struct RouteSignature {
    /// An index into the methods of endpoints.
    pub method: u8,
    /// The names of the parameters, in their order.
    pub names: Box<[Box<str>]>,
}

impl<T> Default for Node<T> {
    fn default() -> Self {
        Self { first_text: None, param: None, first_leaf: None, rare: None }
    }
}

impl<T> Node<T> {
    pub fn is_empty(&self) -> bool {
        self.first_text.is_none() && self.param.is_none() && self.first_leaf.is_none() && self.rare.is_none()
    }

    /// What follows this text.
    pub fn after(&self, text: &str) -> Option<&Node<T>> {
        match &self.first_text {
            Some(first) if *first.0 == *text => Some(&first.1),
            _ => self.rare.as_ref()?.other_texts.get(text),
        }
    }

    pub fn mixed(&self) -> Option<&MixedSegments<Node<T>>> {
        self.rare.as_ref()?.mixed.as_ref()
    }

    pub fn catch_all(&self) -> Option<&Node<T>> {
        self.rare.as_ref()?.catch_all.as_ref()
    }

    /// The ends of the routes that end here, one for each method.
    pub fn leaves(&self) -> impl Iterator<Item = &Leaf<T>> {
        let others = self.rare.as_ref().map_or(&[][..], |rare| &rare.other_leaves);
        self.first_leaf.as_ref().into_iter().chain(others)
    }

    /// Adds a route that has these segments from here on, or replaces it.
    pub fn add(&mut self, segments: Vec<Segment>, leaf: Leaf<T>) {
        let mut node = self;
        for segment in segments {
            node = node.child_or_insert(segment);
        }
        if let Some(other) = node.leaves_mut().find(|other| other.signature.method == leaf.signature.method) {
            *other = leaf;
        } else if node.first_leaf.is_none() {
            node.first_leaf = Some(leaf);
        } else {
            node.rare.get_or_insert_default().other_leaves.push(leaf);
        }
    }

    fn leaves_mut(&mut self) -> impl Iterator<Item = &mut Leaf<T>> {
        let others = self.rare.as_mut().map_or(&mut [][..], |rare| &mut rare.other_leaves);
        self.first_leaf.as_mut().into_iter().chain(others)
    }

    /// Removes the route that has these segments from here on, if its target is this one.
    pub fn remove(&mut self, segments: &[Segment], method: u8, is_target: impl Fn(&T) -> bool) {
        let Some((segment, below)) = segments.split_first() else {
            let is_it = |leaf: &mut Leaf<T>| leaf.signature.method == method && is_target(&leaf.target);
            self.first_leaf.take_if(|leaf| is_it(leaf));
            self.change_rare(|rare| rare.other_leaves.retain_mut(|leaf| !is_it(leaf)));
            return;
        };
        let Some(child) = self.child_mut(segment) else { return };
        child.remove(below, method, is_target);
        if child.is_empty() {
            self.remove_child(segment);
        }
    }

    fn child_mut(&mut self, segment: &Segment) -> Option<&mut Node<T>> {
        match segment {
            Segment::Static(text) => match &mut self.first_text {
                Some(first) if first.0 == *text => Some(&mut first.1),
                _ => self.rare.as_mut()?.other_texts.get_mut(text),
            },
            Segment::Mixed { texts, .. } => self.rare.as_mut()?.mixed.as_mut()?.get_mut(texts),
            Segment::Param(_) => self.param.as_deref_mut(),
            Segment::CatchAll(_) => self.rare.as_mut()?.catch_all.as_mut(),
        }
    }

    fn child_or_insert(&mut self, segment: Segment) -> &mut Node<T> {
        match segment {
            Segment::Static(text) => self.after_or_insert(text),
            Segment::Mixed { texts, .. } => {
                self.rare.get_or_insert_default().mixed.get_or_insert_default().get_or_insert(texts)
            }
            Segment::Param(_) => self.param.get_or_insert_default(),
            Segment::CatchAll(_) => self.rare.get_or_insert_default().catch_all.get_or_insert_default(),
        }
    }

    fn after_or_insert(&mut self, text: Box<str>) -> &mut Node<T> {
        let is_other = self.rare.as_ref().is_some_and(|rare| rare.other_texts.contains_key(&text));
        if self.first_text.is_none() && !is_other {
            self.first_text = Some(Box::new((text.clone(), Node::default())));
        }
        match &mut self.first_text {
            Some(first) if first.0 == text => &mut first.1,
            _ => self.rare.get_or_insert_default().other_texts.entry(text).or_default(),
        }
    }

    fn remove_child(&mut self, segment: &Segment) {
        match segment {
            Segment::Static(text) => {
                self.first_text.take_if(|first| first.0 == *text);
                self.change_rare(|rare| drop(rare.other_texts.remove(text)));
            }
            Segment::Mixed { texts, .. } => self.change_rare(|rare| {
                rare.mixed.take_if(|mixed| {
                    mixed.remove(texts);
                    mixed.is_empty()
                });
            }),
            Segment::Param(_) => self.param = None,
            Segment::CatchAll(_) => self.change_rare(|rare| rare.catch_all = None),
        }
    }

    fn change_rare(&mut self, change: impl FnOnce(&mut Rare<T>)) {
        self.rare.take_if(|rare| {
            change(rare);
            rare.is_empty()
        });
    }
}
