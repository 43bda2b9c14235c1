//! Work of a request elsewhere: in a task of its own, or on another thread.

use super::current::{self, Current};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A future that belongs to the request which this thread works on, wherever it runs: what it records, and a panic in
/// it, has the id of that request in the log. Without this, a task that is spawned has none.
///
/// ```no_run
/// use rust_edge_gateway_sdk_core::{in_request, prelude::*};
///
/// # fn spawn(_: impl std::future::Future<Output = ()> + Send + 'static) {}
/// async fn handle(_req: Request) -> Response {
///     // A runtime's function. For tokio's, the SDK has `spawn`, which does this by itself.
///     spawn(in_request(async { info!("goes on after the answer"); }));
///     Response::no_content()
/// }
/// ```
pub fn in_request<F: Future>(future: F) -> InRequest<F> {
    InRequest { current: current::get(), future: Box::pin(future) }
}

/// The same for a function: one that runs on a thread which a handler starts, or in a pool of threads.
///
/// ```no_run
/// use rust_edge_gateway_sdk_core::{call_in_request, prelude::*};
///
/// fn handle(_req: Request) -> Response {
///     std::thread::spawn(call_in_request(|| info!("goes on after the answer")));
///     Response::no_content()
/// }
/// ```
pub fn call_in_request<T>(function: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let current = current::get();
    move || {
        let _working = current::work_on(current);
        function()
    }
}

/// `tokio::spawn`, for a task that belongs to the request of its handler: what it records, and a panic in it, has the
/// id of that request in the log.
///
/// # Panics
/// Outside of a tokio runtime, as `tokio::spawn`.
#[cfg(feature = "async")]
#[track_caller]
pub fn spawn<F>(future: F) -> tokio::task::JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(in_request(future))
}

/// `tokio::task::spawn_blocking`, for a function that belongs to the request of its handler.
///
/// # Panics
/// Outside of a tokio runtime, as `tokio::task::spawn_blocking`.
#[cfg(feature = "async")]
#[track_caller]
pub fn spawn_blocking<F, T>(function: F) -> tokio::task::JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    tokio::task::spawn_blocking(call_in_request(function))
}

/// Made by [`in_request`].
pub struct InRequest<F> {
    current: Option<Arc<Current>>,
    future: Pin<Box<F>>,
}

impl<F: Future> Future for InRequest<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let _working = current::work_on(self.current.clone());
        self.future.as_mut().poll(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    fn working_on(id: &str) -> current::WorkGuard {
        current::work_on(Some(Current::new(id, None, false)))
    }

    fn id() -> Option<String> {
        current::get().and_then(|current| current.request_id().map(str::to_owned))
    }

    #[test]
    fn work_belongs_to_its_request_wherever_it_runs() {
        let (mut future, function) = {
            let _own = working_on("own");
            (in_request(async { id() }), call_in_request(id))
        };
        let _other = working_on("other");
        let polled = Pin::new(&mut future).poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(polled, Poll::Ready(Some("own".to_owned())));
        assert_eq!(id().as_deref(), Some("other"));
        assert_eq!(std::thread::spawn(function).join().unwrap().as_deref(), Some("own"));
    }
}
