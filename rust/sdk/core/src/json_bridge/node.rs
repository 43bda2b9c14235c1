//! A parsed JSON document: like `serde_json::Value`, but keeping order and duplicates, and borrowing its strings.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

/// One JSON value.
#[derive(Debug)]
pub enum Node<'a> {
    Null,
    Bool(bool),
    Unsigned(u64),
    /// Negative integers only.
    Signed(i64),
    Float(f64),
    /// 0 or 1 from a database, which may have no booleans: an integer that may be read as one.
    Bit(bool),
    Text(Cow<'a, str>),
    List(Vec<Node<'a>>),
    Members(Vec<(Cow<'a, str>, Node<'a>)>),
}

/// With serde_json's `arbitrary_precision`, which a handler's own dependencies may switch on for everybody, a number
/// arrives as a map with this one key and the digits as its value.
const PRECISE_NUMBER: &str = "$serde_json::private::Number";

impl<'de> Deserialize<'de> for Node<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node<'de>, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node<'de>, E> {
        Ok(Node::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node<'de>, E> {
        Ok(Node::Unsigned(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node<'de>, E> {
        Ok(u64::try_from(value).map_or(Node::Signed(value), Node::Unsigned))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node<'de>, E> {
        Ok(Node::Float(value))
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_string<E>(self, value: String) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Owned(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node<'de>, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = list.next_element()? {
            nodes.push(node);
        }
        Ok(Node::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some(Key(key)) = map.next_key()? {
            if key == PRECISE_NUMBER {
                let digits: String = map.next_value()?;
                return number(&digits).ok_or_else(|| A::Error::custom("number out of range"));
            }
            members.push((key, map.next_value()?));
        }
        Ok(Node::Members(members))
    }
}

impl<'a> Node<'a> {
    /// A value that has been parsed before.
    pub fn of(value: &'a Value) -> Node<'a> {
        match value {
            Value::Null => Node::Null,
            Value::Bool(value) => Node::Bool(*value),
            Value::Number(digits) => match (digits.as_u64(), digits.as_i64()) {
                (Some(value), _) => Node::Unsigned(value),
                (_, Some(value)) => Node::Signed(value),
                _ => Node::Float(digits.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => Node::Text(Cow::Borrowed(text)),
            Value::Array(values) => Node::List(values.iter().map(Node::of).collect()),
            Value::Object(members) => Node::Members(of_members(members, Node::of)),
        }
    }

    /// A value from a column of a database.
    pub fn of_column(value: &'a Value) -> Node<'a> {
        match Node::of(value) {
            Node::Unsigned(bit @ 0..=1) => Node::Bit(bit == 1),
            node => node,
        }
    }

    /// A row of a database.
    pub fn of_row(row: &'a HashMap<String, Value>) -> Node<'a> {
        let mut members = of_members(row, Node::of_column);
        // If several values do not fit, the error should always name the same.
        members.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        Node::Members(members)
    }
}

fn of_members<'a>(
    members: impl IntoIterator<Item = (&'a String, &'a Value)>,
    node: fn(&'a Value) -> Node<'a>,
) -> Vec<(Cow<'a, str>, Node<'a>)> {
    members.into_iter().map(|(key, value)| (Cow::Borrowed(key.as_str()), node(value))).collect()
}

fn number(digits: &str) -> Option<Node<'static>> {
    if let Ok(value) = digits.parse() {
        return Some(Node::Unsigned(value));
    }
    if let Ok(value) = digits.parse() {
        return Some(Node::Signed(value));
    }
    digits.parse().ok().filter(|value: &f64| value.is_finite()).map(Node::Float)
}

/// serde's own `Cow<str>` never borrows outside of derives.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;

        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(value)))
            }

            fn visit_str<E>(self, value: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(value.to_owned())))
            }

            fn visit_string<E>(self, value: String) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(value)))
            }
        }

        deserializer.deserialize_str(KeyVisitor)
    }
}
