//! `json!`, and the parts its expansion calls.

use serde_json::Map;
pub use serde_json::Value;
use std::mem::ManuallyDrop;

/// A JSON object being built. All its code is here, the dropping included: a handler compiles calls of it only.
#[doc(hidden)]
pub struct ObjectBuilder(ManuallyDrop<Map<String, Value>>);

impl ObjectBuilder {
    #[allow(clippy::new_without_default)]
    #[inline(never)]
    pub fn new() -> Self {
        ObjectBuilder(ManuallyDrop::new(Map::new()))
    }

    #[inline(never)]
    pub fn put(&mut self, key: &str, value: Value) {
        self.0.insert(key.to_owned(), value);
    }

    /// Adds a member whose key is not a string literal: anything `String` can be made from, as in serde_json.
    pub fn put_into(&mut self, key: impl Into<String>, value: Value) {
        self.put_string(key.into(), value);
    }

    #[inline(never)]
    fn put_string(&mut self, key: String, value: Value) {
        self.0.insert(key, value);
    }

    #[inline(never)]
    pub fn finish(mut self) -> Value {
        Value::Object(std::mem::take(&mut *self.0))
    }
}

impl Drop for ObjectBuilder {
    #[inline(never)]
    fn drop(&mut self) {
        // SAFETY: dropped here and nowhere else; the wrapper is never used again.
        unsafe { ManuallyDrop::drop(&mut self.0) }
    }
}

/// A JSON array being built; see [`ObjectBuilder`].
#[doc(hidden)]
pub struct ArrayBuilder(ManuallyDrop<Vec<Value>>);

impl ArrayBuilder {
    #[allow(clippy::new_without_default)]
    #[inline(never)]
    pub fn new() -> Self {
        ArrayBuilder(ManuallyDrop::new(Vec::new()))
    }

    #[inline(never)]
    pub fn put(&mut self, value: Value) {
        self.0.push(value);
    }

    #[inline(never)]
    pub fn finish(mut self) -> Value {
        Value::Array(std::mem::take(&mut *self.0))
    }
}

impl Drop for ArrayBuilder {
    #[inline(never)]
    fn drop(&mut self) {
        // SAFETY: dropped here and nowhere else; the wrapper is never used again.
        unsafe { ManuallyDrop::drop(&mut self.0) }
    }
}

/// A `serde_json::Value` written as JSON, with expressions wherever JSON has a value.
///
/// Accepts what serde_json's macro of the same name accepts, and compiles faster: see the module's notes.
///
/// ```
/// use rust_edge_gateway_sdk_core::prelude::*;
/// let tags = vec!["new", "blue"];
/// let value = json!({"id": 7, "tags": tags, "parent": null, "size": {"w": 1.5, "h": [1, 2]}});
/// assert_eq!(value["tags"][1], "blue");
/// ```
///
/// # Panics
/// If an expression's value cannot be JSON: a map whose keys are not strings, or a `Serialize` that fails.
#[macro_export]
macro_rules! json {
    ($($json:tt)+) => { $crate::__json_value!($($json)+) };
}

/// One JSON value.
#[doc(hidden)]
#[macro_export]
macro_rules! __json_value {
    (null) => { $crate::__private::Value::Null };
    ([ $($elements:tt)* ]) => {{
        #[allow(unused_mut)]
        let mut list = $crate::__private::ArrayBuilder::new();
        $crate::__json_elements!(list $($elements)*);
        list.finish()
    }};
    ({ $($members:tt)* }) => {{
        #[allow(unused_mut)]
        let mut object = $crate::__private::ObjectBuilder::new();
        $crate::__json_members!(object () $($members)*);
        object.finish()
    }};
    ($value:expr) => { $crate::__private::to_value(&$value) };
}

/// The elements of an array, one by one.
#[doc(hidden)]
#[macro_export]
macro_rules! __json_elements {
    ($list:ident) => {};
    ($list:ident null $(, $($rest:tt)*)?) => {
        $list.put($crate::__private::Value::Null);
        $($crate::__json_elements!($list $($rest)*);)?
    };
    ($list:ident [ $($inner:tt)* ] $(, $($rest:tt)*)?) => {
        $list.put($crate::__json_value!([ $($inner)* ]));
        $($crate::__json_elements!($list $($rest)*);)?
    };
    ($list:ident { $($inner:tt)* } $(, $($rest:tt)*)?) => {
        $list.put($crate::__json_value!({ $($inner)* }));
        $($crate::__json_elements!($list $($rest)*);)?
    };
    ($list:ident $value:expr $(, $($rest:tt)*)?) => {
        $list.put($crate::__private::to_value(&$value));
        $($crate::__json_elements!($list $($rest)*);)?
    };
}

/// The members of an object, one by one. The parentheses hold the tokens of a key that has not ended yet.
#[doc(hidden)]
#[macro_export]
macro_rules! __json_members {
    ($object:ident ()) => {};
    // A key is complete: its value is next.
    ($object:ident ($($key:tt)+) : null $(, $($rest:tt)*)?) => {
        $crate::__json_put!($object ($($key)+) $crate::__private::Value::Null);
        $($crate::__json_members!($object () $($rest)*);)?
    };
    ($object:ident ($($key:tt)+) : [ $($inner:tt)* ] $(, $($rest:tt)*)?) => {
        $crate::__json_put!($object ($($key)+) $crate::__json_value!([ $($inner)* ]));
        $($crate::__json_members!($object () $($rest)*);)?
    };
    ($object:ident ($($key:tt)+) : { $($inner:tt)* } $(, $($rest:tt)*)?) => {
        $crate::__json_put!($object ($($key)+) $crate::__json_value!({ $($inner)* }));
        $($crate::__json_members!($object () $($rest)*);)?
    };
    ($object:ident ($($key:tt)+) : $value:expr $(, $($rest:tt)*)?) => {
        $crate::__json_put!($object ($($key)+) $crate::__private::to_value(&$value));
        $($crate::__json_members!($object () $($rest)*);)?
    };
    // The key continues.
    ($object:ident ($($key:tt)*) $next:tt $($rest:tt)*) => {
        $crate::__json_members!($object ($($key)* $next) $($rest)*);
    };
}

/// Puts one member into an object.
#[doc(hidden)]
#[macro_export]
macro_rules! __json_put {
    ($object:ident ($key:literal) $value:expr) => { $object.put($key, $value) };
    ($object:ident (($key:expr)) $value:expr) => { $object.put_into($key, $value) };
    ($object:ident ($($key:tt)+) $value:expr) => { $object.put_into($($key)+, $value) };
}
