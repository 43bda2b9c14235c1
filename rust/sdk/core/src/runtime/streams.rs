//! The streams under way on a connection. Of those that are sent: how many bytes of each may be sent, and whether the
//! gateway still wants it. Those that arrive are in [`super::bodies`].

#[cfg(feature = "async")]
use super::bodies::BodyPart;
use super::bodies::{Bodies, BodyId};
use super::shared_memory::{self, SharedMemory};
use super::threads::lock;
use crate::wire::frame::{credited, shared, two_numbers, Frame, Kind, INITIAL_CREDIT};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{fence, AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
#[cfg(feature = "async")]
use std::task::{Context, Poll, Waker};

/// Most bytes of a stream that are sent at once (128 KiB): other answers on the connection wait meanwhile.
pub const MAX_PIECE_BYTES: usize = 128 << 10;

/// All streams of a connection.
#[derive(Default)]
pub struct Streams {
    table: Mutex<StreamTable>,
    /// A stream has got credit, a piece or an end, or is over; or nobody reads the connection any more.
    changed: Condvar,
    /// Threads that wait for credit, or for a piece.
    waiting: AtomicUsize,
    /// Whether there have ever been any bodies of requests.
    has_bodies: AtomicBool,
}

/// Streams by the numbers of their requests.
#[derive(Default)]
pub struct StreamTable {
    streams: HashMap<u32, Stream>,
    opened: u64,
    pub bodies: Bodies,
    is_closed: bool,
    /// The descriptors of memory, whose frames come next.
    descriptors: VecDeque<OwnedFd>,
    /// All that the gateway has given, by its numbers; `None` where it could not be had. Each is used for one stream at
    /// a time.
    memories: HashMap<u32, Option<SharedMemory>>,
}

/// A stream, whatever the number of its request is used for later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamId {
    /// The number of its request.
    pub number: u32,
    opened: u64,
}

struct Stream {
    id: StreamId,
    /// Bytes that may be sent.
    credit: usize,
    /// The gateway does not want it any more.
    is_reset: bool,
    /// Which memory the gateway sends its large pieces from, if any.
    memory: Option<u32>,
    /// Tasks that wait for credit, or for the end.
    #[cfg(feature = "async")]
    wakers: Vec<Waker>,
}

/// Counts a thread that waits.
pub struct WaitingThread<'a>(&'a AtomicUsize);

impl Drop for WaitingThread<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

impl Streams {
    /// Begins a stream.
    pub fn open(&self, number: u32) -> StreamId {
        let mut table = lock(&self.table);
        table.opened += 1;
        let id = StreamId { number, opened: table.opened };
        let stream = Stream {
            id,
            credit: INITIAL_CREDIT,
            is_reset: false,
            memory: None,
            #[cfg(feature = "async")]
            wakers: Vec::new(),
        };
        table.streams.insert(number, stream);
        id
    }

    /// Receives bytes of the connection, and keeps the descriptor that comes with them until they are decoded.
    ///
    /// # Errors
    /// See [`shared_memory::receive`].
    pub fn receive(&self, connection: &impl AsRawFd, room: &mut [u8]) -> io::Result<usize> {
        let (bytes, descriptor) = shared_memory::receive(connection, room)?;
        if let Some(descriptor) = descriptor {
            lock(&self.table).descriptors.push_back(descriptor);
        }
        Ok(bytes)
    }

    /// Begins to take the body of a request.
    pub fn open_body(&self, number: u32) -> BodyId {
        self.has_bodies.store(true, SeqCst);
        lock(&self.table).bodies.open(number)
    }

    /// Forgets a stream, which has ended, and the body of its request. Tells all that still wait for either.
    pub fn remove(&self, number: u32) {
        let mut table = lock(&self.table);
        if let Some(mut stream) = table.streams.remove(&number) {
            stream.wake();
        }
        table.bodies.remove(number);
        drop(table);
        self.changed.notify_all();
    }

    /// Ends the body of a request, of which nobody wants any more. Called before the request is answered whole.
    pub fn answered(&self, number: u32) {
        if self.has_bodies.load(SeqCst) {
            self.remove(number);
        }
    }

    /// Nobody reads any more of a body. See [`Bodies::close`].
    pub fn close_body(&self, id: BodyId) -> u32 {
        lock(&self.table).bodies.close(id)
    }

