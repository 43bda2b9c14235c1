//! One stream of a handler: a request and its response that go piece by piece, or a WebSocket.
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use edge_wire::{INITIAL_CREDIT, Kind, MAX_DATA_BYTES, credited};
use serde_json::json;

use super::frames::{Frames, OwnedFrame};
use super::handler::Request;

pub struct Stream {
    number: u32,
    frames: Frames,
    /// Those of this stream, in their order.
    arriving: Receiver<OwnedFrame>,
    /// Bytes of the response that may be sent.
    credit: usize,
    /// Why the front has reset it.
    pub reset: Option<String>,
}

impl Frames {
    /// Runs a script for each request, in a thread of its own. Its body has arrived, or comes piece by piece.
    pub fn stream_all(&mut self, script: &(impl Fn(&Request, &mut Stream) + Sync)) {
        thread::scope(|scope| {
            let mut arriving = HashMap::<u32, Sender<OwnedFrame>>::new();
            while let Some(frame) = self.receive() {
                let number = frame.number;
                if !matches!(frame.kind, Kind::Request | Kind::Open) {
                    // What comes for a script that has ended is dropped.
                    let _ = arriving[&number].send(frame);
                    continue;
                }
                let (sender, receiver) = channel();
                arriving.insert(number, sender);
                let request = Request { head: serde_json::from_slice(&frame.head).unwrap(), body: frame.body };
                let frames = self.writer();
                let mut stream = Stream { number, frames, arriving: receiver, credit: INITIAL_CREDIT, reset: None };
                scope.spawn(move || {
                    script(&request, &mut stream);
                    if stream.reset.is_some() {
                        // The number is free from here on.
                        stream.frames.send(Kind::Reset, number, &[], &[]);
                    }
                });
            }
        });
    }
}

impl Stream {
    /// Begins the response. `headers` are names and values in turn.
    pub fn head(&mut self, status: u16, headers: &[&str]) {
        let head = json!({ "status": status, "headers": headers }).to_string();
        self.frames.send(Kind::Stream, self.number, head.as_bytes(), &[]);
    }

    /// A whole response.
    pub fn respond(&mut self, status: u16, body: &[u8]) {
        self.frames.respond(self.number, &json!({ "status": status, "headers": [] }), body);
    }

    /// Sends a part of the response, as fast as the front takes it. False when it wants no more.
    pub fn data(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let length = bytes.len().min(MAX_DATA_BYTES).min(self.credit);
            if length == 0 {
                if !self.wait_for_credit() {
                    return false;
                }
                continue;
            }
            self.frames.data(self.number, &bytes[..length]);
            self.credit -= length;
            bytes = &bytes[length..];
        }
        true
    }

    pub fn end(&mut self) {
        self.send(Kind::End, &[]);
    }

    /// Any other frame without a head.
    pub fn send(&mut self, kind: Kind, body: &[u8]) {
        self.frames.send(kind, self.number, &[], body);
    }

    /// The next frame of the client, but for those that are about credit. None when the front has reset the stream, or
    /// closed the connection.
    pub fn receive(&mut self) -> Option<OwnedFrame> {
        loop {
            let frame = self.arriving.recv().ok()?;
            match frame.kind {
                Kind::Credit => self.credit += credited(&frame.body).unwrap() as usize,
                Kind::Reset => {
                    self.reset = Some(String::from_utf8_lossy(&frame.body).into_owned());
                    return None;
                }
                _ => return Some(frame),
            }
        }
    }

    fn wait_for_credit(&mut self) -> bool {
        while self.credit == 0 {
            let Ok(frame) = self.arriving.recv() else { return false };
            match frame.kind {
                Kind::Credit => self.credit += credited(&frame.body).unwrap() as usize,
                Kind::Reset => self.reset = Some(String::from_utf8_lossy(&frame.body).into_owned()),
                _ => {}
            }
            if self.reset.is_some() {
                return false;
            }
        }
        true
    }
}
