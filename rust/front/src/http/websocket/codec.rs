//! The protocol of WebSockets (RFC 6455), by the crate tungstenite, between bytes in memory: who uses it reads and
//! writes the connection. A ping of the client is answered here, and so is its close.
use std::io::{self, Cursor, Read, Write};

use bytes::Bytes;
use tungstenite::Error;
use tungstenite::error::ProtocolError;
use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tungstenite::protocol::{CloseFrame, Message, Role, WebSocketConfig, WebSocketContext};

/// Memory that a connection without traffic has for what arrives.
const READ_BYTES: usize = 4 * 1024;

/// What a longer message took is not kept for the next one.
const KEPT_BYTES: usize = 64 * 1024;
/// The longest reason of a close: the 125 bytes of a control frame without the code.
const MAX_REASON_BYTES: usize = 123;
/// The header of a control frame of a client, with its mask.
const CONTROL_HEADER_BYTES: usize = 6;

/// Why a socket is closed, as its client is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketClose {
    pub code: u16,
    pub reason: &'static str,
}

impl SocketClose {
    pub const fn new(code: u16, reason: &'static str) -> Self {
        Self { code, reason }
    }
}

/// What a client has sent.
#[derive(Debug, PartialEq, Eq)]
pub enum ClientMessage {
    /// A text in UTF-8.
    Text(Bytes),
    Binary(Bytes),
    /// It is answered.
    Ping,
    Pong(Bytes),
    /// The code and the reason of its close; nothing more comes.
    Close(Option<(u16, Vec<u8>)>),
}

/// One end of a WebSocket: that of the server.
pub struct Codec {
    context: WebSocketContext,
    config: WebSocketConfig,
    out: Vec<u8>,
    /// Bytes of a message that has arrived in part.
    held: usize,
    /// Bytes to come of the frame that is being read.
    frame: usize,
}

/// What tungstenite reads from and writes to. It never reads beyond the end of a frame.
struct MemoryIo<'a> {
    arrived: &'a [u8],
    out: &'a mut Vec<u8>,
    frame: &'a mut usize,
}

impl Read for MemoryIo<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if *self.frame == 0 {
            *self.frame = frame_bytes(self.arrived).ok_or(io::ErrorKind::WouldBlock)?;
        }
        let room = buffer.len().min(*self.frame);
        let read = self.arrived.read(&mut buffer[..room])?;
        if read == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        *self.frame -= read;
        Ok(read)
    }
}

/// The length of the frame that begins here, if its header is there. One that is no header is read as it is, to be
/// refused.
fn frame_bytes(bytes: &[u8]) -> Option<usize> {
    let mut cursor = Cursor::new(bytes);
    match FrameHeader::parse(&mut cursor) {
        Ok(Some((_, length))) => Some((cursor.position() as usize).saturating_add(length as usize)),
        Ok(None) => None,
        Err(_) => Some(bytes.len()),
    }
}

