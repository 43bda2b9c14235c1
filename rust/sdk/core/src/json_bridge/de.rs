//! serde's reading side over a [`Node`].
//!
//! Each method asks only for what its type can be, and leaves everything else to [`De::mismatch`], which is not
//! generic: a visitor's unused methods are then never compiled. The generic methods are not inlined: merged into one
//! function for a whole type, they take a third longer to optimise, for no measurable speed.

mod parts;

use super::error::Error;
use super::node::Node;
use crate::values::one_of_names;
use parts::{Elements, Members, Variant};
use serde::de::{Deserializer, Error as _, Expected, Unexpected, Visitor};

/// The names of fields or variants.
type Names = &'static [&'static str];

/// Reads one node.
#[derive(Clone, Copy)]
pub struct De<'n>(pub &'n Node<'n>);

impl<'n> De<'n> {
    #[inline(never)]
    fn mismatch(self, expected: &dyn Expected) -> Error {
        let unexpected = match self.0 {
            Node::Null => Unexpected::Other("null"),
            Node::Bool(value) => Unexpected::Bool(*value),
            Node::Unsigned(value) => Unexpected::Unsigned(*value),
            Node::Signed(value) => Unexpected::Signed(*value),
            Node::Float(value) => Unexpected::Float(*value),
            Node::Bit(value) => Unexpected::Unsigned((*value).into()),
            Node::Text(value) => Unexpected::Str(value),
            Node::List(_) => Unexpected::Other("array"),
            Node::Members(_) => Unexpected::Other("object"),
        };
        Error::invalid_type(unexpected, expected)
    }

    /// The error for what is neither the name of a variant nor an object with one as its only member.
    #[inline(never)]
    fn no_variant(self, names: Names) -> Error {
        match self.0 {
            Node::Members(_) => self.mismatch(&"a string, or an object with one member"),
            _ => self.mismatch(&one_of_names(names).as_str()),
        }
    }

    #[inline(never)]
    fn integer(self) -> Option<Integer> {
        match *self.0 {
            Node::Unsigned(value) => Some(Integer::Unsigned(value)),
            Node::Signed(value) => Some(Integer::Signed(value)),
            Node::Bit(value) => Some(Integer::Unsigned(value.into())),
            _ => None,
        }
    }

    #[inline(never)]
    fn float(self) -> Option<f64> {
        match (self.0, self.integer()) {
            (Node::Float(value), _) => Some(*value),
            (_, Some(Integer::Unsigned(value))) => Some(value as f64),
            (_, Some(Integer::Signed(value))) => Some(value as f64),
            _ => None,
        }
    }

    #[inline(never)]
    fn text(self) -> Option<&'n str> {
        match self.0 {
            Node::Text(text) => Some(text),
            _ => None,
        }
    }

    #[inline(never)]
    fn elements(self) -> Option<Elements<'n>> {
        match self.0 {
            Node::List(nodes) => Some(Elements { nodes, next: 0 }),
            _ => None,
        }
    }

    #[inline(never)]
    fn members(self) -> Option<Members<'n>> {
        match self.0 {
            Node::Members(members) => Some(Members { members, next: 0 }),
            _ => None,
        }
    }
}

enum Integer {
    Unsigned(u64),
    Signed(i64),
}

fn visit_integer<'n, V: Visitor<'n>>(visitor: V, value: Integer) -> Result<V::Value, Error> {
    match value {
        Integer::Unsigned(value) => visitor.visit_u64(value),
        Integer::Signed(value) => visitor.visit_i64(value),
    }
}

/// The methods that read a kind of scalar, what reads it from the node, and what visits it.
macro_rules! scalars {
    ($($get:ident => $visit:path: $($method:ident)*;)*) => {$($(
        #[inline(never)]
        fn $method<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Error> {
            match self.$get() {
                Some(value) => $visit(visitor, value),
                None => Err(self.mismatch(&visitor)),
            }
        }
    )*)*};
}

impl<'n> Deserializer<'n> for De<'n> {
    type Error = Error;

    scalars!(
        integer => visit_integer:
            deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
            deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128;
        float => Visitor::visit_f64: deserialize_f32 deserialize_f64;
        text => Visitor::visit_borrowed_str:
            deserialize_char deserialize_str deserialize_string deserialize_identifier;
    );

    fn deserialize_any<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Node::Null => visitor.visit_unit(),
            Node::Bool(value) => visitor.visit_bool(*value),
            Node::Unsigned(value) => visitor.visit_u64(*value),
            Node::Signed(value) => visitor.visit_i64(*value),
            Node::Float(value) => visitor.visit_f64(*value),
            Node::Bit(value) => visitor.visit_u64((*value).into()),
            Node::Text(text) => visitor.visit_borrowed_str(text),
            Node::List(_) => self.deserialize_seq(visitor),
            Node::Members(_) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Node::Bool(value) | Node::Bit(value) => visitor.visit_bool(*value),
            _ => Err(self.mismatch(&visitor)),
        }
    }

    fn deserialize_bytes<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.text() {
            Some(text) => visitor.visit_borrowed_bytes(text.as_bytes()),
            None => self.deserialize_seq(visitor),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_bytes(visitor)
    }

    #[inline(never)]
    fn deserialize_option<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Node::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Node::Null => visitor.visit_unit(),
            _ => Err(self.mismatch(&visitor)),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'n>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'n>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    #[inline(never)]
    fn deserialize_seq<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.elements() {
            Some(mut elements) => {
                let value = visitor.visit_seq(&mut elements)?;
                elements.finish()?;
                Ok(value)
            }
            None => Err(self.mismatch(&visitor)),
        }
    }

    fn deserialize_tuple<V: Visitor<'n>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'n>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    #[inline(never)]
    fn deserialize_map<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.members() {
            Some(mut members) => visitor.visit_map(&mut members),
            None => Err(self.mismatch(&visitor)),
        }
    }

    /// A struct is read from an object only. serde_json takes an array too, and every derived struct would carry the
    /// code for it.
    fn deserialize_struct<V: Visitor<'n>>(self, _: &'static str, _: Names, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'n>>(self, _: &'static str, names: Names, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Node::Text(name) => visitor.visit_enum(Variant { name, content: None }),
            Node::Members(members) if members.len() == 1 => {
                let (name, content) = &members[0];
                visitor.visit_enum(Variant { name, content: Some(content) })
            }
            _ => Err(self.no_variant(names)),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }
}
