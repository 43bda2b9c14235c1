//! The policy `validate`: parameters and bodies of requests are checked by JSON Schemas. They are made ready when a
//! request needs them, which waits for it; before that, and when others need the memory, there is only their text.
//! That, and checks of large bodies, is work for threads of their own.
mod compiled;
mod evaluate;
mod finish;
mod formats;
#[cfg(fuzzing)]
pub mod fuzzing;
mod json;
mod kept_head;
mod number;
mod parameters;
mod problems;
mod ready;
mod rules;
mod schema;
mod stop;
mod text;
mod times;
mod uris;
mod validator;
mod verdict;

pub use finish::finish;
pub use ready::PartialCheck;
pub use validator::Validator;
pub use verdict::{CheckSkipped, Verdict};

#[cfg(test)]
mod tests;
