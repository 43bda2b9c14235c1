//! The bytes of a connection of HTTP/2. It sees which frames come, and ends a client that does not take what it gets.
use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::frames::Frames;
use crate::guard::{CloseReason, Phase, Watch, WatchedConnection};
use crate::tls::Transport;

/// What the tasks of a connection know of each other.
pub struct Connection {
    reading: WatchedConnection,
    writing: WatchedConnection,
    frames: RefCell<Frames>,
    /// Streams that are served.
    open: Cell<usize>,
}

impl Connection {
    /// `reading` is for what the client sends, `writing` for what it takes.
    pub fn new(reading: WatchedConnection, writing: WatchedConnection) -> Rc<Self> {
        let frames = RefCell::new(Frames::new());
        Rc::new(Self { reading, writing, frames, open: Cell::default() })
    }

    /// Streams that are served, also those that the client has reset meanwhile.
    pub fn open(&self) -> usize {
        self.open.get()
    }

    /// A stream, as long as it is served.
    pub fn open_stream(self: &Rc<Self>) -> OpenStream {
        self.open.set(self.open.get() + 1);
        self.settle();
        OpenStream(self.clone())
    }

    pub fn is_flooded(&self) -> bool {
        self.frames.borrow().are_too_many()
    }

    pub fn watch(&self) -> &Watch {
        &self.reading.watch
    }

    /// Waits for what is to come next: the rest of a head, or the first one; the next request; or what streams wait
    /// for. Other frames give a client no more time.
    fn settle(&self) {
        let frames = self.frames.borrow();
        let phase = match self.open.get() {
            _ if frames.is_in_head() || frames.heads() == 0 => Phase::Head,
            0 => Phase::Idle,
            _ => Phase::Unwatched,
        };
        if self.watch().phase() != phase {
            self.watch().begin(phase);
        }
    }
}

pub struct OpenStream(Rc<Connection>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.open.set(self.0.open.get() - 1);
        self.0.settle();
    }
}

/// Shared, because the connection is closed with care when `h2` is done with it.
pub struct Wire {
    transport: Rc<RefCell<Transport>>,
    connection: Rc<Connection>,
    /// Bytes that were read before HTTP/2 began.
    buffered: Vec<u8>,
}

impl Wire {
    pub fn new(transport: Rc<RefCell<Transport>>, connection: Rc<Connection>, buffered: Vec<u8>) -> Self {
        Self { transport, connection, buffered }
    }

    fn wrote(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        let watch = &self.connection.writing.watch;
        match written {
            Poll::Ready(Ok(bytes)) => {
                watch.transferred(bytes);
                self.connection.frames.borrow_mut().sent(bytes);
            }
            Poll::Pending if watch.close_reason() == Some(CloseReason::SlowReceiver) => {
                // Reset, or the kernel would keep sending buffered data for minutes.
                let _ = self.transport.borrow().tcp().set_zero_linger();
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            Poll::Pending if watch.phase() == Phase::Unwatched => watch.begin(Phase::Response),
            Poll::Pending | Poll::Ready(Err(_)) => {}
        }
        written
    }
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let wire = self.get_mut();
        if wire.connection.is_flooded() {
            // Nothing more is read: the connection ends.
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        if wire.buffered.is_empty() {
            ready!(Pin::new(&mut *wire.transport.borrow_mut()).poll_read(cx, buffer))?;
        } else {
            let length = wire.buffered.len().min(buffer.remaining());
            buffer.put_slice(&wire.buffered[..length]);
            wire.buffered.drain(..length);
            wire.buffered.shrink_to_fit();
        }
        wire.connection.frames.borrow_mut().take(&buffer.filled()[before..]);
        wire.connection.settle();
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut *self.transport.borrow_mut()).poll_write(cx, bytes);
        self.wrote(written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut *self.transport.borrow_mut()).poll_write_vectored(cx, slices);
        self.wrote(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.transport.borrow().is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut *self.transport.borrow_mut()).poll_flush(cx);
        // Everything that there was to write is written.
        ready!(self.wrote(flushed.map_ok(|()| 0)))?;
        let watch = &self.connection.writing.watch;
        if watch.phase() != Phase::Unwatched {
            watch.begin(Phase::Unwatched);
        }
        Poll::Ready(Ok(()))
    }

    /// It is closed later.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}
