//! Values that are sent as text, read as what their schemas say: numbers, booleans, lists and objects.
use std::borrow::Cow;

use super::compiled::{PatternShape, Shape, Types};
use super::evaluate::{SchemaEvaluation, TooComplex};
use super::json::{Json, MAX_VALUES, MEMBER_BYTES};
use super::number::Number;
use super::problems::{Place, Problems};

/// Reads texts, and checks them.
pub struct TextReader<'e, 's> {
    pub evaluation: &'e mut SchemaEvaluation<'s>,
}

impl TextReader<'_, '_> {
    /// Checks a value that has been read.
    pub fn check(
        &mut self,
        shape: &Shape,
        value: &Json<'_>,
        place: &Place<'_>,
        problems: &mut Problems,
    ) -> Result<(), TooComplex> {
        self.evaluation.check(shape.schema, value, place, Some(problems), None).map(|_| ())
    }

    /// The value of a text that is no list and no object: what fits its schema, or else what it looks like.
    pub fn scalar<'t>(&mut self, shape: &Shape, text: Cow<'t, str>) -> Result<Json<'t>, TooComplex> {
        let Shape { types, .. } = *shape;
        let is_any = types.is_empty();
        let number = Number::read(&text).map(Json::Number);
        let other = match &*text {
            "true" => Some((Types::BOOLEAN, Json::Bool(true))),
            "false" => Some((Types::BOOLEAN, Json::Bool(false))),
            "null" | "" => Some((Types::NULL, Json::Null)),
            _ => None,
        };
        let is_wanted = |kind: Types| is_any || types.has(kind);
        let number = number.filter(|_| is_wanted(Types::NUMBER) || is_wanted(Types::INTEGER));
        let other = other.filter(|(kind, _)| is_wanted(*kind)).map(|(_, value)| value);
        let read = number.or(other);
        let Some(read) = read else { return Ok(Json::Text(text)) };
        if is_any {
            // What schemas without a type say of texts, and what they say of numbers, is meant.
            return Ok(if self.fits(shape, &read)? { Json::Text(text) } else { read });
        }
        if !types.has(Types::TEXT) || self.fits(shape, &read)? {
            return Ok(read);
        }
        let text = Json::Text(text);
        Ok(if self.fits(shape, &text)? { text } else { read })
    }

    fn fits(&mut self, shape: &Shape, value: &Json<'_>) -> Result<bool, TooComplex> {
        self.evaluation.check(shape.schema, value, &Place::root(""), None, None)
    }

    pub fn list<'t>(
        &mut self,
        shape: &Shape,
        items: impl Iterator<Item = Cow<'t, str>>,
    ) -> Result<Json<'t>, TooComplex> {
        let mut list = Vec::new();
        for item in items {
            self.evaluation.spend(1)?;
            list.push(match &shape.items {
                Some(items) => self.scalar(items, item)?,
                None => Json::Text(item),
            });
        }
        Ok(Json::List(list))
    }

    /// An object of texts: a member that is there several times is a list, if it may be one.
    pub fn object<'t>(
        &mut self,
        shape: &Shape,
        mut members: Vec<(Cow<'t, str>, Cow<'t, str>)>,
        place: &Place<'_>,
        problems: &mut Problems,
    ) -> Result<Json<'t>, TooComplex> {
        // Those of a name stay in their order.
        members.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut read: Vec<(Cow<'t, str>, Json<'t>)> = Vec::new();
        let mut rest = members.into_iter().peekable();
        while let Some((name, first)) = rest.next() {
            self.evaluation.spend(1)?;
            let mut values = vec![first];
            while let Some((_, next)) = rest.next_if(|(other, _)| *other == name) {
                values.push(next);
            }
            let shape = self.member(shape, &name)?;
            let value = self.repeated(shape, values, &place.member(&name), problems)?;
            read.push((name, value));
        }
        Ok(Json::Object(read))
    }

    /// What says how a member is read: of its schemas, one that names a type. `None` where nothing is said of it.
    fn member<'p>(&mut self, shape: &'p Shape, name: &str) -> Result<Option<&'p Shape>, TooComplex> {
        let mut found = shape.members.get(name);
        for PatternShape { schema, at, shape } in &shape.patterns {
            if found.is_some_and(|found| !found.types.is_empty()) {
                break;
            }
            if self.evaluation.name_fits(*schema, *at, name)? {
                found = Some(shape);
            }
        }
        Ok(found.or(shape.others.as_deref()))
    }

    /// One or more texts of the same name. Several are a list; where no type is named, each has to fit by itself, too.
    pub fn repeated<'t>(
        &mut self,
        shape: Option<&Shape>,
        mut values: Vec<Cow<'t, str>>,
        place: &Place<'_>,
        problems: &mut Problems,
    ) -> Result<Json<'t>, TooComplex> {
        let Some(shape) = shape else {
            return Ok(match values.len() {
                1 => Json::Text(values.swap_remove(0)),
                _ => Json::List(values.into_iter().map(Json::Text).collect()),
            });
        };
        if values.len() > 1 && shape.types.is_empty() {
            let mut list = Vec::with_capacity(values.len());
            for (at, value) in values.into_iter().enumerate() {
                let value = self.scalar(shape, value)?;
                self.check(shape, &value, &place.item(at), problems)?;
                list.push(value);
            }
            return Ok(Json::List(list));
        }
        let may_be_one = shape.types.is_empty() || shape.types.are_scalar();
        let is_list = shape.types.has(Types::LIST);
        let is_empty = is_list && values.len() == 1 && values[0].is_empty();
        let value = if is_list && !(may_be_one && values.len() == 1) {
            self.list(shape, values.into_iter())?
        } else {
            if values.len() > 1 {
                problems.add(place, "is given more than once");
            }
            self.scalar(shape, values.swap_remove(0))?
        };
        if is_empty { self.or_empty_list(shape, value) } else { Ok(value) }
    }

    /// What an empty text is of a schema that allows lists: this value, or the empty list where it does not fit.
    pub fn or_empty_list<'t>(&mut self, shape: &Shape, value: Json<'t>) -> Result<Json<'t>, TooComplex> {
        Ok(if self.fits(shape, &value)? { value } else { Json::List(Vec::new()) })
    }
}