    /// Takes what the gateway sends about a stream. What is about one that has just ended is late. Returns what
    /// [`Bodies::take_frame`] does.
    ///
    /// # Errors
    /// A sentence for the log: the gateway sent something that only handlers send.
    pub fn control(&self, frame: &Frame<'_>) -> Result<u32, String> {
        let mut table = lock(&self.table);
        let mut credit = 0;
        let stream = table.streams.get_mut(&frame.number);
        match frame.kind {
            Kind::Credit => {
                let bytes = credited(frame.body).ok_or("a credit frame without a number")?;
                let Some(stream) = stream else { return Ok(0) };
                stream.credit = stream.credit.saturating_add(bytes as usize);
                stream.wake();
            }
            Kind::Memory => {
                let (which, bytes) = two_numbers(frame.body).ok_or("memory without a size")?;
                // The descriptor of new memory has come, maybe together with frames before this one about known memory.
                if !table.memories.contains_key(&which) {
                    let file = table.descriptors.pop_front();
                    let memory = file.and_then(|file| SharedMemory::map(&file, bytes as usize));
                    table.memories.insert(which, memory);
                }
                if let Some(stream) = table.streams.get_mut(&frame.number) {
                    stream.memory = Some(which);
                }
            }
            Kind::Reset => {
                if let Some(stream) = stream {
                    stream.is_reset = true;
                    stream.wake();
                }
                table.bodies.take_frame(frame);
            }
            Kind::Data | Kind::End | Kind::Text | Kind::Binary | Kind::Ping | Kind::Pong | Kind::Close => {
                credit = table.bodies.take_frame(frame);
            }
            Kind::Request | Kind::Open | Kind::Response | Kind::Stream | Kind::Shared => {
                return Err("a frame that only handlers send".into())
            }
        }
        drop(table);
        self.changed.notify_all();
        Ok(credit)
    }

    /// The connection is closed: nobody wants any of its streams.
    pub fn close(&self) {
        let mut table = lock(&self.table);
        table.is_closed = true;
        table.streams.values_mut().for_each(Stream::wake);
        table.bodies.close_all();
        drop(table);
        self.changed.notify_all();
    }

    /// Whether nobody wants a stream any more.
    pub fn is_over(&self, id: StreamId) -> bool {
        lock(&self.table).is_over(id)
    }

