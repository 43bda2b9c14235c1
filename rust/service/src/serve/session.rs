//! One connection of a handler: its authentication, its calls in progress, and its transaction.
//!
//! It is one task. Each time that it wakes up, it does all that can be done: it reads, polls its calls, and writes what
//! they have answered at once.
use std::future::poll_fn;
use std::mem;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::time::{Sleep, sleep};

use super::call_head::{parse_call, parse_token};
use super::calls::{Calls, Failure, Success, memory_of};
use super::incoming::{BUFFER_BYTES, Incoming};
use super::outgoing::Outgoing;
use super::server::Server;
use super::session_commands::SessionCommands;
use super::token::HandlerInstance;
use crate::backend::Backend;
use crate::error::{CallError, Kind};
use crate::text::cut;
use edge_wire::{FrameError, MAX_BODY_BYTES, problem_of};

/// Concurrent calls on one connection; the SDK makes one at a time.
const MAX_CALLS: usize = 256;
/// Above this many bytes of unread answers, no more calls are read.
const MAX_UNREAD_BYTES: usize = 8 * 1024 * 1024;
/// Until the token has arrived, the client is not authenticated, and nothing more is read.
const MAX_TOKEN_BYTES: usize = BUFFER_BYTES;
/// A client that has to wait for the processor is late, and sends it all the same.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_MESSAGE_LENGTH: usize = 16 * 1024;
/// After so many reads, other connections have their turn.
const MAX_READS: usize = 16;

/// The number of the frame with the token.
const TOKEN_NUMBER: u32 = 0;
const OK: &[u8] = br#"{"ok":true}"#;
/// The SDK recognises it by how it begins; an older one only shows the message.
const MOVED: &[u8] = concat!(
    r#"{"ok":false,"kind":"moved","message":"#,
    r#""the handler was compiled with an older SDK; compile and start its endpoint again"}"#
)
.as_bytes();

/// Why a connection ends.
enum End {
    /// The client has closed it, or it is to be closed without a word.
    Closed,
    /// The client does not keep to the protocol.
    Problem(String),
}

impl From<&'static str> for End {
    fn from(problem: &'static str) -> Self {
        Self::Problem(problem.to_owned())
    }
}

impl From<FrameError> for End {
    fn from(error: FrameError) -> Self {
        Self::Problem(problem_of(error))
    }
}

type Timer = Option<Pin<Box<Sleep>>>;

pub struct Session<B: Backend> {
    id: u64,
    stream: UnixStream,
    commands: Rc<SessionCommands>,
    server: Rc<Server<B>>,
    incoming: Incoming,
    outgoing: Outgoing,
    /// It ends the connection unless the token arrives in time.
    token_timer: Timer,
    endpoint: Option<Rc<str>>,
    calls: Calls<B>,
    /// Bytes taken from the memory budget for an incomplete frame.
    incomplete_bytes: usize,
    incomplete_timer: Timer,
    /// The handler does not read its answers: its calls are not read.
    is_paused: bool,
    /// Nothing more is read; it ends when all is written.
    is_closing: bool,
}

impl<B: Backend> Session<B> {
    pub fn new(id: u64, stream: UnixStream, commands: Rc<SessionCommands>, server: Rc<Server<B>>) -> Self {
        Self {
            id,
            stream,
            commands,
            incoming: Incoming::default(),
            outgoing: Outgoing::default(),
            token_timer: Some(Box::pin(sleep(TOKEN_TIMEOUT))),
            endpoint: None,
            calls: Calls::new(server.host.clone()),
            incomplete_bytes: 0,
            incomplete_timer: None,
            is_paused: false,
            is_closing: false,
            server,
        }
    }

    /// Serves the connection until it is closed, and its calls until they have ended: that their handler is gone does
    /// not undo them.
    pub async fn run(mut self) {
        let end = poll_fn(|context| self.poll(context)).await;
        if let End::Problem(problem) = end {
            let text = "a handler does not keep to the protocol; its connection is closed";
            self.warn(&problem, text);
        }
        let Self { id, stream, server, mut outgoing, endpoint, calls, incomplete_bytes, .. } = self;
        drop(stream);
        server.connections.leave(id, endpoint.as_deref());
        server.host.memory.release(incomplete_bytes);
        outgoing.clear(&server.host.memory);
        server.forget(id);
        calls.finish().await;
    }

