//! The frames of `docs/SERVICE-PROTOCOL.md`, from the sources of the SDK: one codec for both ends.
#[allow(dead_code)]
#[path = "../../../sdk/core/src/wire/buffer.rs"]
mod buffer;
#[allow(dead_code)]
#[path = "../../../sdk/core/src/wire/frame.rs"]
mod frame;

pub use buffer::Buffer;
pub use frame::{FrameError, Kind, header};