    /// The locked table, for [`StreamTable::take`] and [`Streams::wait`].
    pub fn lock(&self) -> MutexGuard<'_, StreamTable> {
        lock(&self.table)
    }

    /// Says that this thread waits, so that whoever stops reading tells it.
    pub fn begin_waiting(&self) -> WaitingThread<'_> {
        self.waiting.fetch_add(1, SeqCst);
        fence(SeqCst);
        WaitingThread(&self.waiting)
    }

    /// Waits until something has changed.
    pub fn wait<'a>(&self, table: MutexGuard<'a, StreamTable>) -> MutexGuard<'a, StreamTable> {
        self.changed.wait(table).unwrap_or_else(PoisonError::into_inner)
    }

    /// Called by a thread that has stopped reading: one that waits has to read instead.
    pub fn reader_has_left(&self) {
        fence(SeqCst);
        if self.waiting.load(SeqCst) > 0 {
            // The table is locked once, as the other thread could be about to wait.
            drop(lock(&self.table));
            self.changed.notify_all();
        }
    }

    /// Waits until bytes of a stream may be sent, at most `max`, while another thread reads the connection.
    ///
    /// # Errors
    /// `BrokenPipe` when nobody wants the stream any more.
    #[cfg(feature = "async")]
    pub fn take(&self, id: StreamId, max: usize) -> io::Result<usize> {
        let mut table = lock(&self.table);
        loop {
            match table.take(id, max)? {
                0 => table = self.wait(table),
                bytes => return Ok(bytes),
            }
        }
    }

    /// The same for a task, which sends so many bytes with `send` at once: nothing else can end the stream before.
    #[cfg(feature = "async")]
    pub fn poll_send(
        &self,
        id: StreamId,
        max: usize,
        context: &Context<'_>,
        send: impl FnOnce(&mut StreamTable, usize),
    ) -> Poll<io::Result<usize>> {
        let mut table = lock(&self.table);
        match table.take(id, max)? {
            0 => {
                table.wake_later(id, context);
                Poll::Pending
            }
            bytes => {
                send(&mut table, bytes);
                Poll::Ready(Ok(bytes))
            }
        }
    }

    /// Takes credit for so many bytes at once.
    ///
    /// # Errors
    /// `BrokenPipe` when nobody wants the stream any more.
    #[cfg(feature = "async")]
    pub fn poll_take_all(&self, id: StreamId, bytes: usize, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut table = lock(&self.table);
        match table.take_all(id, bytes) {
            Ok(false) => {
                table.wake_later(id, context);
                Poll::Pending
            }
            result => Poll::Ready(result.map(|_| ())),
        }
    }

    /// The next of a body, while another thread reads the connection.
    ///
    /// # Errors
    /// See [`Bodies::take`].
    #[cfg(feature = "async")]
    pub fn take_of_body(&self, id: BodyId) -> io::Result<BodyPart> {
        let mut table = lock(&self.table);
        loop {
            match table.bodies.take(id)? {
                None => table = self.wait(table),
                Some(part) => return Ok(part),
            }
        }
    }

    /// The same for a task.
    #[cfg(feature = "async")]
    pub fn poll_of_body(&self, id: BodyId, context: &Context<'_>) -> Poll<io::Result<BodyPart>> {
        let mut table = lock(&self.table);
        match table.bodies.take(id)? {
            None => {
                table.bodies.wake_later(id, context);
                Poll::Pending
            }
            Some(part) => Poll::Ready(Ok(part)),
        }
    }

    /// Resolves when nobody wants a stream any more.
    #[cfg(feature = "async")]
    pub async fn over(&self, id: StreamId) {
        std::future::poll_fn(|context| {
            let mut table = lock(&self.table);
            if table.is_over(id) {
                return Poll::Ready(());
            }
            table.wake_later(id, context);
            Poll::Pending
        })
        .await
    }
}

impl StreamTable {
    /// Takes credit of a stream: at most `max` bytes, 0 if there is none.
    ///
    /// # Errors
    /// `BrokenPipe` when nobody wants the stream any more.
    pub fn take(&mut self, id: StreamId, max: usize) -> io::Result<usize> {
        let stream = self
            .live(id)
            .ok_or_else(|| io::Error::new(io::ErrorKind::BrokenPipe, "the client has left, or the stream has ended"))?;
        let bytes = stream.credit.min(max);
        stream.credit -= bytes;
        Ok(bytes)
    }

    /// Takes credit for so many bytes, or nothing. Whether it has.
    ///
    /// # Errors
    /// `BrokenPipe` when nobody wants the stream any more.
    pub fn take_all(&mut self, id: StreamId, bytes: usize) -> io::Result<bool> {
        let has_credit = self.live(id).is_some_and(|stream| stream.credit >= bytes);
        self.take(id, if has_credit { bytes } else { 0 })?;
        Ok(has_credit)
    }

    /// Puts bytes into the memory of a stream; the frame that says so. `None` if they have to be sent as data.
    pub fn put(&mut self, id: StreamId, bytes: &[u8]) -> Option<Vec<u8>> {
        let which = self.live(id)?.memory?;
        let start = self.memories.get_mut(&which)?.as_mut()?.put(bytes)?;
        Some(shared(id.number, start as u32, bytes.len() as u32).to_vec())
    }

    fn is_over(&mut self, id: StreamId) -> bool {
        self.live(id).is_none()
    }

    /// A stream, unless nobody wants it any more.
    fn live(&mut self, id: StreamId) -> Option<&mut Stream> {
        let stream = self.streams.get_mut(&id.number)?;
        (!self.is_closed && stream.id == id && !stream.is_reset).then_some(stream)
    }

    #[cfg(feature = "async")]
    fn wake_later(&mut self, id: StreamId, context: &Context<'_>) {
        let Some(stream) = self.live(id) else { return };
        if !stream.wakers.iter().any(|waker| waker.will_wake(context.waker())) {
            stream.wakers.push(context.waker().clone());
        }
    }
}

impl Stream {
    fn wake(&mut self) {
        #[cfg(feature = "async")]
        self.wakers.drain(..).for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests;