    fn poll(&mut self, context: &mut Context) -> Poll<End> {
        match self.advance(context) {
            Ok(()) if self.is_closing && self.outgoing.is_empty() => Poll::Ready(End::Closed),
            Ok(()) => {
                self.commands.wait_with(context.waker().clone());
                Poll::Pending
            }
            Err(end) => Poll::Ready(end),
        }
    }

    fn advance(&mut self, context: &mut Context) -> Result<(), End> {
        self.apply_commands()?;
        loop {
            self.read(context)?;
            self.answer_calls(context);
            let was_paused = self.is_paused;
            self.write(context)?;
            // What has come in the meantime is read now.
            if !was_paused || self.is_paused {
                break;
            }
        }
        // Timers are looked at after reading: what they wait for may have arrived while this process was busy.
        if is_over(&mut self.token_timer, context) || is_over(&mut self.incomplete_timer, context) {
            return Err(End::Closed);
        }
        Ok(())
    }

    fn apply_commands(&mut self) -> Result<(), End> {
        if self.commands.drops() {
            return Err(End::Closed);
        }
        if self.commands.take_retire() {
            self.send_retire_notice();
        }
        self.is_closing |= self.commands.closes();
        Ok(())
    }

    fn send_retire_notice(&mut self) {
        if self.endpoint.is_some() {
            self.send(TOKEN_NUMBER, OK, Vec::new());
        }
    }

    fn read(&mut self, context: &mut Context) -> Result<(), End> {
        let mut reads = 0;
        while !self.is_closing && !self.is_paused {
            self.take_frames()?;
            if self.is_closing || self.is_paused {
                break;
            }
            self.account_incomplete()?;
            if reads == MAX_READS {
                context.waker().wake_by_ref();
                break;
            }
            reads += 1;
            let room = self.incoming.room();
            match pin!(self.stream.read_buf(room)).poll(context) {
                Poll::Ready(Ok(0) | Err(_)) => return Err(End::Closed),
                Poll::Ready(Ok(_)) => {}
                Poll::Pending => break,
            }
        }
        Ok(())
    }

    /// Counts an incomplete frame against the memory budget, and limits the time until it is complete.
    fn account_incomplete(&mut self) -> Result<(), End> {
        let memory = &self.server.host.memory;
        // Taken before there is room for it.
        let grown = self.incoming.room_bytes().saturating_sub(BUFFER_BYTES);
        if grown > self.incomplete_bytes {
            if !memory.take(grown - self.incomplete_bytes) {
                return Err(End::from("there is no room for the rest of its call"));
            }
        } else {
            memory.release(self.incomplete_bytes - grown);
        }
        self.incomplete_bytes = grown;
        if self.incoming.buffered() == 0 {
            self.incomplete_timer = None;
        } else if self.incomplete_timer.is_none() {
            let limit = Duration::from_millis(self.server.host.longest_call_ms);
            self.incomplete_timer = Some(Box::pin(sleep(limit)));
        }
        Ok(())
    }

    fn take_frames(&mut self) -> Result<(), End> {
        while !self.is_closing {
            // Answers that are given at once, such as refusals, also wait for those who do not read.
            if self.outgoing.len() > MAX_UNREAD_BYTES {
                self.is_paused = true;
                return Ok(());
            }
            let Some(frame) = self.incoming.next_frame()? else {
                if self.endpoint.is_none() && self.incoming.buffered() >= MAX_TOKEN_BYTES {
                    return Err(End::from("its first frame is no token"));
                }
                return Ok(());
            };
            // It is complete: its body is counted as that of a call.
            self.incomplete_timer = None;
            self.server.host.memory.release(mem::take(&mut self.incomplete_bytes));
            if frame.kind != edge_wire::Kind::Request {
                return Err(End::from("it sent a response"));
            }
            let number = frame.number;
            let Some(endpoint) = &self.endpoint else {
                if !frame.body.is_empty() {
                    return Err(End::from("its token has a body"));
                }
                let token = parse_token(frame.head)?;
                self.authenticate(number, &token);
                continue;
            };
            let head = parse_call(frame.head)?;
            let refusal = if self.calls.len() >= MAX_CALLS {
                format!("{MAX_CALLS} calls are under way on this connection")
            } else if !self.server.host.memory.take(memory_of(frame.body.len())) {
                "the actor host holds as much as it may; try again later".to_owned()
            } else {
                self.calls.begin(number, &head, frame.body, endpoint);
                continue;
            };
            self.fail(number, CallError::new(Kind::Busy, refusal));
        }
        Ok(())
    }

