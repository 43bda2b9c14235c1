//! The frames of `docs/SERVICE-PROTOCOL.md`, and of requests to handlers, from the sources of the SDK: one codec for
//! both ends.
#[allow(dead_code)]
#[path = "../../sdk/core/src/wire/frame.rs"]
mod frame;

pub use frame::{
    DecodeResult, Frame, FrameError, HEADER_BYTES, INITIAL_CREDIT, Kind, MAX_BODY_BYTES, MAX_CONTROL_BYTES, MAX_CREDIT,
    MAX_DATA_BYTES, MAX_HEAD_BYTES, MEMORY_BYTES, MIN_SHARED_BYTES, cost, credit, credited, decode, header, memory,
    parse_header, two_numbers,
};

/// What is wrong with a frame, in the words of `src/wire/codec.ts`.
pub fn problem_of(error: FrameError) -> String {
    let too_long =
        |part: &str, length: u32, limit: usize| format!("{part} length {length} is over the limit of {limit}");
    match error {
        FrameError::Version(version) => format!("Unknown protocol version {version}"),
        FrameError::Kind(kind) => format!("Unknown frame kind {kind}"),
        FrameError::Reserved(_) => "Reserved bytes are not 0".to_owned(),
        FrameError::HeadTooLong(length, limit) => too_long("Head", length, limit),
        FrameError::BodyTooLong(length, limit) => too_long("Body", length, limit),
    }
}