impl Write for MemoryIo<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Codec {
    /// `max_bytes`: of a message.
    pub fn new(max_bytes: usize) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BYTES)
            .write_buffer_size(0)
            .max_message_size(Some(max_bytes))
            .max_frame_size(Some(max_bytes));
        let context = WebSocketContext::new(Role::Server, Some(config));
        Self { context, config, out: Vec::new(), held: 0, frame: 0 }
    }

    /// Takes bytes that have arrived, up to the end of what they bring. None: more are needed.
    ///
    /// # Errors
    /// How the socket is to be closed, because the client violates the protocol.
    pub fn read(&mut self, arrived: &mut Vec<u8>) -> Result<Option<ClientMessage>, SocketClose> {
        loop {
            let mut wire = MemoryIo { arrived, out: &mut self.out, frame: &mut self.frame };
            let read = self.context.read(&mut wire);
            let taken = arrived.len() - wire.arrived.len();
            arrived.drain(..taken);
            self.held += taken;
            let received = match read {
                Ok(Message::Text(text)) => ClientMessage::Text(Bytes::from(text)),
                Ok(Message::Binary(bytes)) => ClientMessage::Binary(bytes),
                Ok(Message::Pong(bytes)) => {
                    self.forget(bytes.len());
                    ClientMessage::Pong(bytes)
                }
                Ok(Message::Ping(bytes)) => {
                    self.forget(bytes.len());
                    ClientMessage::Ping
                }
                Ok(Message::Frame(_)) => continue,
                Ok(Message::Close(frame)) => {
                    // The answer to it is sent, too.
                    self.flush();
                    ClientMessage::Close(
                        frame.map(|CloseFrame { code, reason }| (code.into(), reason.as_bytes().to_vec())),
                    )
                }
                Err(Error::Io(_)) => return Ok(None),
                Err(Error::ConnectionClosed | Error::AlreadyClosed) => ClientMessage::Close(None),
                Err(error) => return Err(closing_of(&error)),
            };
            if matches!(received, ClientMessage::Text(_) | ClientMessage::Binary(_))
                && std::mem::take(&mut self.held) > KEPT_BYTES
                && self.context.can_write()
            {
                // Nothing of the next frame was read: what has room for such a message is given back.
                self.context = WebSocketContext::new(Role::Server, Some(self.config));
            }
            return Ok(Some(received));
        }
    }

    /// A control frame, which may come within a message, is no part of it.
    fn forget(&mut self, payload: usize) {
        self.held = self.held.saturating_sub(CONTROL_HEADER_BYTES + payload);
    }

    /// Bytes of a message that has arrived in part.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Adds a whole message to what is to be written, without the crate, which would keep the memory of the longest.
    /// Nothing is added after a close.
    fn add_message(&mut self, kind: Data, message: &[u8]) {
        if self.context.can_write() {
            let header = FrameHeader { opcode: OpCode::Data(kind), ..FrameHeader::default() };
            // Memory takes all that is written to it.
            let _ = header.format(message.len() as u64, &mut self.out);
            self.out.extend_from_slice(message);
        }
    }

    /// The same for a control frame.
    fn add(&mut self, message: Message) {
        // Memory takes all that is written to it; what comes after a close is not wanted.
        let mut wire = MemoryIo { arrived: &[], out: &mut self.out, frame: &mut 0 };
        let _ = self.context.write(&mut wire, message);
    }

    /// Adds a text message.
    ///
    /// # Errors
    /// When it is not UTF-8.
    pub fn add_text(&mut self, text: &[u8]) -> Result<(), std::str::Utf8Error> {
        std::str::from_utf8(text)?;
        self.add_message(Data::Text, text);
        Ok(())
    }

    pub fn add_binary(&mut self, bytes: &[u8]) {
        self.add_message(Data::Binary, bytes);
    }

    pub fn add_ping(&mut self, payload: Bytes) {
        self.add(Message::Ping(payload));
    }

    pub fn add_pong(&mut self, payload: Bytes) {
        self.add(Message::Pong(payload));
    }

    /// Adds a close, unless there has been one. A code that may not be sent becomes 1000, and a long reason is cut.
    pub fn add_close(&mut self, frame: Option<(u16, &str)>) {
        let frame = frame.map(|(code, reason)| {
            let code = CloseCode::from(code);
            let end = (0..=reason.len().min(MAX_REASON_BYTES)).rev().find(|&end| reason.is_char_boundary(end));
            let reason = reason[..end.unwrap_or(0)].into();
            CloseFrame { code: if code.is_allowed() { code } else { CloseCode::Normal }, reason }
        });
        let _ = self.context.close(&mut MemoryIo { arrived: &[], out: &mut self.out, frame: &mut 0 }, frame);
    }

    fn flush(&mut self) {
        let _ = self.context.flush(&mut MemoryIo { arrived: &[], out: &mut self.out, frame: &mut 0 });
    }

    /// What is to be written.
    pub fn take_out(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// How many bytes are to be written.
    pub fn out_bytes(&self) -> usize {
        self.out.len()
    }
}

