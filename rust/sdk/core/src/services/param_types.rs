//! Which types can be parameters, and lists of them.

use super::params::Params;
use serde_json::Value;
use std::borrow::Cow;

/// A value that can be a parameter of a statement or a command.
///
/// | type | is sent as |
/// |---|---|
/// | `i8` ... `i64`, `isize`, `u8` ... `u64`, `usize` | integer, exact |
/// | `f32`, `f64` | number; NaN and the infinities are refused |
/// | `bool` | true or false |
/// | `&str`, `String`, `Cow<str>`, `char` | text |
/// | `&[u8]`, `[u8; N]`, `Vec<u8>`, `Cow<[u8]>` | bytes |
/// | `Option<T>` | NULL, or the value |
/// | `()` | NULL |
/// | `JsonValue` | a scalar as what it is, an array or object as JSON |
/// | `&T`, `Box<T>` | what it points at |
///
/// A type of your own says what it is by another one:
///
/// ```
/// use rust_edge_gateway_sdk_core::services::{Params, ToParam};
///
/// struct Isbn(String);
///
/// impl ToParam for Isbn {
///     fn add_to(&self, params: &mut Params) {
///         self.0.add_to(params);
///     }
/// }
/// ```
pub trait ToParam {
    /// Adds the value to the list.
    fn add_to(&self, params: &mut Params);
}

/// What can be all parameters of a statement or a command: `()` or `&[]` for none; an array, slice or `Vec` of values
/// of one type; a tuple of up to 16 of any types; a JSON array; or a reference to one of these.
///
/// A `Vec<u8>` in the place of the whole list is a list of integers; as one parameter, `(bytes,)`, it is bytes.
pub trait IntoParams {
    /// Adds all values to the list.
    fn add_all_to(&self, params: &mut Params);
}

macro_rules! scalars {
    ($($method:ident: $($type:ty)*;)*) => {$($(
        impl ToParam for $type {
            fn add_to(&self, params: &mut Params) {
                params.$method((*self).into());
            }
        }
    )*)*};
}

scalars!(
    bool: bool;
    integer: i8 i16 i32 i64;
    unsigned: u8 u16 u32 u64;
    float: f32 f64;
);

impl ToParam for isize {
    fn add_to(&self, params: &mut Params) {
        params.integer(*self as i64);
    }
}

impl ToParam for usize {
    fn add_to(&self, params: &mut Params) {
        params.unsigned(*self as u64);
    }
}

impl ToParam for () {
    fn add_to(&self, params: &mut Params) {
        params.null();
    }
}

impl ToParam for char {
    fn add_to(&self, params: &mut Params) {
        params.text(self.encode_utf8(&mut [0; 4]));
    }
}

impl ToParam for str {
    fn add_to(&self, params: &mut Params) {
        params.text(self);
    }
}

impl ToParam for String {
    fn add_to(&self, params: &mut Params) {
        params.text(self);
    }
}

impl ToParam for [u8] {
    fn add_to(&self, params: &mut Params) {
        params.blob(self);
    }
}

impl<const N: usize> ToParam for [u8; N] {
    fn add_to(&self, params: &mut Params) {
        params.blob(self);
    }
}

impl ToParam for Vec<u8> {
    fn add_to(&self, params: &mut Params) {
        params.blob(self);
    }
}

impl ToParam for Value {
    fn add_to(&self, params: &mut Params) {
        params.json(self);
    }
}

impl<T: ToParam> ToParam for Option<T> {
    fn add_to(&self, params: &mut Params) {
        match self {
            Some(value) => value.add_to(params),
            None => params.null(),
        }
    }
}

impl<T: ToParam + ?Sized> ToParam for &T {
    fn add_to(&self, params: &mut Params) {
        (**self).add_to(params);
    }
}

impl<T: ToParam + ?Sized> ToParam for Box<T> {
    fn add_to(&self, params: &mut Params) {
        (**self).add_to(params);
    }
}

impl<T: ToParam + ToOwned + ?Sized> ToParam for Cow<'_, T> {
    fn add_to(&self, params: &mut Params) {
        (**self).add_to(params);
    }
}

impl<T: IntoParams + ?Sized> IntoParams for &T {
    fn add_all_to(&self, params: &mut Params) {
        (**self).add_all_to(params);
    }
}

impl IntoParams for () {
    fn add_all_to(&self, _: &mut Params) {}
}

impl IntoParams for Value {
    fn add_all_to(&self, params: &mut Params) {
        params.json_list(self);
    }
}

impl<T: ToParam> IntoParams for [T] {
    fn add_all_to(&self, params: &mut Params) {
        self.iter().for_each(|value| value.add_to(params));
    }
}

impl<T: ToParam> IntoParams for Vec<T> {
    fn add_all_to(&self, params: &mut Params) {
        self.as_slice().add_all_to(params);
    }
}

/// It is there for one type only: in `&[]` there is nothing else from which the compiler could know it.
impl IntoParams for [&str; 0] {
    fn add_all_to(&self, _: &mut Params) {}
}

macro_rules! arrays {
    ($($length:literal)*) => {$(
        impl<T: ToParam> IntoParams for [T; $length] {
            fn add_all_to(&self, params: &mut Params) {
                self.as_slice().add_all_to(params);
            }
        }
    )*};
}

arrays!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32);

macro_rules! tuples {
    () => {};
    ($First:ident $first:ident $($Rest:ident $rest:ident)*) => {
        impl<$First: ToParam, $($Rest: ToParam),*> IntoParams for ($First, $($Rest,)*) {
            fn add_all_to(&self, params: &mut Params) {
                let ($first, $($rest,)*) = self;
                $first.add_to(params);
                $($rest.add_to(params);)*
            }
        }
        tuples!($($Rest $rest)*);
    };
}

tuples!(A a B b C c D d E e F f G g H h I i J j K k L l M m N n O o P p);
