//! The program around a handler: it exchanges frames with the gateway that started it, over a Unix socket.
//!
//! [`process`] is the contract with the gateway about the process (socket, readiness, end); [`answer`] says what a
//! handler may return; [`panics`] confines a panic to its own request; [`records`] is for the log; [`current`] knows
//! which request a thread works on, and [`in_request`] takes that elsewhere; [`gateway_connection`], [`pool`],
//! [`monitor`] and [`latency`] distribute requests to threads; [`streaming`] sends answers piece by piece, as
//! [`streams`] allows, and [`bodies`] has what comes of requests so, for [`body_source`]; [`input`] says what a handler
//! may take; [`socket`] serves WebSockets; `asynchronous` does the same with tokio.

mod answer;
#[cfg(feature = "async")]
pub mod asynchronous;
mod bodies;
pub(crate) mod body_source;
pub(crate) mod current;
mod gateway_connection;
mod in_request;
mod input;
mod latency;
mod monitor;
mod outgoing;
pub(crate) mod panics;
mod poll;
mod pool;
mod process;
pub(crate) mod records;
mod shared_memory;
pub(crate) mod socket;
mod streaming;
mod streams;
mod vectored;
mod waiting;

use crate::wire::takes::Takes;
use crate::WebSocket;
use answer::{Answered, PlainAnswer, ResultAnswer};
use body_source::BodySource;
pub(crate) use current::CurrentRequest;
use gateway_connection::{GatewayConnection, IncomingRequest};
pub use in_request::{call_in_request, in_request, InRequest};
#[cfg(feature = "async")]
pub use in_request::{spawn, spawn_blocking};
use input::{Incoming, Input};
pub(crate) use process::spawn_small;
use socket::SocketEnd;
use std::cell::RefCell;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use streaming::ConnectionBody;

type Handler = dyn Fn(Incoming) -> Answered + Send + Sync;

/// What all threads of a process share.
struct Runtime {
    handler: Box<Handler>,
    takes: Takes,
    pool: pool::Pool,
    monitor: monitor::Monitor,
    latency: latency::Latency,
}

static RUNTIME: OnceLock<Runtime> = OnceLock::new();

thread_local! {
    /// The connection this thread works for, while it runs a handler.
    static CURRENT_CONNECTION: RefCell<Option<Arc<GatewayConnection>>> = const { RefCell::new(None) };
}

/// Serves requests with `handler` until the gateway stops the process. What `handler_loop!` expands to.
#[inline(never)]
pub fn run<I: Input + 'static, A: PlainAnswer + 'static>(handler: fn(I) -> A) -> ! {
    serve(I::TAKES, Box::new(move |incoming| handler(I::of(incoming)).into_answered()))
}

/// What `handler_loop_result!` expands to.
#[inline(never)]
pub fn run_result<I: Input + 'static, A: ResultAnswer + 'static>(handler: fn(I) -> A) -> ! {
    serve(I::TAKES, Box::new(move |incoming| handler(I::of(incoming)).into_answered()))
}

/// Serves WebSockets with `handler`. What `handler_ws!` expands to.
#[inline(never)]
pub fn run_socket<E: SocketEnd + 'static>(handler: fn(WebSocket) -> E) -> ! {
    serve(Takes::Websockets, Box::new(move |incoming| socket::serve(handler, incoming)))
}

#[inline(never)]
fn serve(takes: Takes, handler: Box<Handler>) -> ! {
    let mut process = process::Process::from_environment();
    records::install(process.log.take());
    panics::install_hook();
    let runtime = RUNTIME.get_or_init(|| Runtime {
        handler,
        takes,
        pool: pool::Pool::new(process.max_threads),
        monitor: monitor::Monitor::new(),
        latency: latency::Latency::default(),
    });
    runtime.monitor.start(runtime);
    let listener = process.listen(takes);
    loop {
        match listener.accept() {
            Ok((stream, _)) => runtime.open_connection(stream),
            Err(error) => process::accept_failed(&error),
        }
    }
}

