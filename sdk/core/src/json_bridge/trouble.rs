//! The error of reading and writing, kept aside.
//!
//! serde hands errors through every generic function it instantiates. An empty error type costs those functions nothing;
//! the text waits in the thread until [`take`] fetches it.

use serde::{de, ser};
use std::cell::RefCell;
use std::fmt;

/// Something failed; [`take`] says what.
#[derive(Debug, Clone, Copy)]
pub struct Failed;

#[derive(Default)]
struct Trouble {
    message: String,
    /// Keys and indices from the outermost to the failing value: `items[0].price`.
    path: String,
}

thread_local! {
    static TROUBLE: RefCell<Trouble> = const { RefCell::new(Trouble { message: String::new(), path: String::new() }) };
}

/// The path and the message of the last failure on this thread.
pub fn take() -> (String, String) {
    let trouble = TROUBLE.take();
    (trouble.path, trouble.message)
}

impl Failed {
    /// Fails with a message, forgetting the failure before.
    #[inline(never)]
    pub fn because(message: &dyn fmt::Display) -> Failed {
        let message = message.to_string();
        let path = String::new();
        TROUBLE.set(Trouble { message, path });
        Failed
    }

    /// Tells that the failure lies inside the member `key`.
    #[inline(never)]
    pub fn in_member(self, key: &str) -> Failed {
        TROUBLE.with_borrow_mut(|trouble| {
            let dot = match trouble.path.as_bytes().first() {
                None | Some(b'[') => "",
                Some(_) => ".",
            };
            trouble.path.insert_str(0, dot);
            trouble.path.insert_str(0, key);
        });
        self
    }

    /// Tells that the failure lies inside the element `index`.
    #[inline(never)]
    pub fn in_element(self, index: usize) -> Failed {
        TROUBLE.with_borrow_mut(|trouble| {
            let dot = match trouble.path.as_bytes().first() {
                None | Some(b'[') => "",
                Some(_) => ".",
            };
            trouble.path.insert_str(0, &format!("[{index}]{dot}"));
        });
        self
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        TROUBLE.with_borrow(|trouble| f.write_str(&trouble.message))
    }
}

impl std::error::Error for Failed {}

impl de::Error for Failed {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Failed::because(&message)
    }

    // The defaults are generic in nothing, but are compiled where they are used: say the frequent ones here.
    fn invalid_type(unexpected: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Failed::because(&format_args!("invalid type: {unexpected}, expected {expected}"))
    }

    fn invalid_value(unexpected: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Failed::because(&format_args!("invalid value: {unexpected}, expected {expected}"))
    }

    fn invalid_length(length: usize, expected: &dyn de::Expected) -> Self {
        Failed::because(&format_args!("invalid length {length}, expected {expected}"))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Failed::because(&format_args!("unknown variant `{variant}`, expected {}", one_of(expected)))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Failed::because(&format_args!("unknown field `{field}`, expected {}", one_of(expected)))
    }

    fn missing_field(field: &'static str) -> Self {
        Failed::because(&format_args!("missing field `{field}`"))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Failed::because(&format_args!("duplicate field `{field}`"))
    }
}

fn one_of(names: &[&str]) -> String {
    match names {
        [] => "nothing here".to_owned(),
        [one] => format!("`{one}`"),
        many => format!("one of `{}`", many.join("`, `")),
    }
}

impl ser::Error for Failed {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Failed::because(&message)
    }
}
