//! [`Message`]: what a WebSocket carries, and how it becomes frames and is made of them.

use crate::wire::frame::{Kind, MAX_CONTROL_BYTES};
use std::io;

/// Longest reason of a [`CloseFrame`], in bytes of UTF-8; a longer one is cut.
const MAX_REASON_BYTES: usize = MAX_CONTROL_BYTES - 2;

/// A message of a WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Text.
    Text(String),
    /// Any bytes.
    Binary(Vec<u8>),
    /// Asks the client for a [`Message::Pong`] with the same bytes, at most 125. It is only sent: the gateway answers
    /// those of clients, and asks by itself whether a client is still connected.
    Ping(Vec<u8>),
    /// The answer of the client to the last [`Message::Ping`] of this handler. One that is sent asks for nothing.
    Pong(Vec<u8>),
    /// Ends the socket: nothing follows in this direction. Clients that leave without it end it, too.
    Close(Option<CloseFrame>),
}

/// Why a WebSocket is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloseFrame {
    /// 1000: it has done its work. 4000 to 4999 are for applications (RFC 6455, section 7.4).
    pub code: u16,
    /// The reason, at most 123 bytes; a longer one is cut.
    pub reason: String,
}

impl CloseFrame {
    /// Makes one.
    pub fn new(code: u16, reason: impl Into<String>) -> Self {
        CloseFrame { code, reason: reason.into() }
    }
}

impl From<&str> for Message {
    fn from(text: &str) -> Self {
        Message::Text(text.to_owned())
    }
}

impl From<String> for Message {
    fn from(text: String) -> Self {
        Message::Text(text)
    }
}

impl From<Vec<u8>> for Message {
    fn from(bytes: Vec<u8>) -> Self {
        Message::Binary(bytes)
    }
}

impl Message {
    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Message::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What it is on the wire, and its payload.
    pub(crate) fn into_frame(self) -> io::Result<(Kind, Vec<u8>)> {
        let (kind, payload) = match self {
            Message::Text(text) => (Kind::Text, text.into_bytes()),
            Message::Binary(bytes) => (Kind::Binary, bytes),
            Message::Ping(bytes) => (Kind::Ping, bytes),
            Message::Pong(bytes) => (Kind::Pong, bytes),
            Message::Close(frame) => (Kind::Close, frame.map_or(Vec::new(), CloseFrame::into_payload)),
        };
        if matches!(kind, Kind::Ping | Kind::Pong) && payload.len() > MAX_CONTROL_BYTES {
            let text =
                format!("a ping or a pong has at most {MAX_CONTROL_BYTES} bytes, and this one {}", payload.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        Ok((kind, payload))
    }
}

impl CloseFrame {
    pub(crate) fn into_payload(mut self) -> Vec<u8> {
        let mut length = self.reason.len().min(MAX_REASON_BYTES);
        while !self.reason.is_char_boundary(length) {
            length -= 1;
        }
        self.reason.truncate(length);
        [&self.code.to_be_bytes()[..], self.reason.as_bytes()].concat()
    }

    fn of_payload(payload: &[u8]) -> Option<Self> {
        let [high, low, reason @ ..] = payload else { return None };
        Some(CloseFrame::new(u16::from_be_bytes([*high, *low]), String::from_utf8_lossy(reason)))
    }
}

/// Makes messages of frames.
#[derive(Default)]
pub(crate) struct Assembler {
    message: Vec<u8>,
}

impl Assembler {
    /// Takes a frame; the message that it completes.
    pub(crate) fn take(&mut self, (kind, payload): (Kind, Vec<u8>)) -> Option<Message> {
        Some(match kind {
            Kind::Ping => Message::Ping(payload),
            Kind::Pong => Message::Pong(payload),
            Kind::Close => Message::Close(CloseFrame::of_payload(&payload)),
            _ => {
                let mut message = std::mem::take(&mut self.message);
                if message.is_empty() {
                    message = payload;
                } else {
                    message.extend_from_slice(&payload);
                }
                match kind {
                    // The gateway has checked that it is UTF-8.
                    Kind::Text => Message::Text(String::from_utf8_lossy(&message).into_owned()),
                    Kind::Binary => Message::Binary(message),
                    _ => {
                        self.message = message;
                        return None;
                    }
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_made_of_pieces() {
        let mut assembler = Assembler::default();
        assert_eq!(assembler.take((Kind::Data, b"he".to_vec())), None);
        assert_eq!(assembler.take((Kind::Pong, vec![1])), Some(Message::Pong(vec![1])));
        assert_eq!(assembler.take((Kind::Text, b"llo".to_vec())), Some("hello".into()));
        assert_eq!(assembler.take((Kind::Binary, vec![])), Some(vec![].into()));
        let close = Message::Close(Some(CloseFrame::new(4000, "bye")));
        let (kind, payload) = close.clone().into_frame().unwrap();
        assert_eq!(assembler.take((kind, payload)), Some(close));
        assert_eq!(assembler.take((Kind::Close, vec![])), Some(Message::Close(None)));
    }

    #[test]
    fn control_frames_are_short() {
        assert!(Message::Ping(vec![0; MAX_CONTROL_BYTES]).into_frame().is_ok());
        assert!(Message::Ping(vec![0; MAX_CONTROL_BYTES + 1]).into_frame().is_err());
        let (_, payload) = Message::Close(Some(CloseFrame::new(1000, "ä".repeat(100)))).into_frame().unwrap();
        assert!(payload.len() <= MAX_CONTROL_BYTES && std::str::from_utf8(&payload[2..]).is_ok());
    }
}
