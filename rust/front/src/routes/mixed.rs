//! The mixed segments (`{id}.json`, `v{major}.{minor}`) that follow one place of the route table, each with what it
//! leads to.
//!
//! Where a segment fits in several ways, each parameter but the last takes as little as possible, from the left:
//! `{name}.{format}` reads `a.tar.gz` as `a` and `tar.gz`.
use std::cmp::Ordering;
use std::iter;
use std::ops::Range;

use super::HashMap;

/// The texts around the parameters of a mixed segment: one more than parameters, the outer ones perhaps empty.
pub type SegmentTexts = [Box<str>];

/// A mixed segment and what it leads to.
pub struct MixedSegment<N> {
    texts: Box<SegmentTexts>,
    /// Characters of all texts together.
    literal: usize,
    pub target: N,
}

impl<N> MixedSegment<N> {
    fn new(texts: Box<SegmentTexts>, target: N) -> Self {
        let literal = texts.iter().map(|text| length(text)).sum();
        Self { texts, literal, target }
    }

    /// Gives where the values of the parameters are in a decoded segment of a path. False, perhaps after some of them,
    /// when it does not fit.
    pub fn read(&self, segment: &str, mut value: impl FnMut(Range<usize>)) -> bool {
        let [first, inner @ .., last] = &*self.texts else { return false };
        // No value is empty.
        let has_room = segment.len() > first.len() + last.len();
        if !has_room || !segment.starts_with(&**first) || !segment.ends_with(&**last) {
            return false;
        }
        let end = segment.len() - last.len();
        let mut at = first.len();
        for text in inner {
            let least = at + segment[at..end].chars().next().map_or(0, char::len_utf8);
            let Some(length) = segment[least..end].find(&**text) else { return false };
            value(at..least + length);
            at = least + length + text.len();
            if at == end {
                return false;
            }
        }
        value(at..end);
        true
    }
}

/// From this number on they are indexed, instead of compared one by one.
const MANY: usize = 16;

/// All mixed segments that follow one place.
pub enum MixedSegments<N> {
    /// The segments in the order in which they are tried.
    Few(Vec<MixedSegment<N>>),
    Many(Vec<EndTable<N>>),
}

/// Segments whose longer outer text is the last (or the first) and has this length, by this text. Those of one text
/// are in the order in which they are tried.
pub struct EndTable<N> {
    is_at_end: bool,
    length: usize,
    by_text: HashMap<Box<str>, Vec<MixedSegment<N>>>,
}

impl<N> Default for MixedSegments<N> {
    fn default() -> Self {
        MixedSegments::Few(Vec::new())
    }
}

impl<N> MixedSegments<N> {
    pub fn is_empty(&self) -> bool {
        match self {
            MixedSegments::Few(all) => all.is_empty(),
            MixedSegments::Many(tables) => tables.is_empty(),
        }
    }

    /// What these texts lead to.
    pub fn get_mut(&mut self, texts: &SegmentTexts) -> Option<&mut N> {
        let beside = match self {
            MixedSegments::Few(all) => all,
            MixedSegments::Many(tables) => {
                let (is_at_end, text) = longer_end(texts);
                table_mut(tables, is_at_end, text.len())?.by_text.get_mut(text)?
            }
        };
        beside.iter_mut().find(|one| *one.texts == *texts).map(|one| &mut one.target)
    }

    /// What these texts lead to, from now on.
    pub fn get_or_insert(&mut self, texts: Box<SegmentTexts>) -> &mut N
    where
        N: Default,
    {
        if let MixedSegments::Few(all) = self {
            if all.len() >= MANY {
                let mut tables = Vec::new();
                all.drain(..).for_each(|one| list_of(&mut tables, &one.texts).push(one));
                *self = MixedSegments::Many(tables);
            }
        }
        let all = match self {
            MixedSegments::Few(all) => all,
            MixedSegments::Many(tables) => list_of(tables, &texts),
        };
        let added = MixedSegment::new(texts, N::default());
        let at = all.binary_search_by(|one| in_order(one, &added)).unwrap_or_else(|at| {
            if all.is_empty() {
                // Most lists stay this short.
                all.reserve_exact(1);
            }
            all.insert(at, added);
            at
        });
        &mut all[at].target
    }

