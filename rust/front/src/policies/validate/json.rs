//! Values of requests as schemas see them. A value that two programs could read in different ways is refused: a member
//! that appears twice, a number beyond what is one.
use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::number::Number;
use super::stop::StopFlag;

/// Values of one body, lists and objects among them.
pub const MAX_VALUES: usize = 1_000_000;
/// What a value takes in memory, and a member with its name.
const VALUE_BYTES: usize = size_of::<Json<'_>>();
pub const MEMBER_BYTES: usize = size_of::<(Cow<'_, str>, Json<'_>)>();
/// A list or an object has room for so many from its first one on, and for twice as many each time it grows.
const FIRST_ROOM: usize = 4;
/// The most lists and objects within each other.
const MAX_DEPTH: usize = 127;
const SHOWN_NAME: usize = 64;
/// After so many values it is found out whether somebody still waits.
const VALUES_BETWEEN_LOOKS: usize = 10_000;

#[derive(Debug, PartialEq)]
pub enum Json<'a> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'a, str>),
    List(Vec<Json<'a>>),
    /// Sorted by names.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

impl<'a> Json<'a> {
    /// What a value takes of memory, at least.
    pub fn bytes(&self) -> usize {
        let within = match self {
            Self::Text(text) => text.len(),
            Self::List(items) => items.iter().map(Self::bytes).sum(),
            Self::Object(members) => {
                members.iter().map(|(name, value)| size_of::<Cow<'_, str>>() + name.len() + value.bytes()).sum()
            }
            _ => 0,
        };
        size_of::<Self>() + within
    }

    /// # Errors
    /// Why it is not JSON.
    pub fn read(bytes: &'a [u8], stop: &StopFlag) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "is not UTF-8".to_owned())?;
        let limits = ReadLimits { values: Cell::new(MAX_VALUES), stop };
        let mut reader = serde_json::Deserializer::from_str(text);
        let read = Seed(&limits).deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
        read.map_err(|error| format!("cannot be read as JSON: {error}"))
    }

    /// Like `read`, of a text that does not live as long.
    ///
    /// # Errors
    /// Why it is not JSON.
    pub fn read_owned(bytes: &[u8]) -> Result<Json<'static>, String> {
        Json::read(bytes, &StopFlag::default()).map(owned)
    }

    /// What it takes in memory to read such a text: lists and objects, and texts that are not those of the body.
    pub fn room(bytes: &[u8]) -> usize {
        /// How many items or members there are so far, but for the last one, and whether there is that.
        #[derive(Clone, Copy, Default)]
        struct Open {
            commas: usize,
            has_some: bool,
            is_object: bool,
        }
        let size = |open: &Open| {
            let length = open.commas + usize::from(open.has_some);
            let places = if length == 0 { 0 } else { length.next_power_of_two().max(FIRST_ROOM) };
            places * if open.is_object { MEMBER_BYTES } else { VALUE_BYTES }
        };
        let mut open: Vec<Open> = Vec::new();
        let (mut room, mut values, mut at) = (0, 0, 0);
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' | b':' => continue,
                b']' | b'}' => {
                    room += open.pop().map_or(0, |closed| size(&closed));
                    continue;
                }
                _ => {}
            }
            if let Some(outer) = open.last_mut() {
                outer.has_some = true;
                outer.commas += usize::from(byte == b',');
            }
            match byte {
                b',' => values += 1,
                b'[' | b'{' if open.len() < MAX_DEPTH => {
                    values += 1;
                    open.push(Open { is_object: byte == b'{', ..Open::default() });
                }
                // It is not read any further.
                b'[' | b'{' => break,
                b'"' => {
                    let start = at;
                    let mut is_escaped = false;
                    while let Some(next) = memchr::memchr2(b'"', b'\\', &bytes[at..]) {
                        at += next + 1;
                        if bytes[at - 1] == b'"' {
                            break;
                        }
                        is_escaped = true;
                        at += 1;
                        if at > bytes.len() {
                            break;
                        }
                    }
                    at = at.min(bytes.len());
                    if is_escaped {
                        room += at - start;
                    }
                }
                _ => {}
            }
            if values > MAX_VALUES {
                break;
            }
        }
        room + open.iter().map(size).sum::<usize>()
    }

    /// An object. `None` when a member appears twice.
    pub fn object(mut members: Vec<(Cow<'a, str>, Json<'a>)>) -> Result<Self, Cow<'a, str>> {
        members.sort_by(|(one, _), (other, _)| one.cmp(other));
        let twice = members.windows(2).find(|pair| pair[0].0 == pair[1].0).map(|pair| pair[0].0.clone());
        twice.map_or(Ok(Self::Object(members)), Err)
    }

    pub fn member(&self, name: &str) -> Option<&Json<'a>> {
        let Self::Object(members) = self else { return None };
        let at = members.binary_search_by(|(one, _)| (**one).cmp(name)).ok()?;
        Some(&members[at].1)
    }
}

impl Hash for Json<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Null => {}
            Self::Bool(value) => value.hash(state),
            Self::Number(value) => value.hash(state),
            Self::Text(value) => value.hash(state),
            Self::List(items) => items.hash(state),
            Self::Object(members) => members.hash(state),
        }
    }
}

