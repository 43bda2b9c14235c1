//! Frames of clients of WebSockets.
use super::codec::{ClientMessage, Codec, SocketClose};

const MAX_BYTES: usize = 1_000;

/// Messages come out in the same way however they arrive, none longer than it may be. The first byte says in which
/// pieces.
pub fn frames(bytes: &[u8]) {
    let Some((&piece, bytes)) = bytes.split_first() else { return };
    assert_eq!(received(bytes, bytes.len().max(1)), received(bytes, usize::from(piece).max(1)));
}

/// The messages up to a close, and how the socket is closed when the client violates the protocol.
fn received(bytes: &[u8], piece: usize) -> (Vec<ClientMessage>, Option<SocketClose>) {
    let (mut codec, mut arrived, mut messages) = (Codec::new(MAX_BYTES), Vec::new(), Vec::new());
    for part in bytes.chunks(piece) {
        arrived.extend_from_slice(part);
        loop {
            match codec.read(&mut arrived) {
                Ok(Some(close @ ClientMessage::Close(_))) => {
                    messages.push(close);
                    return (messages, None);
                }
                Ok(Some(message)) => {
                    if let ClientMessage::Text(payload) | ClientMessage::Binary(payload) = &message {
                        assert!(payload.len() <= MAX_BYTES, "a message is longer than it may be");
                    }
                    if let ClientMessage::Text(text) = &message {
                        assert!(std::str::from_utf8(text).is_ok(), "a text is not UTF-8");
                    }
                    messages.push(message);
                }
                Ok(None) => break,
                Err(closing) => return (messages, Some(closing)),
            }
        }
    }
    (messages, None)
}
