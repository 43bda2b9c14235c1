//! Reads `{"sql", "params"}` as `JSON.parse` and the schema of the other SQL databases do: of members with the same
//! name the last one counts, and texts may have lone surrogates.
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use serde::Deserializer;
use serde::de::{Deserialize, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Up to the maximum of unsigned 64 bit integers.
const INTEGER_DIGITS: usize = 20;
const WRONG_PARAM: &str = "must be null, true, false, a number, a text, \
     {\"int\": \"<integer>\"}, {\"blob\": \"<base64>\"} or {\"json\": \"<JSON text>\"}";

/// A parameter, as a database takes it.
pub trait Param: Sized {
    /// What a statement can have of them.
    const MAX: usize;

    fn null() -> Self;
    fn boolean(value: bool) -> Self;
    /// A number, as its JSON.
    fn number(json: &str) -> Self;
    /// An integer of any size up to that of 64 bits without a sign, as its digits.
    fn integer(digits: String) -> Self;
    /// A text, which may be JSON.
    fn text(text: String) -> Self;
    fn bytes(bytes: Vec<u8>) -> Self;
}

/// What a call has sent.
pub struct Payload<'a, P> {
    pub sql: Cow<'a, str>,
    pub params: Params<P>,
}

/// Parameters of a statement.
pub struct Params<P> {
    /// The values, at most one more than a statement can have: those of too many are of no use.
    pub values: Vec<P>,
    /// Number of all.
    pub count: usize,
    /// The index of the first that is none.
    wrong: Option<usize>,
}

impl<P> Default for Params<P> {
    fn default() -> Self {
        Self { values: Vec::new(), count: 0, wrong: None }
    }
}

/// Reads a payload; returns the error for the handler otherwise.
pub fn read<P: Param>(text: &str) -> Result<Payload<'_, P>, String> {
    let not_json = |error: serde_json::Error| format!("payload: must be JSON: {error}");
    if text.trim_start_matches([' ', '\t', '\n', '\r']).as_bytes().first() != Some(&b'{') {
        let value: &RawValue = serde_json::from_str(text).map_err(not_json)?;
        return Err(format!("payload: must be an object, not {}", kind_of(value.get())));
    }
    let members: Members<P> = serde_json::from_str(text).map_err(not_json)?;
    // First: a misspelt member explains why another one is missing.
    if let Some(name) = members.unknown {
        let path = if is_number(&name) { format!("[{name}]") } else { format!(".{name}") };
        return Err(format!("payload{path}: is not accepted; possible are sql, params"));
    }
    let Some(sql) = members.sql else { return Err("payload.sql: is required".to_owned()) };
    let sql = text_of(sql).ok_or_else(|| format!("payload.sql: must be a string, not {}", kind_of(sql)))?;
    // The protocol ends texts with this character. Only an escape can have brought it here.
    if matches!(sql, Cow::Owned(_)) && sql.contains('\0') {
        return Err("payload.sql: must not have the character U+0000".to_owned());
    }
    let params = members.params.map_err(|kind| format!("payload.params: must be an array, not {kind}"))?;
    match params.wrong {
        Some(index) => Err(format!("payload.params[{index}]: {WRONG_PARAM}")),
        None => Ok(Payload { sql, params }),
    }
}

/// The members of a payload. Values are kept as their JSON, and read when they are needed.
struct Members<'a, P> {
    sql: Option<&'a str>,
    /// The kind of a value that is no array otherwise.
    params: Result<Params<P>, &'static str>,
    /// The name of the first member that should not be there.
    unknown: Option<Cow<'a, str>>,
}

impl<'de, P: Param> Deserialize<'de> for Members<'de, P> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor(PhantomData))
    }
}

struct MembersVisitor<P>(PhantomData<P>);

impl<'de, P: Param> Visitor<'de> for MembersVisitor<P> {
    type Value = Members<'de, P>;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Members { sql: None, params: Ok(Params::default()), unknown: None };
        while let Some(Name(name)) = map.next_key()? {
            match &*name {
                "sql" => members.sql = Some(map.next_value::<&RawValue>()?.get()),
                "params" => {
                    // Its JSON is read once to find its end, and once for its values: an error within is one of JSON.
                    let json = map.next_value::<&RawValue>()?.get();
                    members.params = match json.as_bytes().first() {
                        Some(b'[') => Ok(serde_json::from_str(json).map_err(serde::de::Error::custom)?),
                        _ => Err(kind_of(json)),
                    };
                }
                _ => {
                    map.next_value::<&RawValue>()?;
                    if members.unknown.as_deref().is_none_or(|first| precedes(&name, first)) {
                        members.unknown = Some(name);
                    }
                }
            }
        }
        Ok(members)
    }
}

/// Objects of JavaScript begin with the members that have indexes as names, in their order.
fn precedes(name: &str, other: &str) -> bool {
    match (index_of(name), index_of(other)) {
        (Some(index), Some(other)) => index < other,
        (index, _) => index.is_some(),
    }
}

fn index_of(name: &str) -> Option<u32> {
    let is_canonical = is_number(name) && (name == "0" || !name.starts_with('0'));
    if is_canonical { name.parse().ok().filter(|&index| index < u32::MAX) } else { None }
}

fn is_number(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}

