//! What is wrong with a type.

/// Why a contract cannot be written: a text for whoever has changed the types.
pub type Problem = String;
