//! Frames of handlers.
use super::call_head::{parse_call, parse_token};
use super::incoming::Incoming;

/// Frames come out in the same way however they arrive, and whatever their heads are can be read or refused. The first
/// byte says in which pieces.
pub fn frames(bytes: &[u8]) {
    let Some((&piece, bytes)) = bytes.split_first() else { return };
    assert_eq!(received(bytes, bytes.len().max(1)), received(bytes, usize::from(piece).max(1)));
}

/// Numbers and lengths of the frames, and why nothing more is read.
fn received(bytes: &[u8], piece: usize) -> (Vec<(u32, usize, usize)>, Option<String>) {
    let (mut incoming, mut frames) = (Incoming::default(), Vec::new());
    for mut part in bytes.chunks(piece) {
        while !part.is_empty() {
            let room = incoming.room();
            let count = part.len().min(room.capacity() - room.len());
            assert!(count > 0, "there is no room");
            room.extend_from_slice(&part[..count]);
            part = &part[count..];
            loop {
                match incoming.next_frame() {
                    Ok(Some(frame)) => {
                        if let Ok(call) = parse_call(frame.head) {
                            assert!(call.deadline_ms != Some(0));
                            call.problem_of_args();
                        }
                        let _ = parse_token(frame.head);
                        frames.push((frame.number, frame.head.len(), frame.body.len()));
                    }
                    Ok(None) => break,
                    Err(error) => return (frames, Some(format!("{error:?}"))),
                }
            }
        }
    }
    (frames, None)
}
