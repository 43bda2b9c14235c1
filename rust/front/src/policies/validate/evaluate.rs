//! Evaluates a value by a schema. What it may cost is bounded: schemas can be such that a small value takes exponential
//! time, and values can be large.
use std::borrow::Cow;

use super::compiled::{Index, Types};
use super::json::Json;
use super::problems::{Place, Problems};
use super::schema::{AppliedSchemas, Schema, SchemaRules};
use super::stop::StopFlag;

/// Schemas within schemas, which take room on the stack.
const MAX_DEPTH: u32 = 400;
/// Steps for any value, and further ones for each of its bytes.
const STEPS: u64 = 100_000;
const STEPS_PER_BYTE: u64 = 64;
const MAX_STEPS: u64 = 40_000_000;
/// After so many steps it is found out whether somebody still waits.
const STEPS_BETWEEN_LOOKS: u64 = 50_000;
/// More take some milliseconds.
const LARGE_STEPS: u64 = 1_000_000;

/// How many steps the evaluation of a value may take.
#[derive(Clone, Copy, Debug)]
pub struct Budget(u64);

impl Budget {
    /// Any value may take so much: less than a millisecond.
    pub const LEAST: Self = Self(STEPS);

    /// The steps for a value of so many bytes. `pattern_cost` is that of the costliest pattern, for each byte.
    pub fn of(bytes: usize, pattern_cost: u64) -> Self {
        Self((STEPS + (STEPS_PER_BYTE + pattern_cost) * bytes as u64).min(MAX_STEPS))
    }

    /// Whether others would be kept waiting.
    pub fn is_large(self) -> bool {
        self.0 > LARGE_STEPS
    }
}

/// The value takes too much work, or goes too deep, or nobody waits for the outcome any more.
#[derive(Debug)]
pub struct TooComplex;

pub type Fits = Result<bool, TooComplex>;

/// The check of one value by schemas, with the steps that are left.
pub struct SchemaEvaluation<'s> {
    schemas: &'s [Schema],
    /// The steps until the next look at `stop`.
    steps: u64,
    /// The steps after these.
    further_steps: u64,
    stop: StopFlag,
    depth: u32,
}

/// Which items of a list, or members of an object, a schema has looked at.
pub struct EvaluatedParts(pub Vec<bool>);

impl EvaluatedParts {
    fn of(value: &Json<'_>) -> Self {
        Self(vec![false; length(value)])
    }

    fn add(&mut self, other: &Self) {
        for (seen, also) in self.0.iter_mut().zip(&other.0) {
            *seen |= also;
        }
    }
}

fn length(value: &Json<'_>) -> usize {
    match value {
        Json::List(items) => items.len(),
        Json::Object(members) => members.len(),
        _ => 0,
    }
}

/// Notes a problem. True when further ones are of interest.
pub fn noted(
    problems: &mut Option<&mut Problems>,
    place: &Place<'_>,
    problem: impl FnOnce() -> Cow<'static, str>,
) -> bool {
    let Some(problems) = problems else { return false };
    let may_continue = !problems.is_full();
    problems.add(place, problem());
    may_continue
}

/// Notes a problem and goes on, or returns when no more are of interest.
macro_rules! fail {
    ($valid:ident, $problems:expr, $place:expr, $($text:tt)*) => {
        if !$crate::policies::validate::evaluate::noted($problems, $place, || format!($($text)*).into()) {
            return Ok(false);
        }
        $valid = false;
    };
}
pub(super) use fail;

/// Goes on after what has failed, or returns when no more problems are of interest.
macro_rules! also {
    ($valid:ident, $problems:expr, $outcome:expr) => {
        if !$outcome? {
            if $problems.as_ref().is_none_or(|problems| problems.is_full()) {
                return Ok(false);
            }
            $valid = false;
        }
    };
}
pub(super) use also;

impl<'s> SchemaEvaluation<'s> {
    pub fn new(schemas: &'s [Schema], Budget(further_steps): Budget, stop: StopFlag) -> Self {
        Self { schemas, steps: 0, further_steps, stop, depth: 0 }
    }

