//! The loop on tokio: a task for every request, any number of them waiting at once.

mod local;
mod socket;
mod stream;

pub use socket::{run_socket, TaskSocket};
pub use stream::{AsyncBodyWriter, TaskBody};

use super::answer::{Answer, Answered, AsyncAnswer};
use super::bodies::is_opening;
use super::body_source::BodySource;
use super::current::{self, Current};
use super::input::{Incoming, Input};
use super::streams::{StreamId, Streams};
use super::{panics, process, shared_memory};
use crate::wire::frame::{credit, Kind};
use crate::wire::takes::Takes;
use crate::wire::{buffer::Buffer, head};
use crate::Response;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{self, AssertUnwindSafe};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver, UnboundedSender};

/// A running call. Boxed, so that tokio's tasks are compiled here and not in every handler.
type Call = Pin<Box<dyn Future<Output = Answered> + Send>>;
/// A running call that must stay on the thread it began on.
type LocalCall = Pin<Box<dyn Future<Output = Answered>>>;

/// How calls are made.
#[derive(Clone, Copy)]
enum Caller {
    /// On any thread of the runtime.
    Shared(&'static (dyn Fn(Incoming) -> Call + Sync)),
    /// On threads that keep what they began.
    Local(&'static local::Threads),
}

/// An async handler. Of the three methods `run`, the compiler takes the first that fits: by the rules of method lookup,
/// on a `&&AsyncHandler`, that of [`RunShared`] if the future may move between threads, then that of [`RunLocal`], then
/// its own.
pub struct AsyncHandler<F, I> {
    handler: F,
    input: PhantomData<fn(I)>,
}

impl<F, I> AsyncHandler<F, I> {
    /// Wraps a handler.
    pub fn new<Fut>(handler: F) -> Self
    where
        I: Input,
        F: Fn(I) -> Fut,
        Fut: AsyncAnswer,
    {
        AsyncHandler { handler, input: PhantomData }
    }

    /// For functions that `new` refuses, so that the compiler reports that and no missing method as well.
    pub fn run(&self) -> ! {
        unreachable!("a handler is either shared or local")
    }
}

/// Serves requests until the gateway stops the process, each call a task of a multi-threaded runtime.
pub trait RunShared {
    /// Never returns.
    fn run(&self) -> !;
}

impl<F, I, Fut> RunShared for &AsyncHandler<F, I>
where
    I: Input + 'static,
    F: Fn(I) -> Fut + Copy + Sync + 'static,
    Fut: Future<Output: Answer> + Send + 'static,
{
    fn run(&self) -> ! {
        let handler = self.handler;
        let call = move |incoming| {
            let future = handler(I::of(incoming));
            Box::pin(async move { future.await.into_answered() }) as Call
        };
        run(I::TAKES, Start::Shared(Box::new(call)))
    }
}

/// Serves requests until the gateway stops the process, each call a task of the thread it began on.
pub trait RunLocal {
    /// Never returns.
    fn run(&self) -> !;
}

impl<F, I, Fut> RunLocal for &&AsyncHandler<F, I>
where
    I: Input + 'static,
    F: Fn(I) -> Fut + Copy + Sync + 'static,
    Fut: Future<Output: Answer> + 'static,
{
    fn run(&self) -> ! {
        let handler = self.handler;
        let call = move |incoming| {
            let future = handler(I::of(incoming));
            Box::pin(async move { future.await.into_answered() }) as LocalCall
        };
        run(I::TAKES, Start::Local(Box::new(call)))
    }
}

/// A handler before the process is set up.
enum Start {
    Shared(Box<dyn Fn(Incoming) -> Call + Sync>),
    Local(Box<dyn Fn(Incoming) -> LocalCall + Sync>),
}

// Not generic: compiled here, with all of tokio that it needs, and not in every handler.
#[inline(never)]
fn run(takes: Takes, start: Start) -> ! {
    let mut process = process::Process::from_environment();
    super::records::install(process.log.take());
    panics::install_hook();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .max_blocking_threads(process.max_threads)
        .enable_all()
        .build()
        .unwrap_or_else(|error| process::fatal(&format!("cannot start tokio: {error}")));
    // Leaked, as they are needed for as long as the process lives.
    let caller = match start {
        Start::Shared(call) => Caller::Shared(Box::leak(call)),
        Start::Local(call) => Caller::Local(Box::leak(Box::new(local::Threads::start(Box::leak(call))))),
    };
    let listener = process.listen(takes);
    runtime.block_on(accept(listener, caller, takes))
}

async fn accept(listener: std::os::unix::net::UnixListener, caller: Caller, takes: Takes) -> ! {
    let listener = listener
        .set_nonblocking(true)
        .and_then(|()| UnixListener::from_std(listener))
        .unwrap_or_else(|error| process::fatal(&format!("cannot listen with tokio: {error}")));
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(serve(stream, caller, takes));
            }
            Err(error) => process::accept_failed(&error),
        }
    }
}

async fn serve(stream: UnixStream, caller: Caller, takes: Takes) {
    let (read_half, write_half) = stream.into_split();
    let (answers, waiting) = unbounded_channel();
    let writer = tokio::spawn(write(write_half, waiting));
    let answers = Answers { sender: answers, streams: Arc::default() };
    let streams = answers.streams.clone();
    let read = read(&read_half, caller, takes, answers).await;
    streams.close();
    if let Err(why) = read {
        eprintln!("edge-gateway-sdk: a connection is closed: {why}");
        // The answers of calls that still run have nowhere to go.
        writer.abort();
    }
}

