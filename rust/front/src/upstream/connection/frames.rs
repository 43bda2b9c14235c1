//! The frames that a handler sends: reads them, and gives each answer to the request that waits for it.
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use edge_wire::{DecodeResult, Frame, HEADER_BYTES, Kind, decode, problem_of};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::unix::OwnedReadHalf;

use super::super::in_flight::{InFlight, Pending};
use super::super::incoming::Incoming;
use super::super::reply::{Answer, AnswerBody, Outcome, SWITCHING};
use super::super::stream_buffer::Payload;
use super::streams::{self, UNASKED, UNASKED_SOCKET, violated};
use super::{GONE, HandlerConnection};
use crate::memory::MemoryShare;
use crate::scratch;

/// A connection whose answer finds no memory tries again after this.
const MEMORY_RETRY: Duration = Duration::from_millis(100);
/// What a connection may hold of an answer without asking for memory.
const FREE_BYTES: usize = 64 * 1024;

/// Reads answers until the connection ends. Returns why.
pub async fn read(connection: &Rc<HandlerConnection>, reader: &mut OwnedReadHalf, mut share: MemoryShare) -> String {
    let mut incoming = Incoming::default();
    loop {
        let held = incoming.held();
        let needed = match incoming.needed() {
            Ok(needed) if held > FREE_BYTES => needed,
            Ok(_) => 0,
            Err(error) => return violation(error),
        };
        if needed > 0 {
            match drop_unwanted(connection, &mut incoming, share.is_beyond_part(needed)) {
                Ok(false) => {}
                Ok(true) => {
                    connection.close_if_done();
                    continue;
                }
                Err(reason) => return reason,
            }
        }
        if !share.set(needed) {
            connection.is_paused.set(true);
            tokio::time::sleep(MEMORY_RETRY).await;
            continue;
        }
        connection.is_paused.set(false);
        let has_own_memory = match incoming.has_own_memory() {
            Ok(has_own_memory) => has_own_memory,
            Err(error) => return violation(error),
        };
        let read = if !has_own_memory {
            read_frames(connection, reader, &mut incoming).await
        } else {
            tokio::select! {
                biased;
                read = read_held(connection, reader, &mut incoming, &mut share) => read,
                () = connection.has_expired.notified() => Ok(()),
            }
        };
        if let Err(reason) = read {
            return reason;
        }
        connection.close_if_done();
        if held > FREE_BYTES {
            // Other connections have their turn.
            tokio::task::yield_now().await;
        }
    }
}

/// Reads into the memory that the connections of the thread share.
async fn read_frames(
    connection: &Rc<HandlerConnection>,
    reader: &mut OwnedReadHalf,
    incoming: &mut Incoming,
) -> Result<(), String> {
    poll_fn(|cx| {
        scratch::with(|bytes| {
            let held = incoming.held();
            let mut buffer = ReadBuf::new(&mut bytes[held..]);
            if ready!(Pin::new(&mut *reader).poll_read(cx, &mut buffer)).is_err() || buffer.filled().is_empty() {
                return Poll::Ready(Err(GONE.to_owned()));
            }
            let end = held + buffer.filled().len();
            incoming.unhold(bytes);
            let mut answered = Ok(());
            let read = incoming.read(&bytes[..end], |Frame { kind, number, head, body }| {
                if answered.is_ok() && kind != Kind::Response {
                    answered = streams::receive(connection, kind, number, head, Payload::Borrowed(body));
                } else if answered.is_ok() {
                    let body = || AnswerBody { bytes: body.to_vec(), start: 0, share: None };
                    answered = receive_answer(connection, number, head, body);
                }
            });
            Poll::Ready(read.map_err(violation).and(answered))
        })
    })
    .await
}

/// Reads more of a frame that has arrived in part.
async fn read_held(
    connection: &Rc<HandlerConnection>,
    reader: &mut OwnedReadHalf,
    incoming: &mut Incoming,
    share: &mut MemoryShare,
) -> Result<(), String> {
    let (held, room) = incoming.room().map_err(violation)?;
    let read = poll_fn(|cx| scratch::read_more(Pin::new(&mut *reader), cx, held, room)).await;
    if !matches!(read, Ok(1..)) {
        return Err(GONE.to_owned());
    }
    // Behind a large piece, there may be a frame that is nothing but a header.
    while let Some(frame) = incoming.whole().map_err(violation)? {
        held_frame(connection, frame, share)?;
    }
    Ok(())
}

fn held_frame(connection: &Rc<HandlerConnection>, frame: Vec<u8>, share: &mut MemoryShare) -> Result<(), String> {
    let DecodeResult::Frame(Frame { kind, number, head, .. }, _) = decode(&frame).map_err(violation)? else {
        return Ok(());
    };
    let start = HEADER_BYTES + head.len();
    let head = head.to_vec();
    if kind != Kind::Response {
        let body = Bytes::from(frame).slice(start..);
        return streams::receive(connection, kind, number, &head, Payload::Own(body));
    }
    // It is handed over with its memory, or other answers would take that first.
    let share = Some(share.hand_over());
    receive_answer(connection, number, &head, || AnswerBody { bytes: frame, start, share })
}

fn receive_answer(
    connection: &HandlerConnection,
    number: u32,
    head: &[u8],
    body: impl FnOnce() -> AnswerBody,
) -> Result<(), String> {
    let mut in_flight = connection.in_flight.borrow_mut();
    let Some(Pending { reply, .. }) = in_flight.take(number) else {
        return answered_late(&mut in_flight, number);
    };
    drop(in_flight);
    connection.close_body(number);
    reply.set(match connection.parse_head(head) {
        Ok(head) if head.status == SWITCHING => Outcome::Aborted(UNASKED_SOCKET.into()),
        Ok(head) => Outcome::Answered(Answer { head, body: body() }),
        Err(reason) => Outcome::Aborted(reason.into()),
    });
    Ok(())
}

/// Drops the frame that is held if its request is past its deadline, or its endpoint can have no memory for it.
fn drop_unwanted(
    connection: &HandlerConnection,
    incoming: &mut Incoming,
    is_beyond_part: bool,
) -> Result<bool, String> {
    let Some(number) = incoming.number() else { return Ok(false) };
    let mut in_flight = connection.in_flight.borrow_mut();
    if !in_flight.has(number) {
        answered_late(&mut in_flight, number)?;
    } else if is_beyond_part {
        let taken = in_flight.take(number);
        drop(in_flight);
        connection.close_body(number);
        if let Some(Pending { reply, .. }) = taken {
            reply.set(Outcome::TooLarge);
        }
    } else {
        return Ok(false);
    }
    incoming.drop_frame().map_err(violation)?;
    Ok(true)
}

/// An answer to a request past its deadline is late, any other to no request a violation.
fn answered_late(in_flight: &mut InFlight, number: u32) -> Result<(), String> {
    match in_flight.answered_late(number) {
        true => Ok(()),
        false => Err(violated(UNASKED)),
    }
}

fn violation(error: edge_wire::FrameError) -> String {
    violated(&problem_of(error))
}