/// The pairs of a query or a form. Names and values that are not percent-encoded UTF-8 are `None`.
pub fn pairs(text: &str) -> impl Iterator<Item = (Option<Cow<'_, str>>, &str)> {
    let parts = text.split('&').filter(|part| !part.is_empty());
    parts.map(|part| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        (form_decoded(name), value)
    })
}

/// What it takes in memory to read a form, at most: its pairs while there are more and more of them and while they are
/// sorted, the members that are made of them, and what is decoded.
pub fn form_room(bytes: &[u8]) -> usize {
    const FIELD_BYTES: usize = size_of::<(Cow<'_, str>, Cow<'_, str>)>();
    let fields = (memchr::memchr_iter(b'&', bytes).count() + 1).min(MAX_VALUES);
    let decoded = if memchr::memchr2(b'%', b'+', bytes).is_some() { bytes.len() } else { 0 };
    fields * (2 * FIELD_BYTES + FIELD_BYTES / 2 + 2 * MEMBER_BYTES) + decoded
}

/// Percent-decoded, with `+` for a space.
pub fn form_decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('+') {
        return crate::routes::decode(text);
    }
    crate::routes::decode(&text.replace('+', " ")).map(|decoded| Cow::Owned(decoded.into_owned()))
}

/// Members of an object whose names and values follow each other, or are joined by `=`.
pub fn members<'t>(parts: impl Iterator<Item = Cow<'t, str>>, joined: bool) -> Vec<(Cow<'t, str>, Cow<'t, str>)> {
    let mut parts = parts;
    let mut members = Vec::new();
    while let Some(part) = parts.next() {
        members.push(if joined {
            let (name, value) = part.split_once('=').unwrap_or((&part, ""));
            (Cow::Owned(name.to_owned()), Cow::Owned(value.to_owned()))
        } else {
            (part, parts.next().unwrap_or_default())
        });
    }
    members
}
