//! Streamed answers on a connection: their pieces, credit for more of them, and their end.
use std::rc::Rc;

use edge_wire::{INITIAL_CREDIT, Kind, cost, header, two_numbers};

use super::super::body_stream::BodyStream;
use super::super::in_flight::{Pending, StreamState};
use super::super::reply::{Outcome, StreamedAnswer};
use super::super::stream_buffer::{End, Payload, PushError};
use super::super::stream_handle::{StreamCarrier, StreamHandle};
use super::sockets::{SWITCHING, UNASKED_SOCKET};
use super::{HandlerConnection, UNASKED, violated};

const RESET: &str = "it has ended its stream early";

/// Takes from the credit of a stream that nobody wants any more.
fn spend(credit: &mut usize, bytes: usize) -> Result<(), PushError> {
    *credit = credit.checked_sub(bytes).ok_or(PushError::BeyondCredit)?;
    Ok(())
}

impl HandlerConnection {
    /// Ends all streams before their end, in both directions. The reason is one for logs.
    pub fn end_streams(&self, reason: &'static str) {
        self.end_uploads(reason);
        let streams = self.in_flight.borrow().streams();
        for (number, buffer) in streams {
            buffer.end(End::Drained(reason));
            self.drop_stream(number);
        }
    }

    /// Writes a frame about a stream.
    pub(super) fn queue_frame(&self, frame: &[u8]) {
        if self.is_open() {
            self.outgoing.borrow_mut().add_frame(frame);
            self.has_outgoing.notify_one();
        }
    }

    /// Takes a frame of a streamed answer.
    pub(super) fn streamed(
        self: &Rc<Self>,
        kind: Kind,
        number: u32,
        head: &[u8],
        body: Payload<'_>,
    ) -> Result<(), String> {
        match kind {
            Kind::Stream => self.begin_stream(number, head),
            Kind::Credit => self.credited(number, &body),
            Kind::Data | Kind::Text | Kind::Binary | Kind::Ping | Kind::Pong | Kind::Close => {
                self.piece(kind, number, body)
            }
            Kind::Shared => self.shared_piece(number, &body),
            Kind::End => self.end_stream(number, End::Complete),
            Kind::Reset => {
                let reason = String::from_utf8_lossy(&body);
                self.end_stream(number, End::Broken(if reason.is_empty() { RESET.into() } else { (*reason).into() }))
            }
            _ => Err(violated("it sent what only a gateway sends")),
        }
    }

    fn begin_stream(self: &Rc<Self>, number: u32, head: &[u8]) -> Result<(), String> {
        let mut in_flight = self.in_flight.borrow_mut();
        let Some((Pending { reply, is_socket, .. }, buffer)) = in_flight.begin_stream(number, self.memory.another())
        else {
            if !in_flight.begin_late(number, INITIAL_CREDIT) {
                return Err(violated(UNASKED));
            }
            drop(in_flight);
            self.queue_frame(&header(Kind::Reset, number, 0, 0));
            return Ok(());
        };
        let send_credit = if is_socket { in_flight.body(number).cloned() } else { None };
        drop(in_flight);
        // Dropped with its reply, should nobody want it.
        let body = BodyStream { buffer, handle: StreamHandle { carrier: self.clone(), number }, send_credit };
        reply.set(match self.parse_head(head) {
            Ok(head) if head.status == SWITCHING && !is_socket => Outcome::Aborted(UNASKED_SOCKET.into()),
            Ok(head) => Outcome::Streamed(StreamedAnswer { head, body }),
            Err(reason) => Outcome::Aborted(reason.into()),
        });
        Ok(())
    }

    fn piece(&self, kind: Kind, number: u32, piece: Payload<'_>) -> Result<(), String> {
        let mut in_flight = self.in_flight.borrow_mut();
        let pushed = match in_flight.stream(number) {
            Some(StreamState::Open(buffer)) => buffer.push(kind, piece),
            Some(StreamState::Dropped(credit)) => spend(credit, cost(kind, piece.len())),
            None => return Err(violated("it sent a piece of no stream")),
        };
        drop(in_flight);
        self.check_push(number, pushed)
    }

    /// A piece is in the memory of its stream.
    fn shared_piece(&self, number: u32, body: &[u8]) -> Result<(), String> {
        let (start, bytes) = two_numbers(body).ok_or_else(|| violated("it did not say where a piece is"))?;
        let range = start as usize..start as usize + bytes as usize;
        let mut in_flight = self.in_flight.borrow_mut();
        let pushed = match in_flight.stream(number) {
            Some(StreamState::Open(buffer)) => buffer.push_placed(range),
            Some(StreamState::Dropped(credit)) => spend(credit, range.len()),
            None => return Err(violated("it sent a piece of no stream")),
        };
        drop(in_flight);
        self.check_push(number, pushed)
    }

    fn check_push(&self, number: u32, pushed: Result<(), PushError>) -> Result<(), String> {
        match pushed {
            Ok(()) => {}
            Err(PushError::NotPlaced) => return Err(violated("it put a piece where it may not")),
            Err(PushError::BeyondCredit) => return Err(violated("it sent more of a stream than it may")),
            Err(PushError::NoSocket) => return Err(violated("it sent a message on what is no WebSocket")),
            Err(PushError::OutOfMemory) => self.drop_stream(number),
        }
        Ok(())
    }

    fn end_stream(&self, number: u32, end: End) -> Result<(), String> {
        let mut in_flight = self.in_flight.borrow_mut();
        if let Some(StreamState::Open(buffer)) = in_flight.stream(number) {
            buffer.end(end);
        }
        let has_ended = in_flight.end_stream(number);
        drop(in_flight);
        self.close_body(number);
        match has_ended {
            true => Ok(()),
            false => Err(violated("it ended no stream")),
        }
    }
}
