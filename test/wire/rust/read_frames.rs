//! Decodes cases from stdin with the SDK's codec. Each case is a length of 4 bytes and so many bytes; its result is a
//! line of JSON: its frames, and how it ended. Frames are encoded again, so that the other side can compare.

#[path = "../../../rust/sdk/core/src/wire/buffer.rs"]
#[allow(dead_code)]
mod buffer;
#[path = "../../../rust/sdk/core/src/wire/frame.rs"]
#[allow(dead_code)]
mod frame;

use std::io::{self, Read, Write};

/// What a buffer may hold beyond twice what has arrived.
const SLACK_BYTES: usize = 256 * 1024;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read(case: &[u8], piece: usize) -> String {
    let mut buffer = buffer::Buffer::new();
    let mut frames = Vec::new();
    let mut arrived = 0;
    let mut taken = 0;
    for bytes in case.chunks(piece) {
        buffer.extend(bytes);
        arrived += bytes.len();
        loop {
            // The other side has no frames of streams.
            if case[..arrived].get(taken) == Some(&frame::STREAM_VERSION) {
                return line(&frames, "version");
            }
            match buffer.next_frame() {
                Ok(Some(found)) => {
                    taken += frame::HEADER_BYTES + found.head.len() + found.body.len();
                    let header = frame::header(found.kind, found.number, found.head.len(), found.body.len());
                    frames.push(format!("\"{}\"", hex(&[&header[..], found.head, found.body].concat())));
                }
                Ok(None) => break,
                Err(error) => return line(&frames, error.code()),
            }
        }
        assert!(buffer.room().len() <= 2 * arrived + SLACK_BYTES, "room for more than has arrived");
    }
    line(&frames, if buffer.is_mid_frame() { "incomplete" } else { "complete" })
}

fn line(frames: &[String], end: &str) -> String {
    format!("{{\"frames\":[{}],\"end\":\"{end}\"}}\n", frames.join(","))
}

fn main() -> io::Result<()> {
    let mut input = Vec::new();
    io::stdin().read_to_end(&mut input)?;
    let mut output = String::new();
    let mut rest = &input[..];
    let mut piece = 1;
    while !rest.is_empty() {
        let length = u32::from_be_bytes(rest[..4].try_into().expect("four bytes")) as usize;
        output += &read(&rest[4..4 + length], piece);
        rest = &rest[4 + length..];
        piece = piece % 97 + 1;
    }
    io::stdout().write_all(output.as_bytes())
}
