//! Frames about streams that a handler sends: pieces of its answers, their end, and credit for bodies of requests.
use std::rc::Rc;

use edge_wire::{INITIAL_CREDIT, Kind, cost, credited, header, two_numbers};

use super::super::body_stream::BodyStream;
use super::super::in_flight::{Pending, StreamState};
use super::super::reply::{Outcome, SWITCHING, StreamedAnswer};
use super::super::stream_buffer::{End, Payload, PushError};
use super::super::stream_handle::{StreamCarrier, StreamHandle};
use super::HandlerConnection;

pub const UNASKED: &str = "it sent a response to no request, or a second one";
pub const UNASKED_SOCKET: &str = "its response is invalid: 101 is an answer to a request for a WebSocket only";
const RESET: &str = "it has ended its stream early";

/// Takes from the credit of a stream that nobody wants any more.
fn spend(credit: &mut usize, bytes: usize) -> Result<(), PushError> {
    *credit = credit.checked_sub(bytes).ok_or(PushError::BeyondCredit)?;
    Ok(())
}

/// Takes a frame of a streamed answer.
pub fn receive(
    connection: &Rc<HandlerConnection>,
    kind: Kind,
    number: u32,
    head: &[u8],
    body: Payload<'_>,
) -> Result<(), String> {
    match kind {
        Kind::Stream => begin_stream(connection, number, head),
        Kind::Credit => add_credit(connection, number, &body),
        Kind::Data | Kind::Text | Kind::Binary | Kind::Ping | Kind::Pong | Kind::Close => {
            piece(connection, kind, number, body)
        }
        Kind::Shared => shared_piece(connection, number, &body),
        Kind::End => end_stream(connection, number, End::Complete),
        Kind::Reset => {
            let reason = String::from_utf8_lossy(&body);
            end_stream(connection, number, End::Broken(if reason.is_empty() { RESET.into() } else { (*reason).into() }))
        }
        _ => Err(violated("it sent what only a gateway sends")),
    }
}

fn begin_stream(connection: &Rc<HandlerConnection>, number: u32, head: &[u8]) -> Result<(), String> {
    let mut in_flight = connection.in_flight.borrow_mut();
    let Some((Pending { reply, is_socket, .. }, buffer)) = in_flight.begin_stream(number, connection.memory.another())
    else {
        if !in_flight.begin_late(number, INITIAL_CREDIT) {
            return Err(violated(UNASKED));
        }
        drop(in_flight);
        connection.queue_frame(&header(Kind::Reset, number, 0, 0));
        return Ok(());
    };
    let send_credit = if is_socket { in_flight.body(number).cloned() } else { None };
    drop(in_flight);
    // Dropped with its reply, should nobody want it.
    let body = BodyStream { buffer, handle: StreamHandle { carrier: connection.clone(), number }, send_credit };
    reply.set(match connection.parse_head(head) {
        Ok(head) if head.status == SWITCHING && !is_socket => Outcome::Aborted(UNASKED_SOCKET.into()),
        Ok(head) => Outcome::Streamed(StreamedAnswer { head, body }),
        Err(reason) => Outcome::Aborted(reason.into()),
    });
    Ok(())
}

fn piece(connection: &HandlerConnection, kind: Kind, number: u32, piece: Payload<'_>) -> Result<(), String> {
    let mut in_flight = connection.in_flight.borrow_mut();
    let pushed = match in_flight.stream(number) {
        Some(StreamState::Open(buffer)) => buffer.push(kind, piece),
        Some(StreamState::Dropped(credit)) => spend(credit, cost(kind, piece.len())),
        None => return Err(violated("it sent a piece of no stream")),
    };
    drop(in_flight);
    check_push(connection, number, pushed)
}

/// A piece is in the memory of its stream.
fn shared_piece(connection: &HandlerConnection, number: u32, body: &[u8]) -> Result<(), String> {
    let (start, bytes) = two_numbers(body).ok_or_else(|| violated("it did not say where a piece is"))?;
    let range = start as usize..start as usize + bytes as usize;
    let mut in_flight = connection.in_flight.borrow_mut();
    let pushed = match in_flight.stream(number) {
        Some(StreamState::Open(buffer)) => buffer.push_placed(range),
        Some(StreamState::Dropped(credit)) => spend(credit, range.len()),
        None => return Err(violated("it sent a piece of no stream")),
    };
    drop(in_flight);
    check_push(connection, number, pushed)
}

fn check_push(connection: &HandlerConnection, number: u32, pushed: Result<(), PushError>) -> Result<(), String> {
    match pushed {
        Ok(()) => {}
        Err(PushError::NotPlaced) => return Err(violated("it put a piece where it may not")),
        Err(PushError::BeyondCredit) => return Err(violated("it sent more of a stream than it may")),
        Err(PushError::NoSocket) => return Err(violated("it sent a message on what is no WebSocket")),
        Err(PushError::OutOfMemory) => connection.drop_stream(number),
    }
    Ok(())
}

fn end_stream(connection: &HandlerConnection, number: u32, end: End) -> Result<(), String> {
    let mut in_flight = connection.in_flight.borrow_mut();
    if let Some(StreamState::Open(buffer)) = in_flight.stream(number) {
        buffer.end(end);
    }
    let has_ended = in_flight.end_stream(number);
    drop(in_flight);
    connection.close_body(number);
    match has_ended {
        true => Ok(()),
        false => Err(violated("it ended no stream")),
    }
}

/// The handler takes more of a body. It may not know yet that nobody sends any.
fn add_credit(connection: &HandlerConnection, number: u32, body: &[u8]) -> Result<(), String> {
    let bytes = credited(body).ok_or_else(|| violated("a credit frame without a number"))?;
    if let Some(send_credit) = connection.in_flight.borrow().body(number) {
        send_credit.add(bytes as usize);
    }
    Ok(())
}

pub fn violated(how: &str) -> String {
    format!("it violated the protocol: {how}")
}
