//! The streams under way on a connection. Of those that are sent: how many bytes of each may be sent, and whether the
//! gateway still wants it. Those that arrive are in [`super::bodies`].

#[cfg(feature = "async")]
use super::bodies::Taken;
use super::bodies::{Bodies, BodyId};
use super::lock;
use crate::wire::frame::{credited, Frame, Kind, INITIAL_CREDIT};
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{fence, AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
#[cfg(feature = "async")]
use std::task::{Context, Poll, Waker};

/// All streams of a connection.
#[derive(Default)]
pub struct Streams {
    table: Mutex<Table>,
    /// A stream has got credit, a piece or an end, or is over; or nobody reads the connection any more.
    changed: Condvar,
    /// Threads that wait for credit, or for a piece.
    waiting: AtomicUsize,
    /// Whether there have ever been any bodies of requests.
    has_bodies: AtomicBool,
}

/// Streams by the numbers of their requests.
#[derive(Default)]
pub struct Table {
    streams: HashMap<u32, Stream>,
    pub bodies: Bodies,
    is_closed: bool,
}

struct Stream {
    /// Bytes that may be sent.
    credit: usize,
    /// The gateway does not want it any more.
    is_reset: bool,
    /// Tasks that wait for credit, or for the end.
    #[cfg(feature = "async")]
    wakers: Vec<Waker>,
}

/// Counts a thread that waits.
pub struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

impl Streams {
    /// Begins a stream.
    pub fn open(&self, number: u32) {
        let stream = Stream {
            credit: INITIAL_CREDIT,
            is_reset: false,
            #[cfg(feature = "async")]
            wakers: Vec::new(),
        };
        lock(&self.table).streams.insert(number, stream);
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

    /// To be called before a request is answered whole: nobody wants any more of its body.
    pub fn answered(&self, number: u32) {
        if self.has_bodies.load(SeqCst) {
            self.remove(number);
        }
    }

    /// Nobody reads any more of a body.
    pub fn close_body(&self, id: BodyId) {
        lock(&self.table).bodies.close(id);
    }

    /// Takes what the gateway sends about a stream. What is about one that has just ended is late.
    ///
    /// # Errors
    /// A sentence for the log: the gateway sent something that only handlers send.
    pub fn control(&self, frame: &Frame<'_>) -> Result<(), String> {
        let mut table = lock(&self.table);
        let stream = table.streams.get_mut(&frame.number);
        match frame.kind {
            Kind::Credit => {
                let bytes = credited(frame.body).ok_or("a credit frame without a number")?;
                let Some(stream) = stream else { return Ok(()) };
                stream.credit = stream.credit.saturating_add(bytes as usize);
                stream.wake();
            }
            Kind::Reset => {
                if let Some(stream) = stream {
                    stream.is_reset = true;
                    stream.wake();
                }
                table.bodies.take_frame(frame);
            }
            Kind::Data | Kind::End | Kind::Text | Kind::Binary | Kind::Ping | Kind::Pong | Kind::Close => {
                table.bodies.take_frame(frame);
            }
            Kind::Request | Kind::Open | Kind::Response | Kind::Stream => {
                return Err("a frame that only handlers send".into())
            }
        }
        drop(table);
        self.changed.notify_all();
        Ok(())
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
    pub fn is_over(&self, number: u32) -> bool {
        lock(&self.table).is_over(number)
    }

    /// For [`Table::take`] and [`Streams::wait`].
    pub fn lock(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }

    /// Says that this thread waits, so that whoever stops reading tells it.
    pub fn begin_waiting(&self) -> Waiting<'_> {
        self.waiting.fetch_add(1, SeqCst);
        fence(SeqCst);
        Waiting(&self.waiting)
    }

    /// Waits until something has changed.
    pub fn wait<'a>(&self, table: MutexGuard<'a, Table>) -> MutexGuard<'a, Table> {
        self.changed.wait(table).unwrap_or_else(PoisonError::into_inner)
    }

    /// To be called by a thread that has stopped reading: one that waits has to read instead.
    pub fn reader_has_left(&self) {
        fence(SeqCst);
        if self.waiting.load(SeqCst) > 0 {
            // With the lock, or it could be about to wait.
            drop(lock(&self.table));
            self.changed.notify_all();
        }
    }

    /// Waits until bytes of a stream may be sent, at most `max`, while another thread reads the connection.
    ///
    /// # Errors
    /// `BrokenPipe` when nobody wants the stream any more.
    #[cfg(feature = "async")]
    pub fn take(&self, number: u32, max: usize) -> io::Result<usize> {
        let mut table = lock(&self.table);
        loop {
            match table.take(number, max)? {
                0 => table = self.wait(table),
                bytes => return Ok(bytes),
            }
        }
    }

    /// The same for a task.
    #[cfg(feature = "async")]
    pub fn poll_take(&self, number: u32, max: usize, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut table = lock(&self.table);
        match table.take(number, max) {
            Ok(0) => {
                table.wake_later(number, context);
                Poll::Pending
            }
            taken => Poll::Ready(taken),
        }
    }

    /// Takes credit for so many bytes at once.
    ///
    /// # Errors
    /// `BrokenPipe` when nobody wants the stream any more.
    #[cfg(feature = "async")]
    pub fn poll_take_all(&self, number: u32, bytes: usize, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut table = lock(&self.table);
        match table.take_all(number, bytes) {
            Ok(false) => {
                table.wake_later(number, context);
                Poll::Pending
            }
            taken => Poll::Ready(taken.map(|_| ())),
        }
    }

    /// The next of a body, while another thread reads the connection.
    ///
    /// # Errors
    /// See [`Bodies::take`].
    #[cfg(feature = "async")]
    pub fn take_of_body(&self, id: BodyId) -> io::Result<Taken> {
        let mut table = lock(&self.table);
        loop {
            match table.bodies.take(id)? {
                None => table = self.wait(table),
                Some(taken) => return Ok(taken),
            }
        }
    }

    /// The same for a task.
    #[cfg(feature = "async")]
    pub fn poll_of_body(&self, id: BodyId, context: &Context<'_>) -> Poll<io::Result<Taken>> {
        let mut table = lock(&self.table);
        match table.bodies.take(id)? {
            None => {
                table.bodies.wake_later(id, context);
                Poll::Pending
            }
            Some(taken) => Poll::Ready(Ok(taken)),
        }
    }

    /// Resolves when nobody wants a stream any more.
    #[cfg(feature = "async")]
    pub async fn over(&self, number: u32) {
        std::future::poll_fn(|context| {
            let mut table = lock(&self.table);
            if table.is_over(number) {
                return Poll::Ready(());
            }
            table.wake_later(number, context);
            Poll::Pending
        })
        .await
    }
}