    pub fn schema(&self, index: Index) -> Option<&'s Schema> {
        self.schemas.get(index as usize)
    }

    /// Takes steps of those that are left.
    pub fn spend(&mut self, steps: u64) -> Result<(), TooComplex> {
        match self.steps.checked_sub(steps) {
            Some(left) => self.steps = left,
            None => {
                let left = self.further_steps.checked_sub(steps - self.steps);
                let left = left.filter(|_| !self.stop.is_asked_for()).ok_or(TooComplex)?;
                self.steps = left.min(STEPS_BETWEEN_LOOKS);
                self.further_steps = left - self.steps;
            }
        }
        Ok(())
    }

    /// Whether a value fits. Without `problems`, it is only found out whether.
    ///
    /// # Errors
    /// When it takes too much work.
    pub fn check(
        &mut self,
        schema: Index,
        value: &Json<'_>,
        place: &Place<'_>,
        mut problems: Option<&mut Problems>,
        seen: Option<&mut EvaluatedParts>,
    ) -> Fits {
        self.spend(1)?;
        let rules = match self.schema(schema).ok_or(TooComplex)? {
            Schema::Is(true) => return Ok(true),
            Schema::Is(false) => {
                noted(&mut problems, place, || "is not accepted".into());
                return Ok(false);
            }
            Schema::SchemaRules(rules) => rules,
        };
        if self.depth >= MAX_DEPTH {
            return Err(TooComplex);
        }
        self.depth += 1;
        let outcome = self.rules(rules, value, place, problems, seen);
        self.depth -= 1;
        outcome
    }

    fn rules(
        &mut self,
        rules: &SchemaRules,
        value: &Json<'_>,
        place: &Place<'_>,
        mut problems: Option<&mut Problems>,
        outer: Option<&mut EvaluatedParts>,
    ) -> Fits {
        let problems = &mut problems;
        let mut valid = true;
        if let Some(types) = rules.types.filter(|types| !types.has(Types::of(value))) {
            noted(problems, place, || format!("must be of type {}", types.names()).into());
            // What is said of this type was not meant.
            return Ok(false);
        }
        also!(valid, problems, self.fixed(rules, value, place, problems));
        let unevaluated = match value {
            Json::List(_) => rules.list.as_ref().and_then(|list| list.unevaluated_items),
            Json::Object(_) => rules.object.as_ref().and_then(|object| object.unevaluated_properties),
            _ => None,
        };
        let mut own = (unevaluated.is_some() || outer.is_some()).then(|| EvaluatedParts::of(value));
        if own.is_some() {
            self.spend(length(value) as u64 / 8)?;
        }
        match value {
            Json::Number(number) => {
                if let Some(rules) = &rules.number {
                    also!(valid, problems, self.number(rules, *number, place, problems));
                }
            }
            Json::Text(text) => {
                if let Some(rules) = &rules.text {
                    also!(valid, problems, self.text(rules, text, place, problems));
                }
            }
            Json::List(items) => {
                if let Some(rules) = &rules.list {
                    also!(valid, problems, self.list(rules, items, place, problems, own.as_mut()));
                }
            }
            Json::Object(members) => {
                if let Some(rules) = &rules.object {
                    also!(valid, problems, self.object(rules, value, members, place, problems, own.as_mut()));
                }
            }
            Json::Null | Json::Bool(_) => {}
        }
        if let Some(applied) = &rules.applied {
            also!(valid, problems, self.applied(applied, value, place, problems, own.as_mut()));
        }
        // Where something else is wrong, it is not known what else would be left over.
        if let (Some(schema), Some(own), true) = (unevaluated, &mut own, valid) {
            also!(valid, problems, self.left_over(schema, value, place, problems, own));
        }
        if let (Some(outer), Some(own), true) = (outer, &own, valid) {
            outer.add(own);
        }
        Ok(valid)
    }

    /// What nothing else has looked at.
    fn left_over(
        &mut self,
        schema: Index,
        value: &Json<'_>,
        place: &Place<'_>,
        problems: &mut Option<&mut Problems>,
        seen: &mut EvaluatedParts,
    ) -> Fits {
        let mut valid = true;
        for at in 0..seen.0.len() {
            if seen.0[at] {
                continue;
            }
            seen.0[at] = true;
            let outcome = match value {
                Json::List(items) => self.check(schema, &items[at], &place.item(at), problems.as_deref_mut(), None),
                Json::Object(members) => {
                    let (name, member) = &members[at];
                    self.check(schema, member, &place.member(name), problems.as_deref_mut(), None)
                }
                _ => Ok(true),
            };
            also!(valid, problems, outcome);
        }
        Ok(valid)
    }

    /// Applies another schema to the same value.
    fn in_place(
        &mut self,
        schema: Index,
        value: &Json<'_>,
        place: &Place<'_>,
        problems: Option<&mut Problems>,
        seen: Option<&mut EvaluatedParts>,
    ) -> Fits {
        let Some(seen) = seen else { return self.check(schema, value, place, problems, None) };
        let mut own = EvaluatedParts::of(value);
        let valid = self.check(schema, value, place, problems, Some(&mut own))?;
        if valid {
            seen.add(&own);
        }
        Ok(valid)
    }

    fn applied(
        &mut self,
        applied: &AppliedSchemas,
        value: &Json<'_>,
        place: &Place<'_>,
        problems: &mut Option<&mut Problems>,
        mut seen: Option<&mut EvaluatedParts>,
    ) -> Fits {
        let mut valid = true;
        let dependent = applied.dependent_schemas.iter();
        let dependent = dependent.filter(|(name, _)| value.member(name).is_some()).map(|(_, schema)| schema);
        for &schema in applied.reference.iter().chain(&applied.all_of).chain(dependent) {
            also!(valid, problems, self.in_place(schema, value, place, problems.as_deref_mut(), seen.as_deref_mut()));
        }
        if !applied.any_of.is_empty() {
            also!(valid, problems, self.one(&applied.any_of, false, value, place, problems, seen.as_deref_mut()));
        }
        if !applied.one_of.is_empty() {
            also!(valid, problems, self.one(&applied.one_of, true, value, place, problems, seen.as_deref_mut()));
        }
        if let Some(schema) = applied.not {
            if self.check(schema, value, place, None, None)? {
                fail!(valid, problems, place, "is what the schema excludes (not)");
            }
        }
        if let Some(schema) = applied.condition {
            let then = self.in_place(schema, value, place, None, seen.as_deref_mut())?;
            if let Some(schema) = if then { applied.then } else { applied.otherwise } {
                also!(valid, problems, self.in_place(schema, value, place, problems.as_deref_mut(), seen));
            }
        }
        Ok(valid)
    }

    /// One of several schemas, or exactly one.
    fn one(
        &mut self,
        schemas: &[Index],
        exactly: bool,
        value: &Json<'_>,
        place: &Place<'_>,
        problems: &mut Option<&mut Problems>,
        mut seen: Option<&mut EvaluatedParts>,
    ) -> Fits {
        let mut fitting = 0;
        for &schema in schemas {
            if self.in_place(schema, value, place, None, seen.as_deref_mut())? {
                fitting += 1;
                if if exactly { fitting > 1 } else { seen.is_none() } {
                    break;
                }
            }
        }
        if fitting == 1 || (fitting > 1 && !exactly) {
            return Ok(true);
        }
        if fitting > 1 {
            noted(problems, place, || "fits more than one of the schemas of oneOf".into());
        } else if problems.is_some() {
            // What the only one says that is for values of this type.
            let mut meant = schemas.iter().filter(|schema| self.may_be(**schema, value));
            match (meant.next(), meant.next()) {
                (Some(&schema), None) => {
                    self.check(schema, value, place, problems.as_deref_mut(), None)?;
                }
                _ => {
                    let keyword = if exactly { "oneOf" } else { "anyOf" };
                    noted(problems, place, || format!("fits none of the schemas of {keyword}").into());
                }
            }
        }
        Ok(false)
    }

    /// Whether a schema is for values of this type.
    fn may_be(&self, mut schema: Index, value: &Json<'_>) -> bool {
        for _ in 0..8 {
            let Some(Schema::SchemaRules(rules)) = self.schema(schema) else { break };
            if let Some(types) = rules.types {
                return types.has(Types::of(value));
            }
            match rules.applied.as_ref().and_then(|applied| applied.reference) {
                Some(next) => schema = next,
                None => break,
            }
        }
        true
    }
}
