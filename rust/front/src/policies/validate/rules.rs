//! What schemas say of values of each type.
use std::borrow::Cow;
use std::hash::BuildHasher;

use super::compiled::Index;
use super::evaluate::{EvaluatedParts, Fits, SchemaEvaluation, also, fail};
use super::json::Json;
use super::number::Number;
use super::problems::{Place, Problems};
use super::schema::{ListRules, NumberRules, ObjectRules, Pattern, Schema, SchemaRules, TextRules};

/// Where problems are kept, if anybody wants to know them.
type ProblemSink<'f, 'p> = &'f mut Option<&'p mut Problems>;

/// Values and texts of a schema in a message, characters.
const SHOWN: usize = 100;

impl SchemaEvaluation<'_> {
    /// Values that are the only ones.
    pub fn fixed(
        &mut self,
        rules: &SchemaRules,
        value: &Json<'_>,
        place: &Place<'_>,
        problems: ProblemSink<'_, '_>,
    ) -> Fits {
        let mut valid = true;
        if let Some(constant) = &rules.constant {
            if value != constant {
                fail!(valid, problems, place, "must be {}", shown(constant));
            }
        }
        if let Some(values) = &rules.values {
            self.spend(values.len() as u64)?;
            if !values.contains(value) {
                let known: Vec<_> = values.iter().take(10).map(shown).collect();
                let more = if values.len() > known.len() { " or another value of the enum" } else { "" };
                fail!(valid, problems, place, "must be one of {}{more}", known.join(", "));
            }
        }
        Ok(valid)
    }

    pub fn number(
        &mut self,
        rules: &NumberRules,
        value: Number,
        place: &Place<'_>,
        problems: ProblemSink<'_, '_>,
    ) -> Fits {
        let mut valid = true;
        if let Some(limit) = rules.maximum.filter(|limit| value > *limit) {
            fail!(valid, problems, place, "must be at most {limit}");
        }
        if let Some(limit) = rules.exclusive_maximum.filter(|limit| value >= *limit) {
            fail!(valid, problems, place, "must be less than {limit}");
        }
        if let Some(limit) = rules.minimum.filter(|limit| value < *limit) {
            fail!(valid, problems, place, "must be at least {limit}");
        }
        if let Some(limit) = rules.exclusive_minimum.filter(|limit| value <= *limit) {
            fail!(valid, problems, place, "must be greater than {limit}");
        }
        if let Some(divisor) = rules.multiple_of {
            self.spend(value.division_steps(divisor))?;
        }
        if let Some(divisor) = rules.multiple_of.filter(|divisor| !value.is_multiple_of(*divisor)) {
            fail!(valid, problems, place, "must be a multiple of {divisor}");
        }
        if let Some(format) = rules.format.filter(|format| !format.fits_number(value)) {
            fail!(valid, problems, place, "must fit the format {}", format.name());
        }
        Ok(valid)
    }

    pub fn text(&mut self, rules: &TextRules, text: &str, place: &Place<'_>, problems: ProblemSink<'_, '_>) -> Fits {
        let mut valid = true;
        if rules.max_length.is_some() || rules.min_length.is_some() {
            self.spend(text.len() as u64 / 16)?;
            let length = text.chars().count() as u64;
            if let Some(limit) = rules.max_length.filter(|limit| length > *limit) {
                fail!(valid, problems, place, "must have at most {limit} characters");
            }
            if let Some(limit) = rules.min_length.filter(|limit| length < *limit) {
                fail!(valid, problems, place, "must have at least {limit} characters");
            }
        }
        if let Some(pattern) = &rules.pattern {
            if !self.fits(pattern, text)? {
                fail!(valid, problems, place, "must match the pattern {}", shortened(&pattern.shown));
            }
        }
        if let Some(format) = rules.format {
            self.spend(text.len() as u64)?;
            if !format.fits(text) {
                fail!(valid, problems, place, "must fit the format {}", format.name());
            }
        }
        Ok(valid)
    }

    /// Whether a name fits a pattern, by its place in the list of a schema.
    pub fn name_fits(&mut self, schema: Index, at: usize, name: &str) -> Fits {
        let Some(Schema::SchemaRules(rules)) = self.schema(schema) else { return Ok(false) };
        let pattern = rules.object.as_ref().and_then(|object| object.pattern_properties.get(at));
        pattern.map_or(Ok(false), |(pattern, _)| self.fits(pattern, name))
    }

    fn fits(&mut self, pattern: &Pattern, text: &str) -> Fits {
        self.spend(pattern.cost * text.len() as u64)?;
        Ok(pattern.fits(text))
    }

    pub fn list(
        &mut self,
        rules: &ListRules,
        items: &[Json<'_>],
        place: &Place<'_>,
        problems: ProblemSink<'_, '_>,
        mut seen: Option<&mut EvaluatedParts>,
    ) -> Fits {
        let mut valid = true;
        let length = items.len() as u64;
        if let Some(limit) = rules.max_items.filter(|limit| length > *limit) {
            fail!(valid, problems, place, "must have at most {limit} items");
        }
        if let Some(limit) = rules.min_items.filter(|limit| length < *limit) {
            fail!(valid, problems, place, "must have at least {limit} items");
        }
        if rules.unique_items {
            if let Some((one, other)) = self.equal_items(items)? {
                fail!(valid, problems, place, "must have no equal items, as {one} and {other} are");
            }
        }
        for (at, item) in items.iter().enumerate() {
            let Some(schema) = rules.prefix_items.get(at).copied().or(rules.items) else { break };
            if let Some(seen) = &mut seen {
                seen.0[at] = true;
            }
            also!(valid, problems, self.check(schema, item, &place.item(at), problems.as_deref_mut(), None));
        }
        if let Some(schema) = rules.contains {
            let mut count = 0;
            for (at, item) in items.iter().enumerate() {
                if self.check(schema, item, &place.item(at), None, None)? {
                    count += 1;
                    if let Some(seen) = &mut seen {
                        seen.0[at] = true;
                    } else if count >= rules.min_contains && rules.max_contains.is_none() {
                        break;
                    }
                }
            }
            if count < rules.min_contains {
                let least = rules.min_contains;
                fail!(valid, problems, place, "must have at least {least} items that fit the schema of contains");
            }
            if let Some(most) = rules.max_contains.filter(|most| count > *most) {
                fail!(valid, problems, place, "must have at most {most} items that fit the schema of contains");
            }
        }
        Ok(valid)
    }

    /// Finds two equal items by their hashes, in linear time. The seed is random: nobody can make many of them alike.
    fn equal_items(&mut self, items: &[Json<'_>]) -> Result<Option<(usize, usize)>, super::evaluate::TooComplex> {
        self.spend(items.iter().map(size).sum::<u64>() / 4)?;
        let state = foldhash::fast::RandomState::default();
        let mut hashes: Vec<_> = items.iter().enumerate().map(|(at, item)| (state.hash_one(item), at)).collect();
        hashes.sort_unstable();
        let mut pairs = hashes.windows(2);
        let equal = pairs.find(|pair| pair[0].0 == pair[1].0 && items[pair[0].1] == items[pair[1].1]);
        Ok(equal.map(|pair| (pair[0].1, pair[1].1)))
    }

    pub fn object(
        &mut self,
        rules: &ObjectRules,
        value: &Json<'_>,
        members: &[(Cow<'_, str>, Json<'_>)],
        place: &Place<'_>,
        problems: ProblemSink<'_, '_>,
        mut seen: Option<&mut EvaluatedParts>,
    ) -> Fits {
        let mut valid = true;
        let length = members.len() as u64;
        if let Some(limit) = rules.max_properties.filter(|limit| length > *limit) {
            fail!(valid, problems, place, "must have at most {limit} members");
        }
        if let Some(limit) = rules.min_properties.filter(|limit| length < *limit) {
            fail!(valid, problems, place, "must have at least {limit} members");
        }
        self.spend(rules.required.len() as u64)?;
        for name in &rules.required {
            if value.member(name).is_none() {
                fail!(valid, problems, &place.member(name), "is required");
            }
        }
        for (with, names) in &rules.dependent_required {
            self.spend(1 + names.len() as u64)?;
            let missing = names.iter().filter(|name| value.member(name).is_none());
            for name in missing.filter(|_| value.member(with).is_some()) {
                fail!(valid, problems, &place.member(name), "is required with {}", shortened(with));
            }
        }
        let has_members = !rules.properties.is_empty()
            || !rules.pattern_properties.is_empty()
            || rules.additional_properties.is_some()
            || rules.property_names.is_some();
        if !has_members {
            return Ok(valid);
        }
        for (at, (name, member)) in members.iter().enumerate() {
            self.spend(1)?;
            let here = place.member(name);
            let mut is_known = false;
            if let Some(&schema) = rules.properties.get(&**name) {
                is_known = true;
                also!(valid, problems, self.check(schema, member, &here, problems.as_deref_mut(), None));
            }
            for (pattern, schema) in &rules.pattern_properties {
                if self.fits(pattern, name)? {
                    is_known = true;
                    also!(valid, problems, self.check(*schema, member, &here, problems.as_deref_mut(), None));
                }
            }
            if let Some(schema) = rules.additional_properties.filter(|_| !is_known) {
                is_known = true;
                also!(valid, problems, self.check(schema, member, &here, problems.as_deref_mut(), None));
            }
            if let (Some(seen), true) = (&mut seen, is_known) {
                seen.0[at] = true;
            }
            if let Some(schema) = rules.property_names {
                let text = Json::Text(Cow::Borrowed(name));
                if !self.check(schema, &text, &here, None, None)? {
                    fail!(valid, problems, &here, "has a name that is not accepted");
                }
            }
        }
        Ok(valid)
    }
}

/// How much there is in a value.
fn size(value: &Json<'_>) -> u64 {
    match value {
        Json::Text(text) => 1 + text.len() as u64 / 8,
        Json::List(items) => 1 + items.iter().map(size).sum::<u64>(),
        Json::Object(members) => {
            1 + members.iter().map(|(name, value)| 1 + name.len() as u64 / 8 + size(value)).sum::<u64>()
        }
        _ => 1,
    }
}

/// A value of a schema.
fn shown(value: &Json<'_>) -> String {
    match value {
        Json::Null => "null".to_owned(),
        Json::Bool(value) => value.to_string(),
        Json::Number(value) => value.to_string(),
        Json::Text(text) => format!("{:?}", shortened(text)),
        Json::List(_) => "a list of the schema".to_owned(),
        Json::Object(_) => "an object of the schema".to_owned(),
    }
}

fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}
