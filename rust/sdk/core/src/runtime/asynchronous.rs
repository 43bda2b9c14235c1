//! The loop on tokio: a task for every request, any number of them waiting at once.

pub mod body_writer;
mod calls;
pub mod connection;
mod local;
mod stream;

use super::answer::{Answer, AsyncAnswer};
use super::bodies::is_opening;
use super::body_source::BodySource;
use super::current::CurrentRequest;
use super::input::{Incoming, Input};
use super::panics::{self, PanicGuard};
use super::socket::{requested_socket, SocketEnd};
use super::{process, records};
use crate::websocket::asynchronous::AsyncWebSocket;
use crate::wire::buffer::Buffer;
use crate::wire::frame::Kind;
use crate::wire::head;
use crate::wire::takes::Takes;
use calls::{CallFuture, LocalCallFuture};
use connection::{TaskBody, TaskConnection};
use std::future::Future;
use std::marker::PhantomData;
use tokio::io::Interest;
use tokio::net::unix::OwnedReadHalf;
use tokio::net::{UnixListener, UnixStream};

/// Where calls are made.
#[derive(Clone, Copy)]
enum Executor {
    /// Calls are made on any thread of the runtime.
    Shared(&'static (dyn Fn(Incoming) -> CallFuture + Sync)),
    /// Calls are made on threads that keep what they began.
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

    /// It is there for functions that `new` refuses, so that the compiler reports that and no missing method as well.
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
            Box::pin(async move { future.await.into_outgoing() }) as CallFuture
        };
        run(I::TAKES, BoxedHandler::Shared(Box::new(call)))
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
            Box::pin(async move { future.await.into_outgoing() }) as LocalCallFuture
        };
        run(I::TAKES, BoxedHandler::Local(Box::new(call)))
    }
}

/// A handler before the process is set up.
enum BoxedHandler {
    Shared(Box<dyn Fn(Incoming) -> CallFuture + Sync>),
    Local(Box<dyn Fn(Incoming) -> LocalCallFuture + Sync>),
}

// Not generic: compiled here, with all of tokio that it needs, and not in every handler.
#[inline(never)]
fn run(takes: Takes, handler: BoxedHandler) -> ! {
    let mut process = process::Process::from_environment();
    records::install(process.log.take());
    panics::install_hook();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .max_blocking_threads(process.max_threads)
        .enable_all()
        .build()
        .unwrap_or_else(|error| process::fatal(&format!("cannot start tokio: {error}")));
    // Leaked, as they are needed for as long as the process lives.
    let executor = match handler {
        BoxedHandler::Shared(handler) => Executor::Shared(Box::leak(handler)),
        BoxedHandler::Local(handler) => Executor::Local(Box::leak(Box::new(local::Threads::start(Box::leak(handler))))),
    };
    let listener = process.listen(takes);
    runtime.block_on(accept(listener, executor, takes))
}

async fn accept(listener: std::os::unix::net::UnixListener, executor: Executor, takes: Takes) -> ! {
    let listener = listener
        .set_nonblocking(true)
        .and_then(|()| UnixListener::from_std(listener))
        .unwrap_or_else(|error| process::fatal(&format!("cannot listen with tokio: {error}")));
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(serve(stream, executor, takes));
            }
            Err(error) => process::accept_failed(&error),
        }
    }
}

async fn serve(stream: UnixStream, executor: Executor, takes: Takes) {
    let (read_half, write_half) = stream.into_split();
    let (connection, writer) = TaskConnection::new(write_half);
    let streams = connection.streams.clone();
    let read = read(&read_half, executor, takes, connection).await;
    streams.close();
    if let Err(why) = read {
        eprintln!("edge-gateway-sdk: a connection is closed: {why}");
        // The answers of calls that still run have nowhere to go.
        writer.abort();
    }
}

async fn read(
    stream: &OwnedReadHalf,
    executor: Executor,
    takes: Takes,
    connection: TaskConnection,
) -> Result<(), String> {
    let mut received = Buffer::new();
    loop {
        let socket: &UnixStream = stream.as_ref();
        let receive = || connection.streams.receive(socket, received.room());
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
                let credit = connection.streams.control(&frame)?;
                connection.give_credit(frame.number, credit);
                continue;
            }
            let number = frame.number;
            let request = head::request(&frame)?;
            let connection = connection.clone();
            let body = is_opening(frame.kind, takes)?.then(|| BodySource::Task(TaskBody::open(&connection, number)));
            let incoming = Incoming { request, body };
            match executor {
                Executor::Shared(handler) => {
                    tokio::spawn(calls::serve(handler, number, incoming, connection));
                }
                Executor::Local(threads) => threads.call(number, incoming, connection),
            }
        }
    }
}

/// Serves WebSockets until the gateway stops the process, each a task. What `handler_ws_async!` expands to.
pub fn run_socket<F, Fut>(handler: F) -> !
where
    F: Fn(AsyncWebSocket) -> Fut + Copy + Sync + 'static,
    Fut: Future<Output: SocketEnd> + Send + 'static,
{
    let call = move |incoming: Incoming| match requested_socket(incoming) {
        Ok((request, body, line)) => {
            let future = handler(AsyncWebSocket::new(request, body, line.clone()));
            Box::pin(async move {
                let current = CurrentRequest::get().current();
                let future = Box::pin(async move { future.await.into_end() });
                line.finish_async(PanicGuard { future, current }.await).await
            }) as CallFuture
        }
        Err(answer) => Box::pin(std::future::ready(answer)) as CallFuture,
    };
    run(Takes::Websockets, BoxedHandler::Shared(Box::new(call)))
}
