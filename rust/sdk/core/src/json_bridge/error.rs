//! The error of reading JSON. Its text and place are kept beside it, in the thread.
//!
//! serde hands errors through every generic function it instantiates. An empty error type costs those functions
//! nothing.

use crate::values::one_of_names;
use serde::de;
use std::cell::RefCell;
use std::fmt;

/// Reading failed; [`take_context`] says why.
#[derive(Debug, Clone, Copy)]
pub struct Error;

/// Why, and where.
pub struct Context {
    pub problem: Problem,
    /// The name of a missing field; else what is wrong, in words that say nothing of Rust.
    pub message: String,
    /// Keys and indices from the outermost to the failing value: `items[0].price`. Empty for the document itself.
    pub path: String,
}

/// What kind of thing is wrong.
#[derive(Clone, Copy)]
pub enum Problem {
    /// It is not JSON.
    Syntax,
    /// A field that must be there is not.
    Missing,
    /// A value is not what it should be.
    Value,
}

impl Context {
    const fn none() -> Self {
        Context { problem: Problem::Value, message: String::new(), path: String::new() }
    }
}

thread_local! {
    static CONTEXT: RefCell<Context> = const { RefCell::new(Context::none()) };
}

/// The context of the last error on this thread.
pub fn take_context() -> Context {
    CONTEXT.replace(Context::none())
}

/// Notes that a document is not JSON.
pub fn syntax(error: &serde_json::Error) {
    // "ident" is serde_json's word for true, false and null.
    let message = error.to_string().replacen("expected ident", "expected value", 1);
    CONTEXT.set(Context { problem: Problem::Syntax, message, path: String::new() });
}

impl Error {
    /// An error with this message. It replaces the context of the error before.
    #[inline(never)]
    pub fn new(message: &dyn fmt::Display) -> Error {
        Error::with(Problem::Value, message.to_string())
    }

    fn with(problem: Problem, message: String) -> Error {
        CONTEXT.set(Context { problem, message, path: String::new() });
        Error
    }

    /// The same error, inside the member `key`.
    #[inline(never)]
    pub fn in_member(self, key: &str) -> Error {
        self.prefix_path(key)
    }

    /// The same error, inside the element `index`.
    #[inline(never)]
    pub fn in_element(self, index: usize) -> Error {
        self.prefix_path(&format!("[{index}]"))
    }

    fn prefix_path(self, parent: &str) -> Error {
        CONTEXT.with_borrow_mut(|Context { path, .. }| {
            if !path.is_empty() && !path.starts_with('[') {
                path.insert(0, '.');
            }
            path.insert_str(0, parent);
        });
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        CONTEXT.with_borrow(|context| f.write_str(&context.message))
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Error::new(&message)
    }

    // serde's own versions of these would be compiled in every handler.
    fn invalid_type(unexpected: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Error::new(&format_args!("expected {}, got {unexpected}", in_plain_words(expected)))
    }

    fn invalid_value(unexpected: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Error::new(&format_args!("expected {}, got {unexpected}", in_plain_words(expected)))
    }

    fn invalid_length(length: usize, expected: &dyn de::Expected) -> Self {
        Error::new(&format_args!("expected {}, got {length} elements", in_plain_words(expected)))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Error::new(&format_args!("{variant:?} is not {}", one_of_names(expected)))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Error::new(&format_args!("{field:?} is not a field; expected {}", one_of_names(expected)))
    }

    fn missing_field(field: &'static str) -> Self {
        Error::with(Problem::Missing, field.to_owned())
    }

    fn duplicate_field(field: &'static str) -> Self {
        Error::new(&format_args!("the field {field} appears twice"))
    }
}

/// What a type expects, without the words of Rust for it.
fn in_plain_words(expected: &dyn de::Expected) -> String {
    let words = expected.to_string();
    let plain = match words.as_str() {
        "f32" | "f64" => "a number",
        "i8" => "an integer from -128 to 127",
        "i16" => "an integer from -32768 to 32767",
        "i32" => "an integer from -2147483648 to 2147483647",
        "i64" | "i128" | "isize" => "an integer",
        "u8" => "an integer from 0 to 255",
        "u16" => "an integer from 0 to 65535",
        "u32" => "an integer from 0 to 4294967295",
        "u64" | "u128" | "usize" => "an integer that is not negative",
        "a sequence" => "an array",
        "a map" => "an object",
        "unit" => "null",
        _ if words.starts_with("struct ") && !words.contains(" with ") => "an object",
        _ => return words,
    };
    plain.to_owned()
}
