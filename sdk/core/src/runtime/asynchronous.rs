//! The loop on tokio: a task for every request, any number of them waiting at once.

use super::{panics, process};
use crate::wire::{buffer::Buffer, head};
use crate::{Request, Response};
use std::future::Future;
use std::panic::{self, AssertUnwindSafe};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver, UnboundedSender};

/// A running call. Boxed, so that tokio's tasks are compiled here and not in every handler.
pub type Call = Pin<Box<dyn Future<Output = Response> + Send>>;

/// Serves requests with `handler` until the gateway lets go of the process. What `handler_loop_async!` expands to.
pub fn run_async(handler: fn(Request) -> Call) -> ! {
    let process = process::Process::from_environment();
    panics::install_hook();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .max_blocking_threads(process.max_threads)
        .enable_all()
        .build()
        .unwrap_or_else(|error| process::refuse(&format!("cannot start tokio: {error}")));
    let listener = process.listen();
    runtime.block_on(accept(listener, handler))
}

async fn accept(listener: std::os::unix::net::UnixListener, handler: fn(Request) -> Call) -> ! {
    let listener = listener
        .set_nonblocking(true)
        .and_then(|()| UnixListener::from_std(listener))
        .unwrap_or_else(|error| process::refuse(&format!("cannot listen with tokio: {error}")));
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(serve(stream, handler));
            }
            Err(error) => process::accept_failed(&error),
        }
    }
}

async fn serve(stream: UnixStream, handler: fn(Request) -> Call) {
    let (mut read_half, write_half) = stream.into_split();
    let (answers, waiting) = unbounded_channel();
    let writer = tokio::spawn(write(write_half, waiting));
    if let Err(why) = read(&mut read_half, handler, answers).await {
        eprintln!("edge-gateway-sdk: a connection is closed: {why}");
        // Whatever still runs for this connection has nobody left to answer.
        writer.abort();
    }
}

async fn read(
    stream: &mut OwnedReadHalf,
    handler: fn(Request) -> Call,
    answers: UnboundedSender<(u32, Response)>,
) -> Result<(), String> {
    let mut received = Buffer::new();
    loop {
        let n = stream.read(received.room()).await.map_err(|error| format!("reading failed: {error}"))?;
        if n == 0 {
            return match received.is_mid_frame() {
                true => Err("it ended inside a frame".to_owned()),
                false => Ok(()),
            };
        }
        received.filled(n);
        while let Some(frame) = received.next_frame().map_err(|error| error.to_string())? {
            let number = frame.number;
            let request = head::request(&frame)?;
            let answers = answers.clone();
            tokio::spawn(async move {
                let response = call(handler, request).await;
                // Fails only if the connection is gone, and with it whoever asked.
                let _ = answers.send((number, response));
            });
        }
    }
}

async fn call(handler: fn(Request) -> Call, request: Request) -> Response {
    let request_id: Arc<str> = request.request_id.as_str().into();
    // Calling an async fn runs none of it; but a handler may be an ordinary function that returns a future.
    panics::name_request(&request_id);
    let future = panic::catch_unwind(AssertUnwindSafe(|| handler(request)));
    panics::name_request("");
    match future {
        Ok(future) => Guarded { future, request_id }.await,
        Err(_) => panics::answer(),
    }
}

/// A call whose panics become a 500, with its request named to the panic hook.
struct Guarded {
    future: Call,
    request_id: Arc<str>,
}

impl Future for Guarded {
    type Output = Response;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Response> {
        panics::name_request(&self.request_id);
        // A future that panicked is not polled again: the answer below ends it.
        let polled = panic::catch_unwind(AssertUnwindSafe(|| self.future.as_mut().poll(context)));
        panics::name_request("");
        polled.unwrap_or_else(|_| Poll::Ready(panics::answer()))
    }
}

/// Writes all answers that are ready at once.
async fn write(mut stream: OwnedWriteHalf, mut waiting: UnboundedReceiver<(u32, Response)>) {
    const MOST_AT_ONCE: usize = 256;
    let mut ready = Vec::new();
    let mut out = Vec::new();
    while waiting.recv_many(&mut ready, MOST_AT_ONCE).await > 0 {
        for (number, response) in ready.drain(..) {
            let body = head::response(&mut out, number, response);
            out.extend_from_slice(&body);
        }
        if stream.write_all(&out).await.is_err() {
            return;
        }
        out = Vec::new();
    }
}
