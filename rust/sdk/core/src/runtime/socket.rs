//! Calls the function of a handler of WebSockets.

use super::answer::OutgoingAnswer;
use super::body_source::BodySource;
use super::input::Incoming;
use super::socket_line::{Line, SocketLink};
use super::workers;
use crate::error::HandlerError;
use crate::request::Request;
use crate::response::Response;
use crate::websocket::WebSocket;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;

const NO_THREAD: &str = "All threads of this handler have a WebSocket; try again in a moment.";

/// What a function for `handler_ws!` or `handler_ws_async!` returns.
#[diagnostic::on_unimplemented(
    message = "a handler of WebSockets returns nothing, or `Result<(), HandlerError>`, and this one returns `{Self}`: use \
        `handler_ws!` for a function, `handler_ws_async!` for an `async fn`",
    label = "returns `{Self}`"
)]
pub trait SocketEnd {
    /// What has become of the socket.
    fn into_end(self) -> Result<(), HandlerError>;
}

impl SocketEnd for () {
    fn into_end(self) -> Result<(), HandlerError> {
        Ok(())
    }
}

impl<E: Into<HandlerError>> SocketEnd for Result<(), E> {
    fn into_end(self) -> Result<(), HandlerError> {
        self.map_err(Into::into)
    }
}

/// The socket that a client requests: its request, where its messages come from, and what its parts share.
///
/// # Errors
/// The answer to a request that asks for none. The gateway sends no such request.
pub fn requested_socket(incoming: Incoming) -> Result<(Request, BodySource, Arc<Line>), OutgoingAnswer> {
    let body = incoming.body.and_then(|body| Some((SocketLink::of(&body)?, body)));
    let Some((link, body)) = body else {
        return Err(OutgoingAnswer::Whole(Response::error(426, "this is no WebSocket")));
    };
    Ok((incoming.request, body, Arc::new(Line::new(link))))
}

/// Sockets that have a thread.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// Counts a socket that has a thread.
struct Open {
    is_one_too_many: bool,
}

impl Open {
    /// A quarter of the threads stays free: those that read the connections with the gateway, and refuse what is too
    /// much.
    fn count() -> Self {
        let limit = workers::max_threads().map_or(usize::MAX, |max| (max * 3 / 4).max(1));
        Open { is_one_too_many: OPEN.fetch_add(1, SeqCst) >= limit }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, SeqCst);
    }
}

/// Calls the function of a handler.
pub fn serve<E: SocketEnd>(handler: fn(WebSocket) -> E, incoming: Incoming) -> OutgoingAnswer {
    let (request, body, line) = match requested_socket(incoming) {
        Ok(requested) => requested,
        Err(answer) => return answer,
    };
    let open = Open::count();
    if open.is_one_too_many {
        return OutgoingAnswer::Whole(Response::error(503, NO_THREAD).with_header("Retry-After", "1"));
    }
    let socket = WebSocket::new(request, body, line.clone());
    // This is what `panics::catch` does, which would take an accepted socket for one that is only requested.
    let result = catch_unwind(AssertUnwindSafe(|| handler(socket).into_end()));
    line.finish(result.ok())
}