/// RFC 6455, section 7.4.1.
fn closing_of(error: &Error) -> SocketClose {
    match error {
        Error::Capacity(_) => SocketClose::new(1009, "a message is longer than this endpoint takes"),
        Error::Utf8(_) => SocketClose::new(1007, "a text is not UTF-8"),
        Error::Protocol(ProtocolError::UnmaskedFrameFromClient) => SocketClose::new(1002, "a frame is not masked"),
        _ => SocketClose::new(1002, "a frame violates the protocol"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of a client, with a mask of zeros. `first`: its first byte.
    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![first];
        match payload.len() {
            length @ 0..126 => bytes.push(0x80 | length as u8),
            length @ 126..65_536 => {
                bytes.push(0x80 | 126);
                bytes.extend_from_slice(&(length as u16).to_be_bytes());
            }
            length => {
                bytes.push(0x80 | 127);
                bytes.extend_from_slice(&(length as u64).to_be_bytes());
            }
        }
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(payload);
        bytes
    }

    fn close_code(bytes: &[u8]) -> u16 {
        let mut codec = Codec::new(1000);
        let mut arrived = bytes.to_vec();
        codec.read(&mut arrived).unwrap_err().code
    }

    #[test]
    fn messages_come_out_of_any_pieces() {
        let long = vec![b'x'; 70_000];
        let bytes = [frame(0x01, b"he"), frame(0x89, b"ping"), frame(0x80, b"llo"), frame(0x82, &long)].concat();
        for piece in [1, 7, 5_000, bytes.len()] {
            let mut codec = Codec::new(100_000);
            let mut received = Vec::new();
            let mut arrived = Vec::new();
            for part in bytes.chunks(piece) {
                arrived.extend_from_slice(part);
                while let Some(one) = codec.read(&mut arrived).unwrap() {
                    received.push(one);
                }
                // Headers are taken when they are whole.
                assert!(arrived.len() < 14);
            }
            let hello = ClientMessage::Text(Bytes::from_static(b"hello"));
            assert_eq!(received, [ClientMessage::Ping, hello, ClientMessage::Binary(long.clone().into())], "{piece}");
            assert_eq!((codec.take_out(), codec.held()), (b"\x8a\x04ping".to_vec(), 0));
        }
    }

    #[test]
    fn what_violates_the_protocol_is_closed_with_its_code() {
        for (bytes, code) in [
            (b"\x81\x02hi".to_vec(), 1002),
            (frame(0xc1, b"hi"), 1002),
            (frame(0x89, &[0; 126]), 1002),
            (frame(0x09, b"x"), 1002),
            (frame(0x83, b"x"), 1002),
            (frame(0x80, b"x"), 1002),
            ([frame(0x01, b"x"), frame(0x81, b"x")].concat(), 1002),
            (frame(0x88, b"x"), 1002),
            (frame(0x81, b"\xff"), 1007),
            (frame(0x82, &[0; 1001]), 1009),
            ([frame(0x02, &[0; 600]), frame(0x80, &[0; 600])].concat(), 1009),
        ] {
            assert_eq!(close_code(&bytes), code, "{bytes:02x?}");
        }
        // It is refused by the length that it claims.
        assert_eq!(close_code(b"\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0"), 1009);
    }

    #[test]
    fn a_close_is_answered_and_nothing_follows() {
        let mut codec = Codec::new(1000);
        let mut arrived = frame(0x88, b"\x03\xe9bye");
        assert_eq!(codec.read(&mut arrived), Ok(Some(ClientMessage::Close(Some((1001, b"bye".to_vec()))))));
        codec.add_binary(&[1]);
        codec.add_close(None);
        assert_eq!(codec.take_out(), b"\x88\x05\x03\xe9bye");
    }

    #[test]
    fn what_is_sent_is_not_masked_and_texts_are_checked() {
        let mut codec = Codec::new(1000);
        codec.add_text("ä".as_bytes()).unwrap();
        assert!(codec.add_text(&[0xff]).is_err());
        codec.add_ping(Bytes::from_static(&[1]));
        codec.add_pong(Bytes::from_static(&[2]));
        codec.add_close(Some((1005, "reserved")));
        let expected = [&b"\x81\x02\xc3\xa4\x89\x01\x01\x8a\x01\x02\x88\x0a\x03\xe8"[..], b"reserved"].concat();
        assert_eq!(codec.take_out(), expected);
    }

    #[test]
    fn a_long_reason_is_cut_between_two_characters() {
        let mut codec = Codec::new(1000);
        codec.add_close(Some((1000, &"ä".repeat(100))));
        let sent = codec.take_out();
        assert_eq!((sent[1], sent.len()), (124, 126));
        assert!(std::str::from_utf8(&sent[4..]).is_ok());
    }
}