/// The name of a member, borrowed unless it has escapes.
struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;
        impl<'de> Visitor<'de> for NameVisitor {
            type Value = Name<'de>;
            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Borrowed(name)))
            }
            fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_str(NameVisitor)
    }
}

impl<'de, P: Param> Deserialize<'de> for Params<P> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ParamsVisitor<P>(PhantomData<P>);
        impl<'de, P: Param> Visitor<'de> for ParamsVisitor<P> {
            type Value = Params<P>;
            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("an array")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Params<P>, A::Error> {
                let mut params = Params::default();
                while let Some(element) = elements.next_element::<&RawValue>()? {
                    if params.wrong.is_none() {
                        match param(element.get()) {
                            Some(value) if params.values.len() <= P::MAX => params.values.push(value),
                            Some(_) => {}
                            None => params.wrong = Some(params.count),
                        }
                    }
                    params.count += 1;
                }
                Ok(params)
            }
        }
        deserializer.deserialize_seq(ParamsVisitor(PhantomData))
    }
}

/// Reads a parameter from its JSON.
fn param<P: Param>(json: &str) -> Option<P> {
    match json.as_bytes().first()? {
        b'n' => Some(P::null()),
        &first @ (b't' | b'f') => Some(P::boolean(first == b't')),
        b'"' => text_of(json).map(|text| P::text(text.into_owned())),
        b'{' => special(json),
        b'[' => None,
        _ => Some(P::number(json)),
    }
}

/// `{"int": ...}`, `{"blob": ...}` or `{"json": ...}`
fn special<P: Param>(json: &str) -> Option<P> {
    let (name, content) = serde_json::from_str::<Only>(json).ok()?.0?;
    let content = text_of(content)?;
    match &*name {
        "int" => integer(&content).map(P::integer),
        "blob" => decode_base64(&content).map(P::bytes),
        "json" => Some(P::text(content.into_owned())),
        _ => None,
    }
}

/// The only member of an object, and its JSON.
struct Only<'a>(Option<(Cow<'a, str>, &'a str)>);

impl<'de> Deserialize<'de> for Only<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OnlyVisitor;
        impl<'de> Visitor<'de> for OnlyVisitor {
            type Value = Only<'de>;
            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Only<'de>, A::Error> {
                let mut only: Option<(Cow<'de, str>, &'de str)> = None;
                let mut has_others = false;
                while let Some(Name(name)) = map.next_key()? {
                    let content = map.next_value::<&RawValue>()?.get();
                    has_others |= only.as_ref().is_some_and(|(known, _)| *known != name);
                    only = Some((name, content));
                }
                Ok(Only(if has_others { None } else { only }))
            }
        }
        deserializer.deserialize_map(OnlyVisitor)
    }
}

/// The digits of an integer, without superfluous ones.
fn integer(text: &str) -> Option<String> {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    if !is_number(digits) || digits.len() > INTEGER_DIGITS {
        return None;
    }
    match digits.trim_start_matches('0') {
        "" => Some("0".to_owned()),
        significant => Some(format!("{sign}{significant}")),
    }
}

/// Decodes base64 with padding, also with the letters of its variant for URLs.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    const CONFIG: GeneralPurposeConfig = GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true);
    const ENGINE: GeneralPurpose = GeneralPurpose::new(&STANDARD, CONFIG);
    if text.contains(['-', '_']) {
        return ENGINE.decode(text.replace('-', "+").replace('_', "/")).ok();
    }
    ENGINE.decode(text).ok()
}

/// The content of a text, from its JSON; none when it is another value. Borrowed unless it has escapes.
fn text_of(json: &str) -> Option<Cow<'_, str>> {
    let content = json.strip_prefix('"')?.strip_suffix('"')?;
    if !content.contains('\\') {
        return Some(Cow::Borrowed(content));
    }
    let text = serde_json::from_str::<String>(json).or_else(|_| serde_json::from_str(&without_lone_surrogates(json)));
    text.ok().map(Cow::Owned)
}

/// Replaces escapes of lone surrogates by that of U+FFFD, as which they would be sent.
fn without_lone_surrogates(json: &str) -> String {
    let mut replaced = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        replaced.push_str(before);
        let unit = unit_of(escape);
        let is_pair = matches!(unit, Some(0xd800..=0xdbff))
            && escape.get(6..).and_then(unit_of).is_some_and(|low| (0xdc00..=0xdfff).contains(&low));
        // The character after a backslash is ASCII in JSON.
        let (kept, length) = match unit {
            Some(_) if is_pair => (&escape[..12], 12),
            Some(0xd800..=0xdfff) => ("\\ufffd", 6),
            Some(_) => (&escape[..6], 6),
            None => (escape.get(..2).unwrap_or(escape), 2),
        };
        replaced.push_str(kept);
        rest = escape.get(length..).unwrap_or("");
    }
    replaced.push_str(rest);
    replaced
}

/// The number of an escape `\uXXXX` at the start of a text.
fn unit_of(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

/// A value's kind, from its JSON, with an article.
fn kind_of(json: &str) -> &'static str {
    match json.as_bytes().first() {
        Some(b'n') => "null",
        Some(b't' | b'f') => "a boolean",
        Some(b'"') => "a string",
        Some(b'[') => "an array",
        Some(b'{') => "an object",
        _ => "a number",
    }
}
