//! Where the pieces of a request's body come from, for its reader.

#[cfg(feature = "async")]
use super::asynchronous::connection::TaskBody;
use super::bodies::ReceivedPiece;
use super::waiting::ConnectionBody;
use crate::wire::frame::Kind;
use std::io;
#[cfg(feature = "async")]
use std::task::{Context, Poll};

/// The pieces of a body.
pub enum BodySource {
    /// All of it; nothing once it was read.
    Whole(Vec<u8>),
    /// It arrives on the connection of a thread.
    Connection(ConnectionBody),
    /// It arrives on the connection of tasks.
    #[cfg(feature = "async")]
    Task(TaskBody),
    /// Another reader has it.
    HasReader,
}

impl BodySource {
    /// The next piece, which is waited for; `None` at the end.
    ///
    /// # Errors
    /// `ConnectionAborted` when the body has no end.
    pub fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        self.next_frame().map(|next| next.map(|(_, bytes)| bytes))
    }

    /// The same with what it is, for WebSockets.
    ///
    /// # Errors
    /// See [`BodySource::next`].
    pub fn next_frame(&mut self) -> io::Result<ReceivedPiece> {
        match self {
            BodySource::Whole(bytes) => Ok(take(bytes)),
            BodySource::Connection(body) => body.next(),
            #[cfg(feature = "async")]
            BodySource::Task(body) => body.next(),
            BodySource::HasReader => Err(has_reader()),
        }
    }

    /// The same for a task.
    #[cfg(feature = "async")]
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<Vec<u8>>>> {
        self.poll_frame(context).map_ok(|next| next.map(|(_, bytes)| bytes))
    }

    /// See [`BodySource::next_frame`].
    #[cfg(feature = "async")]
    pub fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<io::Result<ReceivedPiece>> {
        match self {
            BodySource::Whole(bytes) => Poll::Ready(Ok(take(bytes))),
            BodySource::Connection(_) => {
                Poll::Ready(Err(io::Error::other("an async reader is for handler_loop_async! only: use body_reader()")))
            }
            BodySource::Task(body) => body.poll_next(context),
            BodySource::HasReader => Poll::Ready(Err(has_reader())),
        }
    }
}

fn take(bytes: &mut Vec<u8>) -> ReceivedPiece {
    (!bytes.is_empty()).then(|| (Kind::Data, std::mem::take(bytes)))
}

fn has_reader() -> io::Error {
    io::Error::other("the body of this request has a reader already")
}
