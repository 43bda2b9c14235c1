//! What the functions that the macros are given may return. Each macro has a trait of its own, by which the compiler
//! says that the function does not fit, and which macro does.

use super::current::{self, CurrentRequest};
use super::records;
use crate::response::Response;
use crate::sse::Sse;
use crate::stream::{StreamBody, StreamResponse};

/// What is sent to the gateway.
pub enum OutgoingAnswer {
    /// A response in one frame.
    Whole(Response),
    /// A response piece by piece.
    Stream(Box<StreamResponse>),
    /// It was a WebSocket, which ends with these frames; none if it has ended.
    Socket(Vec<u8>),
}

/// What a handler answers with.
pub trait Answer {
    /// Converts it into what is sent. Called while the thread works on the request.
    fn into_outgoing(self) -> OutgoingAnswer;
}

impl Answer for Response {
    fn into_outgoing(self) -> OutgoingAnswer {
        if self.status >= 500 {
            note_error(&self);
        }
        OutgoingAnswer::Whole(self)
    }
}

impl Answer for StreamResponse {
    fn into_outgoing(mut self) -> OutgoingAnswer {
        if matches!(self.body, StreamBody::Whole) {
            return self.head.into_outgoing();
        }
        self.request = CurrentRequest::get();
        OutgoingAnswer::Stream(Box::new(self))
    }
}

impl Answer for Sse {
    fn into_outgoing(self) -> OutgoingAnswer {
        StreamResponse::from(self).into_outgoing()
    }
}

/// An answer that says that the handler has failed: the log says so, too, unless it has an error of the request
/// already.
#[inline(never)]
fn note_error(response: &Response) {
    if current::get().is_some_and(|current| current.has_error()) {
        return;
    }
    let text = response.body.as_deref().and_then(|body| serde_json::from_str::<Failure>(body).ok());
    let text = text.map_or_else(String::new, |failure| format!(": {}", failure.error));
    records::error(&format!("the handler has answered with {}{text}", response.status), serde_json::Map::new());
}

/// What `Response::error` makes.
#[derive(serde::Deserialize)]
struct Failure {
    error: String,
}

impl<A: PlainAnswer, E: Into<Response>> Answer for Result<A, E> {
    fn into_outgoing(self) -> OutgoingAnswer {
        match self {
            Ok(answer) => answer.into_outgoing(),
            Err(error) => error.into().into_outgoing(),
        }
    }
}

/// What a function for `handler_loop!` returns.
#[diagnostic::on_unimplemented(
    message = "`handler_loop!` takes a function that returns `Response`, and this one returns `{Self}`: use \
        `handler_loop_result!` for a `Result`, `handler_loop_async!` for an `async fn`",
    label = "returns `{Self}`"
)]
pub trait PlainAnswer: Answer {}

impl PlainAnswer for Response {}
#[diagnostic::do_not_recommend]
impl PlainAnswer for StreamResponse {}
#[diagnostic::do_not_recommend]
impl PlainAnswer for Sse {}

/// What a function for `handler_loop_result!` returns.
#[diagnostic::on_unimplemented(
    message = "`handler_loop_result!` takes a function that returns `Result<Response, HandlerError>`, and this one \
        returns `{Self}`: use `handler_loop!` for a `Response`, `handler_loop_async_result!` for an `async fn`",
    label = "returns `{Self}`"
)]
pub trait ResultAnswer: Answer {}

impl<A: PlainAnswer, E: Into<Response>> ResultAnswer for Result<A, E> {}

/// What a function for `handler_loop_async!` returns.
#[cfg(feature = "async")]
#[diagnostic::on_unimplemented(
    message = "`handler_loop_async!` takes an `async fn` that returns `Response` or `Result<Response, HandlerError>`, \
        and this function returns `{Self}`: use `handler_loop!` for a `Response`, `handler_loop_result!` for a `Result`",
    label = "returns `{Self}`"
)]
pub trait AsyncAnswer: std::future::Future<Output: Answer> {}

#[cfg(feature = "async")]
#[diagnostic::do_not_recommend]
impl<F: std::future::Future<Output: Answer>> AsyncAnswer for F {}
