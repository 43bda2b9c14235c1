//! serde's writing side: every `Serialize` of a handler is compiled once, for [`To`], whatever is being written.

use super::trouble::Failed;
use serde::ser::{self, Serialize, Serializer};
use std::fmt::Display;

/// Takes the parts of a JSON document in order.
pub trait Sink {
    fn null(&mut self) -> Result<(), Failed>;
    fn bool(&mut self, value: bool) -> Result<(), Failed>;
    fn signed(&mut self, value: i64) -> Result<(), Failed>;
    fn unsigned(&mut self, value: u64) -> Result<(), Failed>;
    fn big_signed(&mut self, value: i128) -> Result<(), Failed>;
    fn big_unsigned(&mut self, value: u128) -> Result<(), Failed>;
    /// A number, or `null` if it is not finite.
    fn short_float(&mut self, value: f32) -> Result<(), Failed>;
    fn float(&mut self, value: f64) -> Result<(), Failed>;
    fn text(&mut self, value: &str) -> Result<(), Failed>;
    /// The next text is not a string but JSON, to be taken as it is.
    fn next_is_raw(&mut self);
    fn begin_list(&mut self) -> Result<(), Failed>;
    fn end_list(&mut self) -> Result<(), Failed>;
    fn begin_object(&mut self) -> Result<(), Failed>;
    fn end_object(&mut self) -> Result<(), Failed>;
    /// Between these two stands one scalar, the key of the member whose value follows.
    fn begin_key(&mut self) -> Result<(), Failed>;
    fn end_key(&mut self) -> Result<(), Failed>;
    /// A key that is known to be a string.
    fn key(&mut self, key: &str) -> Result<(), Failed>;
}

/// Writes one value to a sink.
pub struct To<'a>(pub &'a mut dyn Sink);

/// serde_json wraps JSON text that must be written as it is in a struct of one of these names.
const RAW_STRUCTS: [&str; 2] = ["$serde_json::private::Number", "$serde_json::private::RawValue"];

impl<'a> To<'a> {
    #[inline(never)]
    fn list(self, end: End) -> Result<Parts<'a>, Failed> {
        self.0.begin_list()?;
        Ok(Parts { sink: self.0, end })
    }

    #[inline(never)]
    fn object(self, end: End) -> Result<Parts<'a>, Failed> {
        self.0.begin_object()?;
        Ok(Parts { sink: self.0, end })
    }

    /// `{"variant":` of an enum variant with content.
    #[inline(never)]
    fn variant(self, name: &str) -> Result<To<'a>, Failed> {
        self.0.begin_object()?;
        self.0.key(name)?;
        Ok(self)
    }
}

impl<'a> Serializer for To<'a> {
    type Ok = ();
    type Error = Failed;
    type SerializeSeq = Parts<'a>;
    type SerializeTuple = Parts<'a>;
    type SerializeTupleStruct = Parts<'a>;
    type SerializeTupleVariant = Parts<'a>;
    type SerializeMap = Parts<'a>;
    type SerializeStruct = Parts<'a>;
    type SerializeStructVariant = Parts<'a>;

    fn serialize_bool(self, value: bool) -> Result<(), Failed> {
        self.0.bool(value)
    }

    fn serialize_i8(self, value: i8) -> Result<(), Failed> {
        self.0.signed(value.into())
    }

    fn serialize_i16(self, value: i16) -> Result<(), Failed> {
        self.0.signed(value.into())
    }

    fn serialize_i32(self, value: i32) -> Result<(), Failed> {
        self.0.signed(value.into())
    }

    fn serialize_i64(self, value: i64) -> Result<(), Failed> {
        self.0.signed(value)
    }

    fn serialize_i128(self, value: i128) -> Result<(), Failed> {
        self.0.big_signed(value)
    }

    fn serialize_u8(self, value: u8) -> Result<(), Failed> {
        self.0.unsigned(value.into())
    }

    fn serialize_u16(self, value: u16) -> Result<(), Failed> {
        self.0.unsigned(value.into())
    }

    fn serialize_u32(self, value: u32) -> Result<(), Failed> {
        self.0.unsigned(value.into())
    }

    fn serialize_u64(self, value: u64) -> Result<(), Failed> {
        self.0.unsigned(value)
    }

    fn serialize_u128(self, value: u128) -> Result<(), Failed> {
        self.0.big_unsigned(value)
    }

    fn serialize_f32(self, value: f32) -> Result<(), Failed> {
        self.0.short_float(value)
    }

