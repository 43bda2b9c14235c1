//! The nodes of the route table: each is a place in routes, between two segments. There is at least one for each route,
//! so they are small.
use super::HashMap;
use super::mixed::MixedSegments;
use super::pattern::Segment;

/// What follows one place.
pub struct Node<T> {
    /// Most places have one text after them or none. The first one is here, and those that come while it is there
    /// are the others.
    first_text: Option<Box<(Box<str>, Node<T>)>>,
    other_texts: Option<Box<HashMap<Box<str>, Node<T>>>>,
    pub mixed: Option<Box<MixedSegments<Node<T>>>>,
    pub param: Option<Box<Node<T>>>,
    /// Of routes that match any path below this node.
    pub catch_all: Option<Box<Node<T>>>,
    /// Of routes that end here, by their methods.
    leaves: Vec<Leaf<T>>,
}

/// The end of a route.
pub struct Leaf<T> {
    /// An index into the methods of endpoints.
    pub method: usize,
    /// Of the parameters, in their order.
    pub names: Box<[Box<str>]>,
    pub target: T,
}

impl<T> Default for Node<T> {
    fn default() -> Self {
        Self { first_text: None, other_texts: None, mixed: None, param: None, catch_all: None, leaves: Vec::new() }
    }
}

impl<T> Node<T> {
    pub fn is_empty(&self) -> bool {
        let has_texts = self.first_text.is_some() || self.other_texts.is_some();
        let has_others = self.mixed.is_some() || self.param.is_some() || self.catch_all.is_some();
        !has_texts && !has_others && self.leaves.is_empty()
    }

    /// What follows this text.
    pub fn after(&self, text: &str) -> Option<&Node<T>> {
        match &self.first_text {
            Some(first) if *first.0 == *text => Some(&first.1),
            _ => self.other_texts.as_ref()?.get(text),
        }
    }

    pub fn leaves(&self) -> &[Leaf<T>] {
        &self.leaves
    }

    /// Adds a route that has these segments from here on, or replaces it.
    pub fn add(&mut self, segments: Vec<Segment>, leaf: Leaf<T>) {
        let mut node = self;
        for segment in segments {
            node = node.child_or_insert(segment);
        }
        match node.leaves.iter_mut().find(|other| other.method == leaf.method) {
            Some(other) => *other = leaf,
            None => {
                node.leaves.reserve_exact(1);
                node.leaves.push(leaf);
            }
        }
    }

    /// Removes the route that has these segments from here on, if its target is this one.
    pub fn remove(&mut self, segments: &[Segment], method: usize, is_target: impl Fn(&T) -> bool) {
        let Some((segment, below)) = segments.split_first() else {
            return self.leaves.retain(|leaf| leaf.method != method || !is_target(&leaf.target));
        };
        let Some(child) = self.child_mut(segment) else { return };
        child.remove(below, method, is_target);
        if child.is_empty() {
            self.remove_child(segment);
        }
    }

    fn child_mut(&mut self, segment: &Segment) -> Option<&mut Node<T>> {
        match segment {
            Segment::Static(text) => self.after_mut(text),
            Segment::Mixed { texts, .. } => self.mixed.as_mut()?.get_mut(texts),
            Segment::Param(_) => self.param.as_deref_mut(),
            Segment::CatchAll(_) => self.catch_all.as_deref_mut(),
        }
    }

    fn child_or_insert(&mut self, segment: Segment) -> &mut Node<T> {
        match segment {
            Segment::Static(text) => self.after_or_insert(text),
            Segment::Mixed { texts, .. } => self.mixed.get_or_insert_default().get_or_insert(texts),
            Segment::Param(_) => self.param.get_or_insert_default(),
            Segment::CatchAll(_) => self.catch_all.get_or_insert_default(),
        }
    }

    fn after_mut(&mut self, text: &str) -> Option<&mut Node<T>> {
        match &mut self.first_text {
            Some(first) if *first.0 == *text => Some(&mut first.1),
            _ => self.other_texts.as_mut()?.get_mut(text),
        }
    }

    fn after_or_insert(&mut self, text: Box<str>) -> &mut Node<T> {
        let is_other = self.other_texts.as_ref().is_some_and(|others| others.contains_key(&text));
        if self.first_text.is_none() && !is_other {
            self.first_text = Some(Box::new((text.clone(), Node::default())));
        }
        match &mut self.first_text {
            Some(first) if first.0 == text => &mut first.1,
            _ => self.other_texts.get_or_insert_default().entry(text).or_default(),
        }
    }

    fn remove_child(&mut self, segment: &Segment) {
        match segment {
            Segment::Static(text) => {
                self.first_text.take_if(|first| first.0 == *text);
                self.other_texts.take_if(|others| others.remove(text).is_some() && others.is_empty());
            }
            Segment::Mixed { texts, .. } => {
                self.mixed.take_if(|mixed| {
                    mixed.remove(texts);
                    mixed.is_empty()
                });
            }
            Segment::Param(_) => self.param = None,
            Segment::CatchAll(_) => self.catch_all = None,
        }
    }
}
