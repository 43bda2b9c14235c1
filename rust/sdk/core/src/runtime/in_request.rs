//! Work of a request in a task of its own.

use super::panics;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A future that belongs to the request which this thread works on, wherever it runs: what it records, and a panic in
/// it, has the id of that request in the log. Without this, a task that is spawned has none.
///
/// ```no_run
/// use rust_edge_gateway_sdk_core::{in_request, prelude::*};
///
/// # fn spawn(_: impl std::future::Future<Output = ()> + Send + 'static) {}
/// async fn handle(_req: Request) -> Response {
///     // `tokio::spawn` in a handler.
///     spawn(in_request(async { info!("goes on after the answer"); }));
///     Response::no_content()
/// }
/// ```
pub fn in_request<F: Future>(future: F) -> InRequest<F> {
    InRequest { request_id: panics::request_id(), future: Box::pin(future) }
}

/// Made by [`in_request`].
pub struct InRequest<F> {
    request_id: String,
    future: Pin<Box<F>>,
}

impl<F: Future> Future for InRequest<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let _named = Named::as_working_on(&self.request_id);
        self.future.as_mut().poll(context)
    }
}

/// Names another request until it is dropped, also by a panic: a task may be polled within another.
struct Named {
    before: String,
}

impl Named {
    fn as_working_on(request_id: &str) -> Self {
        let before = panics::request_id();
        panics::name_request(request_id);
        Self { before }
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        panics::name_request(&self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    #[test]
    fn it_belongs_to_its_request_wherever_it_is_polled() {
        panics::name_request("own");
        let mut future = in_request(async { panics::request_id() });
        panics::name_request("other");
        let polled = Pin::new(&mut future).poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(polled, Poll::Ready("own".to_owned()));
        assert_eq!(panics::request_id(), "other");
        panics::name_request("");
    }
}
