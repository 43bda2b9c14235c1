//! One stream of a handler: a request and its response that go piece by piece, or a WebSocket.
use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use edge_wire::{INITIAL_CREDIT, Kind, MAX_DATA_BYTES, credit, credited};
use serde_json::json;

use super::frames::{Frames, OwnedFrame};
use super::handler::Request;

pub struct Stream {
    number: u32,
    frames: Frames,
    /// Those of this stream, in their order.
    arriving: Receiver<OwnedFrame>,
    /// Those that have come while the script waited for credit.
    waiting: VecDeque<OwnedFrame>,
    /// Bytes of the response that may be sent.
    credit: usize,
    response: Progress,
    /// Why the front has reset it.
    pub reset: Option<String>,
}

/// How far a response is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Awaited,
    Begun,
    Complete,
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
                let head = serde_json::from_slice(&frame.head).unwrap();
                let request = Request { head, body: frame.body, is_whole: frame.kind == Kind::Request };
                let frames = self.writer();
                let mut stream = Stream {
                    number,
                    frames,
                    arriving: receiver,
                    waiting: VecDeque::new(),
                    credit: INITIAL_CREDIT,
                    response: Progress::Awaited,
                    reset: None,
                };
                scope.spawn(move || {
                    script(&request, &mut stream);
                    if stream.reset.is_some() {
                        stream.confirm_reset();
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
        self.response = Progress::Begun;
    }

    /// A whole response.
    pub fn respond(&mut self, status: u16, body: &[u8]) {
        self.frames.respond(self.number, &json!({ "status": status, "headers": [] }), body);
        self.response = Progress::Complete;
    }

    /// Sends a part of the response, as fast as the front takes it. False when it wants no more.
    pub fn data(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let length = bytes.len().min(MAX_DATA_BYTES).min(self.credit);
            if length == 0 {
                if !self.wait() {
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
        self.response = Progress::Complete;
    }

    /// The front uses the number again only when the response has ended here, too.
    fn confirm_reset(&mut self) {
        match self.response {
            Progress::Awaited => self.respond(500, b"too late"),
            Progress::Begun => self.send(Kind::Reset, &[]),
            Progress::Complete => {}
        }
    }

    /// Any other frame without a head.
    pub fn send(&mut self, kind: Kind, body: &[u8]) {
        self.frames.send(kind, self.number, &[], body);
    }

    /// The next frame of the client, but for those that are about credit. None when the front has reset the stream, or
    /// closed the connection.
    pub fn receive(&mut self) -> Option<OwnedFrame> {
        while self.waiting.is_empty() {
            if !self.wait() {
                return None;
            }
        }
        self.waiting.pop_front()
    }

    /// The next piece of the request's body; None at its end.
    pub fn piece(&mut self) -> Option<Vec<u8>> {
        let frame = self.receive().filter(|frame| frame.kind == Kind::Data)?;
        self.frames.send_bytes(&credit(self.number, frame.body.len() as u32));
        Some(frame.body)
    }

    /// Waits for a frame; false when none comes any more.
    fn wait(&mut self) -> bool {
        let Ok(frame) = self.arriving.recv() else { return false };
        match frame.kind {
            Kind::Credit => self.credit += credited(&frame.body).unwrap() as usize,
            Kind::Reset => self.reset = Some(String::from_utf8_lossy(&frame.body).into_owned()),
            _ => self.waiting.push_back(frame),
        }
        self.reset.is_none()
    }
}
