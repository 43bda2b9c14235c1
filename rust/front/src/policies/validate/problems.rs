//! What is wrong with a request, and where.
use std::borrow::Cow;

use serde_json::json;

/// The most problems of one request that are listed; there may be more.
const MAX_PROBLEMS: usize = 20;
/// The longest name in a place: clients choose names.
const SHOWN_NAME: usize = 64;

/// A place in a value: names and numbers from the outermost on.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    outer: Option<&'a Place<'a>>,
    key: PlaceStep<'a>,
}

#[derive(Clone, Copy)]
enum PlaceStep<'a> {
    Name(&'a str),
    Index(usize),
}

impl<'a> Place<'a> {
    pub fn root(name: &'a str) -> Self {
        Self { outer: None, key: PlaceStep::Name(name) }
    }

    pub fn member(&'a self, name: &'a str) -> Self {
        Self { outer: Some(self), key: PlaceStep::Name(name) }
    }

    pub fn item(&'a self, index: usize) -> Self {
        Self { outer: Some(self), key: PlaceStep::Index(index) }
    }

    fn text(&self) -> String {
        let mut text = self.outer.map_or_else(String::new, |outer| outer.text() + ".");
        match self.key {
            PlaceStep::Name(name) => text.extend(name.chars().take(SHOWN_NAME)),
            PlaceStep::Index(index) => text += &index.to_string(),
        }
        text
    }
}

/// The first problems; where it is full, there may be more.
#[derive(Default)]
pub struct Problems {
    list: Vec<(String, Cow<'static, str>)>,
}

impl Problems {
    pub fn add(&mut self, place: &Place<'_>, problem: impl Into<Cow<'static, str>>) {
        if self.is_full() {
            return;
        }
        let (place, problem) = (place.text(), problem.into());
        // Two ways lead to the same schema.
        if !self.list.iter().any(|(known, same)| *known == place && *same == problem) {
            self.list.push((place, problem));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.list.len() >= MAX_PROBLEMS
    }

    /// The problems in one line.
    pub fn summary(&self) -> String {
        let Some((place, problem)) = self.list.first() else { return String::new() };
        match self.list.len() - 1 {
            0 => format!("{place}: {problem}"),
            1 => format!("{place}: {problem} (and one more problem)"),
            more => {
                let least = if self.is_full() { "at least " } else { "" };
                format!("{place}: {problem} (and {least}{more} more problems)")
            }
        }
    }

    /// The problems as JSON.
    pub fn body(&self) -> String {
        let list: Vec<_> =
            self.list.iter().map(|(place, problem)| json!({ "place": place, "problem": problem })).collect();
        json!(list).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_listed_with_their_places_up_to_a_limit() {
        let mut problems = Problems::default();
        let root = Place::root("body");
        let items = root.member("items");
        for index in 0..=MAX_PROBLEMS {
            problems.add(&items.item(index).member("name"), "is required");
        }
        assert!(problems.is_full());
        assert_eq!(problems.summary(), "body.items.0.name: is required (and at least 19 more problems)");
        assert!(problems.body().ends_with(r#"{"place":"body.items.19.name","problem":"is required"}]"#));
    }
}
