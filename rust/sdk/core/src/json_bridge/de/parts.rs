//! The parts of a node that has some: the elements of an array, the members of an object, and the variant of an enum,
//! which is written as a string or as an object of one member.

use super::{De, Names};
use crate::json_bridge::error::Error;
use crate::json_bridge::node::Node;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use std::borrow::Cow;

/// Walks an array.
pub struct Elements<'n> {
    pub nodes: &'n [Node<'n>],
    pub next: usize,
}

impl<'n> Elements<'n> {
    #[inline(never)]
    fn advance(&mut self) -> Option<De<'n>> {
        let node = self.nodes.get(self.next)?;
        self.next += 1;
        Some(De(node))
    }

    /// All elements of an array must have been read: a tuple may be shorter.
    #[inline(never)]
    pub fn finish(&self) -> Result<(), Error> {
        if self.next == self.nodes.len() {
            return Ok(());
        }
        let expected = format!("{} elements", self.next);
        Err(Error::invalid_length(self.nodes.len(), &expected.as_str()))
    }
}

impl<'n> SeqAccess<'n> for &mut Elements<'n> {
    type Error = Error;

    #[inline(never)]
    fn next_element_seed<T: DeserializeSeed<'n>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        match self.advance() {
            None => Ok(None),
            Some(element) => match seed.deserialize(element) {
                Ok(value) => Ok(Some(value)),
                Err(error) => Err(error.in_element(self.next - 1)),
            },
        }
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.nodes.len() - self.next)
    }
}

/// Walks an object.
pub struct Members<'n> {
    pub members: &'n [(Cow<'n, str>, Node<'n>)],
    /// The member whose key is read next; its value has been read when the next key is.
    pub next: usize,
}

impl<'n> Members<'n> {
    #[inline(never)]
    fn advance(&mut self) -> Option<Name<'n>> {
        let (key, _) = self.members.get(self.next)?;
        self.next += 1;
        Some(Name(key))
    }

    #[inline(never)]
    fn current(&self) -> (&'n str, De<'n>) {
        let (key, node) = &self.members[self.next - 1];
        (key, De(node))
    }
}

impl<'n> MapAccess<'n> for &mut Members<'n> {
    type Error = Error;

    #[inline(never)]
    fn next_key_seed<K: DeserializeSeed<'n>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        match self.advance() {
            None => Ok(None),
            Some(name) => match seed.deserialize(name) {
                Ok(key) => Ok(Some(key)),
                Err(error) => Err(error),
            },
        }
    }

    #[inline(never)]
    fn next_value_seed<V: DeserializeSeed<'n>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let (key, value) = self.current();
        match seed.deserialize(value) {
            Ok(value) => Ok(value),
            Err(error) => Err(error.in_member(key)),
        }
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.members.len() - self.next)
    }
}

/// Reads the key of an object: a string, or what a string can be parsed as.
struct Name<'n>(&'n str);

macro_rules! parsed_names {
    ($($method:ident $visit:ident $type:ty;)*) => {$(
        fn $method<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Error> {
            match self.0.parse::<$type>() {
                Ok(value) => visitor.$visit(value),
                Err(_) => Err(Error::invalid_value(Unexpected::Str(self.0), &visitor)),
            }
        }
    )*};
}

impl<'n> Deserializer<'n> for Name<'n> {
    type Error = Error;

    parsed_names!(
        deserialize_bool visit_bool bool;
        deserialize_i8 visit_i64 i64;
        deserialize_i16 visit_i64 i64;
        deserialize_i32 visit_i64 i64;
        deserialize_i64 visit_i64 i64;
        deserialize_i128 visit_i128 i128;
        deserialize_u8 visit_u64 u64;
        deserialize_u16 visit_u64 u64;
        deserialize_u32 visit_u64 u64;
        deserialize_u64 visit_u64 u64;
        deserialize_u128 visit_u128 u128;
        deserialize_f32 visit_f64 f64;
        deserialize_f64 visit_f64 f64;
    );

    fn deserialize_any<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_borrowed_str(self.0)
    }

    #[inline(never)]
    fn deserialize_option<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'n>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'n>>(self, _: &'static str, _: Names, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_enum(Variant { name: self.0, content: None })
    }

    forward_to_deserialize_any! {
        <V: Visitor<'n>>
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// An enum's variant: its name and its content.
pub struct Variant<'n> {
    pub name: &'n str,
    pub content: Option<&'n Node<'n>>,
}

impl<'n> Variant<'n> {
    #[inline(never)]
    fn content(self) -> Result<De<'n>, Error> {
        match self.content {
            Some(node) => Ok(De(node)),
            None => Err(Error::new(&format_args!("variant `{}` needs a value", self.name))),
        }
    }
}

impl<'n> EnumAccess<'n> for Variant<'n> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'n>>(self, seed: V) -> Result<(V::Value, Self), Error> {
        match seed.deserialize(Name(self.name)) {
            Ok(value) => Ok((value, self)),
            Err(error) => Err(error),
        }
    }
}

impl<'n> VariantAccess<'n> for Variant<'n> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        match self.content {
            None | Some(Node::Null) => Ok(()),
            Some(node) => Err(De(node).mismatch(&"unit variant")),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'n>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self.content()?)
    }

    fn tuple_variant<V: Visitor<'n>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.content()?.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'n>>(self, _: Names, visitor: V) -> Result<V::Value, Error> {
        self.content()?.deserialize_map(visitor)
    }
}
