//! Frames of handlers.
use edge_wire::{DecodeResult, decode};

use super::incoming::Incoming;
use super::response_head::HandlerResponseHead;

/// Frames are the same however they arrive.
pub fn frames(bytes: &[u8]) {
    let mut whole = Vec::new();
    let mut rest = bytes;
    let mut is_wrong = false;
    loop {
        match decode(rest) {
            Ok(DecodeResult::Frame(frame, taken)) => {
                whole.push((frame.number, frame.head.to_vec(), frame.body.to_vec()));
                rest = &rest[taken..];
            }
            Ok(_) => break,
            Err(_) => {
                is_wrong = true;
                break;
            }
        }
    }
    let mut arrived = Vec::new();
    let mut incoming = Incoming::default();
    let mut has_failed = false;
    for piece in bytes.chunks(1 + bytes.len() / 7) {
        let mut together = vec![0; incoming.held()];
        incoming.unhold(&mut together);
        together.extend_from_slice(piece);
        let read = incoming.read(&together, |frame| {
            arrived.push((frame.number, frame.head.to_vec(), frame.body.to_vec()));
        });
        if read.is_err() || incoming.needed().is_err() || incoming.room().is_err() {
            has_failed = true;
            break;
        }
    }
    assert_eq!((whole, is_wrong), (arrived, has_failed));
}

/// Lines for clients are lines: nothing in them ends one early.
pub fn response_heads(bytes: &[u8]) {
    let Ok(head) = HandlerResponseHead::parse(bytes) else { return };
    assert!((101..=999).contains(&head.status));
    for lines in [&head.lines, &head.host_lines] {
        if lines.is_empty() {
            continue;
        }
        assert!(lines.ends_with(b"\r\n"));
        for line in lines[..lines.len() - 2].split(|&byte| byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            assert!(!line.is_empty() && !line.contains(&b'\r') && !line.contains(&0), "{:?}", line.escape_ascii());
            assert!(line.contains(&b':'));
        }
    }
}
