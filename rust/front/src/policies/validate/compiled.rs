//! The policy as the supervisor sends it, inside a text of its own. `src/contracts/front-validate.ts` is made from it.
use std::collections::BTreeMap;

use serde::Deserialize;

use super::json::Json;
use super::number::Number;

/// A schema: its place in the list of all.
pub type Index = u32;

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    Report,
    Enforce,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompiledValidate {
    pub mode: Mode,
    pub parameters: Vec<Parameter>,
    pub body: Option<CompiledBody>,
    pub schemas: Vec<CompiledSchema>,
}

/// The part of the policy that is read at once.
#[derive(Deserialize)]
pub struct ModeOnly {
    pub mode: Mode,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    Path,
    Query,
    Header,
    Cookie,
}

impl Source {
    /// Its name in the places of problems.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
            Self::Cookie => "cookie",
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum ParameterStyle {
    Simple,
    Label,
    Matrix,
    Form,
    SpaceDelimited,
    PipeDelimited,
    DeepObject,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Parameter {
    #[serde(rename = "in")]
    pub source: Source,
    pub name: Box<str>,
    pub required: bool,
    pub style: ParameterStyle,
    pub explode: bool,
    pub allow_empty: bool,
    /// The value is a JSON text.
    pub is_json: bool,
    pub shape: Shape,
}

/// How a value is read from text.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    pub schema: Index,
    /// Empty: of any type.
    pub types: Types,
    pub items: Option<Box<Shape>>,
    #[serde(default)]
    pub members: BTreeMap<Box<str>, Shape>,
    /// The shapes of members whose names fit a pattern.
    #[serde(default)]
    pub patterns: Vec<PatternShape>,
    /// The shape of other members.
    pub others: Option<Box<Shape>>,
}

impl Shape {
    /// What it takes of memory, roughly.
    pub fn bytes(&self) -> usize {
        let members = self.members.iter().map(|(name, shape)| name.len() + shape.bytes());
        let patterns = self.patterns.iter().map(|pattern| pattern.shape.bytes());
        let boxed = [&self.items, &self.others].into_iter().flatten().map(|shape| shape.bytes());
        // An entry of a map takes some more than what is in it.
        2 * size_of::<Self>() + members.sum::<usize>() + patterns.sum::<usize>() + boxed.sum::<usize>()
    }
}

/// The shape of members whose names fit a pattern: that at a place in the list of a schema.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatternShape {
    pub schema: Index,
    pub at: usize,
    pub shape: Shape,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompiledBody {
    pub required: bool,
    pub types: Vec<MediaType>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MediaType {
    /// The media type in lower case, without parameters; it may end with `/*`.
    #[serde(rename = "type")]
    pub name: Box<str>,
    pub read: BodyFormat,
    pub shape: Option<Shape>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum BodyFormat {
    Json,
    Form,
    Text,
    Nothing,
}

/// `true` and `false` allow everything and nothing.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum CompiledSchema {
    Is(bool),
    Keywords(Box<Keywords>),
}

/// A pattern as the library takes it, as it is shown, and how large its automaton is.
#[derive(Deserialize)]
pub struct CompiledPattern(pub String, pub Box<str>, pub u32);

/// The keywords of a schema, by their names. Those that are not known here would not be enforced.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Keywords {
    #[serde(rename = "type")]
    pub types: Option<Types>,
    #[serde(rename = "enum")]
    pub values: Option<Vec<Json<'static>>>,
    /// A list of the one value, because that may be null.
    #[serde(rename = "const")]
    pub constant: Option<(Json<'static>,)>,
    pub multiple_of: Option<Number>,
    pub maximum: Option<Number>,
    pub exclusive_maximum: Option<Number>,
    pub minimum: Option<Number>,
    pub exclusive_minimum: Option<Number>,
    pub max_length: Option<u64>,
    pub min_length: Option<u64>,
    pub pattern: Option<CompiledPattern>,
    pub format: Option<String>,
    pub max_items: Option<u64>,
    pub min_items: Option<u64>,
    pub unique_items: bool,
    pub contains: Option<Index>,
    pub max_contains: Option<u64>,
    pub min_contains: Option<u64>,
    pub prefix_items: Vec<Index>,
    pub items: Option<Index>,
    pub unevaluated_items: Option<Index>,
    pub max_properties: Option<u64>,
    pub min_properties: Option<u64>,
    pub required: Vec<Box<str>>,
    pub dependent_required: BTreeMap<Box<str>, Vec<Box<str>>>,
    pub properties: BTreeMap<Box<str>, Index>,
    pub pattern_properties: Vec<(CompiledPattern, Index)>,
    pub additional_properties: Option<Index>,
    pub property_names: Option<Index>,
    pub unevaluated_properties: Option<Index>,
    pub dependent_schemas: BTreeMap<Box<str>, Index>,
    #[serde(rename = "$ref")]
    pub reference: Option<Index>,
    pub all_of: Vec<Index>,
    pub any_of: Vec<Index>,
    pub one_of: Vec<Index>,
    pub not: Option<Index>,
    #[serde(rename = "if")]
    pub condition: Option<Index>,
    pub then: Option<Index>,
    #[serde(rename = "else")]
    pub otherwise: Option<Index>,
}

/// A set of types of JSON.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(try_from = "Vec<String>")]
pub struct Types(u8);

const NAMES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

impl Types {
    pub const NULL: Self = Self(1);
    pub const BOOLEAN: Self = Self(2);
    pub const INTEGER: Self = Self(4);
    pub const NUMBER: Self = Self(8);
    pub const TEXT: Self = Self(16);
    pub const LIST: Self = Self(32);
    pub const OBJECT: Self = Self(64);

    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn are_scalar(self) -> bool {
        self.has(Self(0b1_1111))
    }

    /// The types that a value has.
    pub fn of(value: &Json<'_>) -> Self {
        match value {
            Json::Null => Self::NULL,
            Json::Bool(_) => Self::BOOLEAN,
            Json::Number(number) if number.is_whole() => Self(Self::INTEGER.0 | Self::NUMBER.0),
            Json::Number(_) => Self::NUMBER,
            Json::Text(_) => Self::TEXT,
            Json::List(_) => Self::LIST,
            Json::Object(_) => Self::OBJECT,
        }
    }

    /// The names of the types for messages, as JSON Schema calls them.
    pub fn names(self) -> String {
        let named = NAMES.iter().enumerate().filter(|(at, _)| self.0 & 1 << at != 0);
        named.map(|(_, name)| *name).collect::<Vec<_>>().join(" or ")
    }
}

impl TryFrom<Vec<String>> for Types {
    type Error = String;

    fn try_from(names: Vec<String>) -> Result<Self, String> {
        let bit = |name: &String| NAMES.iter().position(|known| known == name).map(|at| 1 << at);
        let mut bits = names.iter().map(|name| bit(name).ok_or_else(|| format!("the type {name} is not known")));
        bits.try_fold(0, |all, bit| Ok(all | bit?)).map(Self)
    }
}