impl<'de> serde::Deserialize<'de> for Json<'static> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Seed(&ReadLimits { values: Cell::new(MAX_VALUES), stop: &StopFlag::default() })
            .deserialize(deserializer)
            .map(owned)
    }
}

fn owned(value: Json<'_>) -> Json<'static> {
    match value {
        Json::Null => Json::Null,
        Json::Bool(value) => Json::Bool(value),
        Json::Number(value) => Json::Number(value),
        Json::Text(value) => Json::Text(Cow::Owned(value.into_owned())),
        Json::List(items) => Json::List(items.into_iter().map(owned).collect()),
        Json::Object(members) => {
            let member = |(name, value): (Cow<'_, str>, _)| (Cow::Owned(name.into_owned()), owned(value));
            Json::Object(members.into_iter().map(member).collect())
        }
    }
}

/// While these are not reached, values are read.
struct ReadLimits<'s> {
    /// How many values may still come.
    values: Cell<usize>,
    stop: &'s StopFlag,
}

/// Reads a value.
#[derive(Clone, Copy)]
struct Seed<'c>(&'c ReadLimits<'c>);

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Json<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json<'de>, D::Error> {
        let left = self.0.values.get().checked_sub(1);
        let left = left.ok_or_else(|| D::Error::custom(format!("it has more than {MAX_VALUES} values")))?;
        self.0.values.set(left);
        if left % VALUES_BETWEEN_LOOKS == 0 && self.0.stop.is_asked_for() {
            return Err(D::Error::custom("nobody waits for it"));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Json<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Json<'de>, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json<'de>, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json<'de>, E> {
        Ok(Json::Number(Number::Whole(value.into())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json<'de>, E> {
        Ok(Json::Number(Number::Whole(value.into())))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json<'de>, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json<'de>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some(name) = entries.next_key_seed(Name)? {
            members.push((name, entries.next_value_seed(self)?));
        }
        Json::object(members).map_err(|name| {
            let shown: String = name.chars().take(SHOWN_NAME).collect();
            A::Error::custom(format!("the member {shown:?} appears twice"))
        })
    }
}

struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a name")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_json_that_could_be_read_in_two_ways() {
        let read = |text: &[u8]| Json::read(text, &StopFlag::default()).map(owned);
        let problem = |text: &str| read(text.as_bytes()).unwrap_err();
        assert!(problem(r#"{"a":{"b":1,"\u0062":2}}"#).contains(r#"the member "b" appears twice"#));
        assert!(problem("[1e999]").contains("number out of range"));
        assert!(problem("{} {}").contains("trailing"));
        assert!(problem("NaN").contains("expected"));
        assert!(read(b"\"\xff\"").is_err());
        assert!(problem(&"[".repeat(100_000)).contains("recursion limit"));
    }

    #[test]
    fn values_are_counted() {
        let many = format!("[{}0]", "0,".repeat(MAX_VALUES));
        assert!(Json::read_owned(many.as_bytes()).unwrap_err().contains("more than 1000000 values"));
        assert!(Json::room(many.as_bytes()) >= MAX_VALUES * VALUE_BYTES);
    }

    /// What a value has on the heap, but for its texts, which are those of the body.
    fn held(value: &Json<'_>) -> usize {
        match value {
            Json::List(items) => items.capacity() * VALUE_BYTES + items.iter().map(held).sum::<usize>(),
            Json::Object(members) => {
                members.capacity() * MEMBER_BYTES + members.iter().map(|(_, value)| held(value)).sum::<usize>()
            }
            _ => 0,
        }
    }

    #[test]
    fn there_is_room_for_what_is_read_and_not_for_much_more() {
        let list = |item: &str, times: usize| format!("[{}]", vec![item; times].join(","));
        let members: Vec<String> = (0..1_000).map(|at| format!(r#""{at}":{at}"#)).collect();
        for text in [
            list("0", 1_025),
            list("{\"a\":1}", 1_025),
            list("[0]", 1_025),
            list("{\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5}", 513),
            list("[[[[0,1],2],3],4]", 513),
            list("\"a[{b:1,c}];\"", 1_025),
            list(r#"{"a\\":"\"[,,,,,,,,,,\""}"#, 1_025),
            list("[]", 9) + " \n",
            format!("{{{}}}", members.join(",")),
        ] {
            let held = held(&Json::read(text.as_bytes(), &StopFlag::default()).unwrap());
            let room = Json::room(text.as_bytes());
            assert!(room >= held, "{room} for {held} of {text:.40}");
            assert!(room <= held + text.len(), "{room} for {held} of {text:.40}");
        }
    }

    #[test]
    fn members_are_found_and_numbers_are_equal_by_value() {
        let value = Json::read_owned(br#"{"b":1.0,"a":[0,-0.0]}"#).unwrap();
        assert_eq!(value.member("b"), Some(&Json::Number(Number::Whole(1))));
        assert_eq!(
            value.member("a"),
            Some(&Json::List(vec![Json::Number(Number::Whole(0)), Json::Number(0.0.into())]))
        );
        assert_eq!(value.member("c"), None);
    }
}
