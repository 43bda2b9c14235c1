//! What the functions that the macros are given may take.

use super::body_source::BodySource;
use super::current::Current;
use crate::request::Request;
use crate::stream_request::StreamRequest;
use crate::wire::takes::Takes;
use std::sync::Arc;

/// A request as it has come.
pub struct Incoming {
    /// Its head; all of it if it has come whole.
    pub request: Request,
    /// Where the rest comes from.
    pub body: Option<BodySource>,
}

impl Incoming {
    /// The request, for the log.
    pub fn current(&self) -> Arc<Current> {
        let Request { headers, request_id, received, .. } = &self.request;
        Current::new(request_id, headers.get("traceparent").map(String::as_str), received.spans)
    }
}

/// What a handler takes.
#[diagnostic::on_unimplemented(
    message = "a handler takes a `Request`, or a `StreamRequest`, whose body it reads piece by piece, and this one takes \
        `{Self}`",
    label = "takes `{Self}`"
)]
pub trait Input: Sized {
    /// What its handlers take besides whole requests.
    const TAKES: Takes;

    /// The request as the handler has it.
    fn of(incoming: Incoming) -> Self;
}

impl Input for Request {
    const TAKES: Takes = Takes::Whole;

    fn of(incoming: Incoming) -> Self {
        incoming.request
    }
}

impl Input for StreamRequest {
    const TAKES: Takes = Takes::Streams;

    fn of(incoming: Incoming) -> Self {
        match incoming.body {
            Some(body) => StreamRequest::new(incoming.request, body),
            None => incoming.request.into(),
        }
    }
}