impl Table {
    /// Takes credit of a stream: at most `max` bytes, 0 if there is none.
    ///
    /// # Errors
    /// `BrokenPipe` when nobody wants the stream any more.
    pub fn take(&mut self, number: u32, max: usize) -> io::Result<usize> {
        if self.is_over(number) {
            return Err(io::Error::new(io::ErrorKind::BrokenPipe, "the client has left"));
        }
        let Some(stream) = self.streams.get_mut(&number) else { return Ok(0) };
        let taken = stream.credit.min(max);
        stream.credit -= taken;
        Ok(taken)
    }

    /// Takes credit for so many bytes, or nothing. Whether it has.
    ///
    /// # Errors
    /// `BrokenPipe` when nobody wants the stream any more.
    pub fn take_all(&mut self, number: u32, bytes: usize) -> io::Result<bool> {
        let has_credit = self.streams.get(&number).is_some_and(|stream| stream.credit >= bytes);
        let taken = self.take(number, if has_credit { bytes } else { 0 });
        taken.map(|_| has_credit)
    }

    fn is_over(&self, number: u32) -> bool {
        self.is_closed || self.streams.get(&number).is_none_or(|stream| stream.is_reset)
    }

    #[cfg(feature = "async")]
    fn wake_later(&mut self, number: u32, context: &Context<'_>) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
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
mod tests {
    use super::*;
    use crate::wire::frame::{credit, decode, header, Decoded};
    #[cfg(feature = "async")]
    use std::{future::Future, sync::Arc};

    fn control(streams: &Streams, bytes: &[u8]) -> Result<(), String> {
        let Ok(Decoded::Frame(frame, _)) = decode(bytes) else { panic!("it is whole") };
        streams.control(&frame)
    }

    #[test]
    fn credit_is_taken_and_given_back() {
        let streams = Streams::default();
        streams.open(1);
        assert_eq!(streams.lock().take(1, 10).unwrap(), 10);
        assert_eq!(streams.lock().take(1, usize::MAX).unwrap(), INITIAL_CREDIT - 10);
        assert_eq!(streams.lock().take(1, 10).unwrap(), 0);
        control(&streams, &credit(1, 4)).unwrap();
        control(&streams, &credit(2, 4)).unwrap();
        assert_eq!(streams.lock().take(1, 10).unwrap(), 4);
        control(&streams, &credit(1, u32::MAX)).unwrap();
        control(&streams, &credit(1, u32::MAX)).unwrap();
        assert_eq!(streams.lock().take(1, 10).unwrap(), 10);
    }

    #[cfg(feature = "async")]
    #[test]
    fn those_that_wait_for_the_end_of_a_stream_are_woken_by_any_end() {
        let ends: [fn(&Streams); 3] = [
            |streams| streams.remove(1),
            |streams| control(streams, &header(Kind::Reset, 1, 0, 0)).unwrap(),
            Streams::close,
        ];
        for end in ends {
            let streams = Streams::default();
            streams.open(1);
            let woken = Arc::new(Woken::default());
            let waker = Waker::from(woken.clone());
            let mut over = Box::pin(streams.over(1));
            assert!(over.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            assert!(!woken.0.load(SeqCst));
            end(&streams);
            assert!(woken.0.load(SeqCst));
            assert!(over.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
        }
    }

    /// Whether a task was woken.
    #[cfg(feature = "async")]
    #[derive(Default)]
    struct Woken(AtomicBool);

    #[cfg(feature = "async")]
    impl std::task::Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, SeqCst);
        }
    }

    #[test]
    fn nobody_wants_what_is_reset_or_closed() {
        let streams = Streams::default();
        streams.open(1);
        streams.open(2);
        control(&streams, &header(Kind::Reset, 1, 0, 0)).unwrap();
        assert_eq!(streams.lock().take(1, 10).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert!(streams.is_over(1) && !streams.is_over(2));
        streams.close();
        assert!(streams.is_over(2));
        assert!(streams.lock().take(2, 10).is_err());
        assert!(control(&streams, &header(Kind::Stream, 1, 0, 0)).is_err());
        let short = [&header(Kind::Credit, 1, 0, 3)[..], b"123"].concat();
        assert!(control(&streams, &short).is_err());
    }
}
