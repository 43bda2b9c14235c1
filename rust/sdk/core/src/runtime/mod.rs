//! The program around a handler: it exchanges frames with the gateway that started it, over a Unix socket.
//!
//! From what uses all others down: here is the loop of threads, and `asynchronous` has that of tokio; [`socket`] serves
//! WebSockets; [`input`] says what a handler may take, and [`answer`] what it may return; [`panics`] confines a panic
//! to its own request; [`streaming`] sends answers piece by piece; [`socket_line`] has what a WebSocket's parts share.
//! [`body_source`] has the body of a request for its reader, and [`waiting`] the thread that waits for it. [`workers`],
//! with [`pool`], [`monitor`] and [`latency`], distributes requests to threads. [`gateway_connection`] reads requests,
//! and [`outgoing`] writes; [`streams`] and [`bodies`] are what is under way in both directions; [`process`] is the
//! contract with the gateway about the process (socket, readiness, end). [`records`] is for the log; [`current`] knows
//! which request a thread works on, and [`in_request`] takes that elsewhere.

mod answer;
#[cfg(feature = "async")]
pub mod asynchronous;
mod bodies;
pub mod body_source;
pub mod current;
mod gateway_connection;
pub mod in_request;
mod input;
mod latency;
mod monitor;
mod outgoing;
mod panics;
mod poll;
mod pool;
pub mod process;
pub mod records;
mod shared_memory;
mod socket;
pub mod socket_line;
mod streaming;
pub mod streams;
pub mod threads;
mod vectored;
mod waiting;
pub mod workers;

use crate::websocket::WebSocket;
use crate::wire::takes::Takes;
use answer::{OutgoingAnswer, PlainAnswer, ResultAnswer};
use body_source::BodySource;
use gateway_connection::{GatewayConnection, IncomingRequest};
use input::{Incoming, Input};
use socket::SocketEnd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use waiting::ConnectionBody;
use workers::Workers;

type Handler = dyn Fn(Incoming) -> OutgoingAnswer + Send + Sync;

/// Serves requests with `handler` until the gateway stops the process. What `handler_loop!` expands to.
#[inline(never)]
pub fn run<I: Input + 'static, A: PlainAnswer + 'static>(handler: fn(I) -> A) -> ! {
    serve(I::TAKES, Box::new(move |incoming| handler(I::of(incoming)).into_outgoing()))
}

/// What `handler_loop_result!` expands to.
#[inline(never)]
pub fn run_result<I: Input + 'static, A: ResultAnswer + 'static>(handler: fn(I) -> A) -> ! {
    serve(I::TAKES, Box::new(move |incoming| handler(I::of(incoming)).into_outgoing()))
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
    let workers = workers::start(process.max_threads, move |workers, connection| {
        serve_connection(&handler, workers, connection);
    });
    let listener = process.listen(takes);
    loop {
        match listener.accept() {
            Ok((stream, _)) => open_connection(stream, takes, workers),
            Err(error) => process::accept_failed(&error),
        }
    }
}

fn open_connection(stream: UnixStream, takes: Takes, workers: &'static Workers) {
    let connection = Arc::new(GatewayConnection::new(stream, takes));
    workers.monitor.watch(&connection);
    // Every connection gets a thread, even beyond the bound: without one it would never be answered.
    if !workers.pool.add_always(&connection) {
        eprintln!("edge-gateway-sdk: no thread for a new connection; it is closed");
    }
}

/// Works for a connection until another thread reads it and nothing is left to do, or it is closed.
fn serve_connection(handler: &Handler, workers: &'static Workers, connection: &Arc<GatewayConnection>) {
    connection.clear_thread_request();
    // The thread that requested this one may block with answers to other requests still in the buffer.
    connection.flush();
    while let Some(IncomingRequest { number, request, body }) = connection.next() {
        workers.monitor.wake();
        let slow = workers.latency.is_slow();
        if slow {
            workers.request_thread(connection);
        } else if workers.pool.is_exhausted() {
            // No other thread could flush if this call blocks.
            connection.flush();
        }
        let body = body.map(|id| BodySource::Connection(ConnectionBody::new(workers, connection, id)));
        match workers.latency.measure(|| panics::catch(handler, Incoming { request, body })) {
            OutgoingAnswer::Whole(response) => connection.answer(number, response, slow),
            OutgoingAnswer::Stream(stream) => streaming::answer(workers, connection, number, *stream),
            OutgoingAnswer::Socket(last_frames) if last_frames.is_empty() => {}
            OutgoingAnswer::Socket(last_frames) => connection.end_stream(number, &last_frames),
        }
    }
}
