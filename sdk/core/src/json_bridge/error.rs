//! The error of reading JSON. Its text and place are kept beside it, in the thread.
//!
//! serde hands errors through every generic function it instantiates. An empty error type costs those functions
//! nothing.

use serde::de;
use std::cell::RefCell;
use std::fmt;

/// Reading failed; [`take_context`] says why.
#[derive(Debug, Clone, Copy)]
pub struct Error;

/// Why, and where.
pub struct Context {
    pub message: String,
    /// Keys and indices from the outermost to the failing value: `items[0].price`. Empty for the document itself.
    pub path: String,
}

thread_local! {
    static CONTEXT: RefCell<Context> = const { RefCell::new(Context { message: String::new(), path: String::new() }) };
}

/// The context of the last error on this thread.
pub fn take_context() -> Context {
    CONTEXT.replace(Context { message: String::new(), path: String::new() })
}

impl Error {
    /// An error with this message. It replaces the context of the error before.
    #[inline(never)]
    pub fn new(message: &dyn fmt::Display) -> Error {
        let message = message.to_string();
        CONTEXT.set(Context { message, path: String::new() });
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
        Error::new(&format_args!("invalid type: {unexpected}, expected {expected}"))
    }

    fn invalid_value(unexpected: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Error::new(&format_args!("invalid value: {unexpected}, expected {expected}"))
    }

    fn invalid_length(length: usize, expected: &dyn de::Expected) -> Self {
        Error::new(&format_args!("invalid length {length}, expected {expected}"))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Error::new(&format_args!("unknown variant `{variant}`, expected {}", one_of(expected)))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Error::new(&format_args!("unknown field `{field}`, expected {}", one_of(expected)))
    }

    fn missing_field(field: &'static str) -> Self {
        Error::new(&format_args!("missing field `{field}`"))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Error::new(&format_args!("duplicate field `{field}`"))
    }
}

fn one_of(names: &[&str]) -> String {
    match names {
        [] => "nothing here".to_owned(),
        [one] => format!("`{one}`"),
        many => format!("one of `{}`", many.join("`, `")),
    }
}