/// Runs `f`, which is about to wait for something outside the process, and lets another thread take over the connection
/// first, so that no request waits behind this one. Outside a handler it just runs `f`.
///
/// On a thread of tokio's multi-threaded runtime, its other tasks move to another thread; on a runtime of one thread
/// nothing can be done for them.
pub fn blocking<T>(f: impl FnOnce() -> T) -> T {
    if let Some((connection, runtime)) = connection_without_reader() {
        runtime.request_thread(&connection);
    }
    block_thread(f)
}

/// Runs `f`, which is about to wait until the stream has something to read, and probably not for long. Another thread
/// takes over the connection with the gateway only if a request comes before that: waking one costs more than most
/// waits.
pub fn reading<T>(stream: &UnixStream, limit: Duration, f: impl FnOnce() -> T) -> T {
    let Some((connection, runtime)) = connection_without_reader() else { return block_thread(f) };
    // Answers of calls before this one must not wait with it.
    connection.flush();
    latency::waiting(|| {
        // Where many calls are under way, another comes soon: waiting for it would wake this thread once more.
        if connection.is_busy() || connection.has_request() || connection.has_request_before(stream, limit) {
            runtime.request_thread(&connection);
        }
        f()
    })
}

fn block_thread<T>(f: impl FnOnce() -> T) -> T {
    #[cfg(feature = "async")]
    if asynchronous::can_block_in_place() {
        return tokio::task::block_in_place(f);
    }
    latency::waiting(f)
}

/// The connection this thread works for, if no other thread reads it.
#[inline(never)]
fn connection_without_reader() -> Option<(Arc<GatewayConnection>, &'static Runtime)> {
    let connection = CURRENT_CONNECTION.with_borrow(Clone::clone)?;
    (!connection.has_reader()).then_some((connection, RUNTIME.get()?))
}

impl Runtime {
    fn open_connection(&'static self, stream: UnixStream) {
        let connection = Arc::new(GatewayConnection::new(stream, self.takes));
        self.monitor.watch(&connection);
        // Every connection gets a thread, even beyond the bound: without one it would never be answered.
        if !self.pool.add_always(self, &connection) {
            eprintln!("edge-gateway-sdk: no thread for a new connection; it is closed");
        }
    }

    /// Works for a connection until another thread reads it and nothing is left to do, or it is closed.
    fn serve(&'static self, connection: &Arc<GatewayConnection>) {
        connection.clear_thread_request();
        // The thread that requested this one may block with answers to other requests still in the buffer.
        connection.flush();
        CURRENT_CONNECTION.set(Some(connection.clone()));
        while let Some(IncomingRequest { number, request, body }) = connection.next() {
            self.monitor.wake();
            let slow = self.latency.is_slow();
            if slow {
                self.request_thread(connection);
            } else if self.pool.is_exhausted() {
                // No other thread could flush if this call blocks.
                connection.flush();
            }
            let body = body.map(|id| BodySource::Connection(ConnectionBody::new(self, connection, id)));
            match self.latency.measure(|| panics::catch(&self.handler, Incoming { request, body })) {
                Answered::Whole(response) => connection.answer(number, response, slow),
                Answered::Stream(stream) => self.stream(connection, number, *stream),
                Answered::Socket(last_frames) if last_frames.is_empty() => {}
                Answered::Socket(last_frames) => connection.end_stream(number, &last_frames),
            }
        }
        CURRENT_CONNECTION.set(None);
    }

    /// Gets another thread for the connection, or flushes its answers if there is none.
    fn request_thread(&'static self, connection: &Arc<GatewayConnection>) {
        if connection.claim_thread_request() && !self.pool.add(self, connection) {
            connection.clear_thread_request();
            connection.flush();
        }
    }
}

/// Everything here stays usable when a thread panicked with a lock held: the data is consistent between calls.
pub(crate) fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
