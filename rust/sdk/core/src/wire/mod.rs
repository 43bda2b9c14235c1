//! What travels between the gateway and a handler process. Pure: no sockets, no threads.
//!
//! [`frame`] cuts a byte stream into frames; [`head`] turns the JSON head of a frame into a [`crate::Request`] and a
//! [`crate::Response`] into the bytes of an answer. The other end is written in TypeScript; both read the same golden
//! frames, `test/golden/frames.json`.

pub mod buffer;
pub mod frame;
pub mod head;