    pub fn remove(&mut self, texts: &SegmentTexts) {
        match self {
            MixedSegments::Few(all) => all.retain(|one| *one.texts != *texts),
            MixedSegments::Many(tables) => {
                let (is_at_end, text) = longer_end(texts);
                let Some(table) = table_mut(tables, is_at_end, text.len()) else { return };
                let Some(beside) = table.by_text.get_mut(text) else { return };
                beside.retain(|one| *one.texts != *texts);
                if beside.is_empty() {
                    table.by_text.remove(text);
                }
                if table.by_text.is_empty() {
                    tables.retain(|table| !table.by_text.is_empty());
                }
            }
        }
    }

    /// The first result for those that a decoded segment of a path may fit (`read` says whether it does), in order.
    pub fn find_map<'a, R>(
        &'a self,
        segment: &str,
        mut found: impl FnMut(&'a MixedSegment<N>) -> Option<R>,
    ) -> Option<R> {
        let tables = match self {
            MixedSegments::Few(all) => return all.iter().find_map(found),
            MixedSegments::Many(tables) => tables,
        };
        let mut lists = tables.iter().filter_map(|table| table.beside(segment));
        let first = lists.next()?;
        // Nearly always, only one of the tables has such an end.
        let Some(second) = lists.next() else { return first.iter().find_map(found) };
        let mut all = first.iter().chain(second).chain(lists.flatten()).collect::<Vec<_>>();
        all.sort_unstable_by(|left, right| in_order(left, right));
        all.into_iter().find_map(&mut found)
    }
}

impl<N> EndTable<N> {
    fn beside(&self, segment: &str) -> Option<&Vec<MixedSegment<N>>> {
        let end = match self.is_at_end {
            true => segment.get(segment.len().checked_sub(self.length)?..)?,
            false => segment.get(..self.length)?,
        };
        self.by_text.get(end)
    }
}

/// Those that have the longer outer text in common with these texts, in order.
fn list_of<'a, N>(tables: &'a mut Vec<EndTable<N>>, texts: &SegmentTexts) -> &'a mut Vec<MixedSegment<N>> {
    let (is_at_end, text) = longer_end(texts);
    let length = text.len();
    let at = tables.iter().position(|table| table.is_at_end == is_at_end && table.length == length);
    let at = at.unwrap_or_else(|| {
        tables.push(EndTable { is_at_end, length, by_text: HashMap::default() });
        tables.len() - 1
    });
    tables[at].by_text.entry(text.into()).or_default()
}

fn table_mut<N>(tables: &mut [EndTable<N>], is_at_end: bool, length: usize) -> Option<&mut EndTable<N>> {
    tables.iter_mut().find(|table| table.is_at_end == is_at_end && table.length == length)
}

fn longer_end(texts: &SegmentTexts) -> (bool, &str) {
    match texts {
        [first, .., last] if last.len() >= first.len() => (true, last),
        [first, ..] => (false, first),
        [] => (false, ""),
    }
}

/// The most literal text first, then the longer text at the beginning, then any order that does not change.
fn in_order<N>(left: &MixedSegment<N>, right: &MixedSegment<N>) -> Ordering {
    let first = |one: &MixedSegment<N>| one.texts.first().map_or(0, |text| length(text));
    let by_text = right.literal.cmp(&left.literal).then_with(|| first(right).cmp(&first(left)));
    by_text.then_with(|| spelling(left).cmp(spelling(right))).then_with(|| left.texts.cmp(&right.texts))
}

fn spelling<N>(one: &MixedSegment<N>) -> impl Iterator<Item = u8> {
    one.texts.iter().flat_map(|text| iter::once(b'{').chain(text.bytes()))
}

fn length(text: &str) -> usize {
    text.chars().count()
}