    fn serialize_f64(self, value: f64) -> Result<(), Failed> {
        self.0.float(value)
    }

    fn serialize_char(self, value: char) -> Result<(), Failed> {
        self.0.text(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), Failed> {
        self.0.text(value)
    }

    /// Bytes are an array of numbers, as in serde_json.
    fn serialize_bytes(self, bytes: &[u8]) -> Result<(), Failed> {
        self.0.begin_list()?;
        for &byte in bytes {
            self.0.unsigned(byte.into())?;
        }
        self.0.end_list()
    }

    fn serialize_none(self) -> Result<(), Failed> {
        self.0.null()
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Result<(), Failed> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Failed> {
        self.0.null()
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Failed> {
        self.0.null()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Failed> {
        self.0.text(variant)
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(self, _: &'static str, value: &T) -> Result<(), Failed> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Failed> {
        let To(sink) = self.variant(variant)?;
        value.serialize(To(&mut *sink))?;
        sink.end_object()
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Parts<'a>, Failed> {
        self.list(End::List)
    }

    fn serialize_tuple(self, _: usize) -> Result<Parts<'a>, Failed> {
        self.list(End::List)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Parts<'a>, Failed> {
        self.list(End::List)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Parts<'a>, Failed> {
        self.variant(variant)?.list(End::ListInVariant)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Parts<'a>, Failed> {
        self.object(End::Object)
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Parts<'a>, Failed> {
        if RAW_STRUCTS.contains(&name) {
            return Ok(Parts { sink: self.0, end: End::Raw });
        }
        self.object(End::Object)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Parts<'a>, Failed> {
        self.variant(variant)?.object(End::ObjectInVariant)
    }

    fn collect_str<T: ?Sized + Display>(self, value: &T) -> Result<(), Failed> {
        self.serialize_str(&value.to_string())
    }
}

/// How an opened list or object is closed.
#[derive(Clone, Copy)]
enum End {
    List,
    Object,
    ListInVariant,
    ObjectInVariant,
    /// Nothing was opened.
    Raw,
}

/// The elements or members of an opened list or object.
pub struct Parts<'a> {
    sink: &'a mut dyn Sink,
    end: End,
}

impl Parts<'_> {
    #[inline(never)]
    fn finish(self) -> Result<(), Failed> {
        match self.end {
            End::List => self.sink.end_list(),
            End::Object => self.sink.end_object(),
            End::ListInVariant => {
                self.sink.end_list()?;
                self.sink.end_object()
            }
            End::ObjectInVariant => {
                self.sink.end_object()?;
                self.sink.end_object()
            }
            End::Raw => Ok(()),
        }
    }

    /// Where the value of the member `key` goes.
    #[inline(never)]
    fn member(&mut self, key: &'static str) -> Result<To<'_>, Failed> {
        match self.end {
            End::Raw => self.sink.next_is_raw(),
            _ => self.sink.key(key)?,
        }
        Ok(To(self.sink))
    }
}

macro_rules! lists {
    ($($trait:ident $method:ident)*) => {$(
        impl ser::$trait for Parts<'_> {
            type Ok = ();
            type Error = Failed;

            #[inline(never)]
fn $method<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Failed> {
                value.serialize(To(self.sink))
            }

            fn end(self) -> Result<(), Failed> {
                self.finish()
            }
        }
    )*};
}

lists!(
    SerializeSeq serialize_element
    SerializeTuple serialize_element
    SerializeTupleStruct serialize_field
    SerializeTupleVariant serialize_field
);

macro_rules! structs {
    ($($trait:ident)*) => {$(
        impl ser::$trait for Parts<'_> {
            type Ok = ();
            type Error = Failed;

            #[inline(never)]
fn serialize_field<T: ?Sized + Serialize>(&mut self, key: &'static str, value: &T) -> Result<(), Failed> {
                value.serialize(self.member(key)?)
            }

            fn end(self) -> Result<(), Failed> {
                self.finish()
            }
        }
    )*};
}

structs!(SerializeStruct SerializeStructVariant);

impl ser::SerializeMap for Parts<'_> {
    type Ok = ();
    type Error = Failed;

    fn serialize_key<T: ?Sized + Serialize>(&mut self, key: &T) -> Result<(), Failed> {
        self.sink.begin_key()?;
        key.serialize(To(self.sink))?;
        self.sink.end_key()
    }

    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Failed> {
        value.serialize(To(self.sink))
    }

    fn end(self) -> Result<(), Failed> {
        self.finish()
    }
}