    fn authenticate(&mut self, number: u32, token: &str) {
        self.token_timer = None;
        let server = self.server.clone();
        // A handler may have been made to tell its token.
        let peer = self.stream.peer_cred().ok();
        let instance = peer.and_then(|peer| server.host.tokens.instance(token, peer.uid()));
        let Some(HandlerInstance { endpoint, nonce }) = instance else {
            let text = "the token of the handler is not valid";
            return self.refuse(number, CallError::new(Kind::Unauthenticated, text));
        };
        if let Err(problem) = server.connections.identify(self.id, endpoint) {
            let details = json!({ "endpoint_id": endpoint, "problem": problem });
            server.warn(details, "a connection of a handler is refused");
            return self.refuse(number, CallError::new(Kind::Busy, problem));
        }
        self.endpoint = Some(endpoint.into());
        self.commands.nonce.get_or_init(|| nonce.into());
        self.send(number, OK, Vec::new());
        if server.is_retiring.get() {
            self.send_retire_notice();
        }
    }

    fn refuse(&mut self, number: u32, error: CallError) {
        self.fail(number, error);
        self.is_closing = true;
    }

    fn answer_calls(&mut self, context: &mut Context) {
        let mut calls = mem::take(&mut self.calls.running);
        calls.retain_mut(|call| match call.future.as_mut().poll(context) {
            Poll::Pending => true,
            Poll::Ready(outcome) => {
                self.server.host.memory.release(call.memory_bytes);
                match outcome {
                    Ok(success) => self.answer(call.number, success),
                    Err(Failure::Error(error)) => self.fail(call.number, error),
                    Err(Failure::Moved) => self.send(call.number, MOVED, Vec::new()),
                }
                false
            }
        });
        self.calls.running = calls;
    }

    fn answer(&mut self, number: u32, success: Success) {
        let body = match success {
            Success::Done => return self.send(number, OK, Vec::new()),
            Success::Affected { rows, last_insert_id } => {
                let id = last_insert_id.map_or_else(|| "null".to_owned(), |id| id.to_string());
                let head = format!(r#"{{"ok":true,"result":{{"rows_affected":{rows},"last_insert_id":{id}}}}}"#);
                return self.send(number, head.as_bytes(), Vec::new());
            }
            Success::Rows(body) => body,
        };
        if body.len() > MAX_BODY_BYTES {
            let size = MAX_BODY_BYTES / 1024 / 1024;
            let text = format!("the answer is larger than {size} MiB; ask for less at a time");
            self.fail(number, CallError::new(Kind::Invalid, text));
        } else if self.server.host.memory.take(body.len()) {
            self.send(number, OK, body);
        } else {
            let text = "it was done, but the actor host holds as many unread answers as it may";
            self.fail(number, CallError::new(Kind::Busy, text));
        }
    }

    fn fail(&mut self, number: u32, CallError { kind, message }: CallError) {
        // Error messages of databases may quote long input.
        let message = json!(cut(message, MAX_MESSAGE_LENGTH));
        let head = format!(r#"{{"ok":false,"kind":"{}","message":{message}}}"#, kind.name());
        self.send(number, head.as_bytes(), Vec::new());
    }

    /// A body is counted against the memory budget already.
    fn send(&mut self, number: u32, head: &[u8], body: Vec<u8>) {
        self.outgoing.add(number, head, body, &self.server.host.memory);
    }

    fn write(&mut self, context: &mut Context) -> Result<(), End> {
        if self.outgoing.is_overflowed() {
            return Err(End::from("there is no memory for answers that it does not read"));
        }
        match self.outgoing.poll_write(context, &mut self.stream, &self.server.host.memory) {
            Poll::Ready(Ok(())) => self.is_paused = false,
            Poll::Ready(Err(_)) => return Err(End::Closed),
            Poll::Pending => self.is_paused |= self.outgoing.len() > MAX_UNREAD_BYTES,
        }
        Ok(())
    }

    fn warn(&self, problem: &str, message: &str) {
        let details = match &self.endpoint {
            Some(endpoint) => json!({ "endpoint_id": **endpoint, "problem": problem }),
            None => json!({ "problem": problem }),
        };
        self.server.warn(details, message);
    }
}

fn is_over(timer: &mut Timer, context: &mut Context) -> bool {
    timer.as_mut().is_some_and(|timer| timer.as_mut().poll(context).is_ready())
}
