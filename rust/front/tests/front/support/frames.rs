//! Frames on a connection of the front to a handler, as `edge-wire` has them.
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};

use edge_wire::{DecodeResult, Kind, decode, header};
use serde_json::Value;

/// The handler's end of a connection.
pub struct Frames {
    stream: UnixStream,
    /// Held while a frame is written: several threads may write.
    writing: Arc<Mutex<()>>,
    /// What has arrived of the next frames.
    received: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct OwnedFrame {
    pub kind: Kind,
    pub number: u32,
    pub head: Vec<u8>,
    pub body: Vec<u8>,
}

impl Frames {
    pub fn new(stream: UnixStream) -> Self {
        Self { stream, writing: Arc::default(), received: Vec::new() }
    }

    /// The next frame; `None` when the front has closed the connection.
    pub fn receive(&mut self) -> Option<OwnedFrame> {
        let mut piece = [0; 64 * 1024];
        loop {
            if let DecodeResult::Frame(frame, length) = decode(&self.received).unwrap() {
                let (head, body) = (frame.head.to_vec(), frame.body.to_vec());
                let frame = OwnedFrame { kind: frame.kind, number: frame.number, head, body };
                self.received.drain(..length);
                return Some(frame);
            }
            let length = self.stream.read(&mut piece).unwrap_or(0);
            if length == 0 {
                return None;
            }
            self.received.extend_from_slice(&piece[..length]);
        }
    }

    /// The next frame of a kind; those of others before it are dropped.
    pub fn receive_of(&mut self, kind: Kind) -> Option<OwnedFrame> {
        while let Some(frame) = self.receive() {
            if frame.kind == kind {
                return Some(frame);
            }
        }
        None
    }

    pub fn send(&mut self, kind: Kind, number: u32, head: &[u8], body: &[u8]) {
        self.send_bytes(&[&header(kind, number, head.len(), body.len())[..], head, body].concat());
    }

    /// A whole response with this head.
    pub fn respond(&mut self, number: u32, head: &Value, body: &[u8]) {
        self.send(Kind::Response, number, head.to_string().as_bytes(), body);
    }

    /// A piece of a streamed body.
    pub fn data(&mut self, number: u32, body: &[u8]) {
        self.send(Kind::Data, number, &[], body);
    }

    /// Any bytes. The front may have closed the connection meanwhile, because of what came before.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let _writing = self.writing.lock().unwrap();
        let _ = self.stream.write_all(bytes);
    }

    /// Another end of the same connection, which reads nothing.
    pub fn writer(&self) -> Self {
        Self { writing: self.writing.clone(), ..Self::new(self.stream.try_clone().unwrap()) }
    }
}