async fn read(stream: &OwnedReadHalf, caller: Caller, takes: Takes, answers: Answers) -> Result<(), String> {
    let mut received = Buffer::new();
    loop {
        let socket: &UnixStream = stream.as_ref();
        let receive = || shared_memory::receive(socket, received.room(), &answers.streams);
        let n = socket.async_io(Interest::READABLE, receive).await;
        let n = n.map_err(|error| format!("reading failed: {error}"))?;
        if n == 0 {
            return match received.is_mid_frame() {
                true => Err("it ended inside a frame".to_owned()),
                false => Ok(()),
            };
        }
        received.filled(n);
        while let Some(frame) = received.next_frame().map_err(|error| error.to_string())? {
            if !matches!(frame.kind, Kind::Request | Kind::Open) {
                let credit = answers.streams.control(&frame)?;
                answers.give_credit(frame.number, credit);
                continue;
            }
            let number = frame.number;
            let request = head::request(&frame)?;
            let answers = answers.clone();
            let body = is_opening(frame.kind, takes)?.then(|| BodySource::Task(TaskBody::open(&answers, number)));
            let incoming = Incoming { request, body };
            match caller {
                Caller::Shared(handler) => {
                    tokio::spawn(async move { answers.answer(number, call(handler, incoming).await).await });
                }
                Caller::Local(threads) => threads.call(number, incoming, answers),
            }
        }
    }
}

/// Where the answers of a connection go, and the credit of its streams.
#[derive(Clone)]
struct Answers {
    sender: UnboundedSender<Outgoing>,
    streams: Arc<Streams>,
}

/// What is to be written.
enum Outgoing {
    Answer(u32, Response),
    /// Frames of a stream.
    Frames(Vec<u8>),
}

impl Answers {
    /// Answers a request. Returns at the end of the answer, if it is a stream.
    async fn answer(&self, number: u32, answered: Answered) {
        match answered {
            Answered::Whole(response) => {
                self.streams.answered(number);
                self.send(Outgoing::Answer(number, response));
            }
            Answered::Stream(answer) => stream::answer(self, number, *answer).await,
            Answered::Socket(last_frames) => socket::end(self, number, last_frames),
        }
    }

    /// Sends the head of a stream or of a WebSocket; or, if it is none, a whole answer that says so.
    fn begin(&self, number: u32, head: Vec<u8>, is_stream: bool) -> Option<StreamId> {
        // Credit may come as soon as the head is written.
        let id = is_stream.then(|| self.streams.open(number));
        if id.is_none() {
            self.streams.answered(number);
        }
        self.send(Outgoing::Frames(head));
        id
    }

    /// Tells the gateway that it may send so many more bytes of a request's body; nothing if it is 0.
    fn give_credit(&self, number: u32, bytes: u32) {
        if bytes > 0 {
            self.send(Outgoing::Frames(credit(number, bytes).to_vec()));
        }
    }

    fn send(&self, outgoing: Outgoing) {
        // Fails only if the connection is closed.
        let _ = self.sender.send(outgoing);
    }
}

/// Whether this thread belongs to a runtime that can move its other tasks to another thread.
pub fn can_block_in_place() -> bool {
    Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread)
}

/// Makes a call; a panic becomes a 500.
async fn call<F>(handler: &(dyn Fn(Incoming) -> F + Sync), incoming: Incoming) -> Answered
where
    F: Future<Output = Answered> + Unpin,
{
    let current = Current::of(&incoming.request);
    // Calling an async fn runs none of it; but a handler may be an ordinary function that returns a future.
    let future = {
        let _working = current::work_on(Some(current.clone()));
        panic::catch_unwind(AssertUnwindSafe(|| handler(incoming)))
    };
    match future {
        Ok(future) => Guarded { future, current }.await.unwrap_or_else(panics::answer),
        Err(_) => panics::answer(),
    }
}

/// A call whose panics become `None`, with its request named to the panic hook.
struct Guarded<F> {
    future: F,
    current: Arc<Current>,
}

impl<F: Future + Unpin> Future for Guarded<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let _working = current::work_on(Some(self.current.clone()));
        // A future that panicked is not polled again.
        let polled = panic::catch_unwind(AssertUnwindSafe(|| Pin::new(&mut self.future).poll(context)));
        polled.map_or(Poll::Ready(None), |polled| polled.map(Some))
    }
}

/// Writes all answers that are ready at once.
async fn write(mut stream: OwnedWriteHalf, mut waiting: UnboundedReceiver<Outgoing>) {
    const MOST_AT_ONCE: usize = 256;
    let mut ready = Vec::new();
    let mut out = Vec::new();
    while waiting.recv_many(&mut ready, MOST_AT_ONCE).await > 0 {
        for outgoing in ready.drain(..) {
            match outgoing {
                Outgoing::Answer(number, response) => {
                    let body = head::response(&mut out, number, response);
                    out.extend_from_slice(&body);
                }
                Outgoing::Frames(frames) => out.extend_from_slice(&frames),
            }
        }
        if stream.write_all(&out).await.is_err() {
            return;
        }
        out = Vec::new();
    }
}
