//! What travels between the gateway and a handler process. Pure: no sockets, no threads.
//!
//! [`frame`] cuts a byte stream into frames; [`head`] turns the JSON head of a frame into a [`crate::Request`] and a
//! [`crate::Response`] into the bytes of an answer; [`takes`] says which kinds a handler takes. The gateway's end is
//! `rust/front`, which shares [`frame`]; the tests read the golden frames of `test/golden/frames.json`.

pub mod buffer;
pub mod frame;
pub mod head;
pub mod takes;
