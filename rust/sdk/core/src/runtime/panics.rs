//! A panic is a 500 for its own request, and does not affect others.

use super::answer::OutgoingAnswer;
use super::current;
#[cfg(feature = "async")]
use super::current::Current;
use super::input::Incoming;
use super::records;
use crate::response::Response;
use std::panic::{self, AssertUnwindSafe};
#[cfg(feature = "async")]
use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

/// What the client reads. The details are for the log only.
const ANSWER: &str = "The handler failed. The endpoint's log has the details.";

/// Makes panics records, with the request they belong to.
pub fn install_hook() {
    panic::set_hook(Box::new(|info| {
        let payload = info.payload();
        let message = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("(no message)");
        records::panicked(info.location(), message);
    }));
}

/// Calls the handler; a panic becomes a 500.
pub fn catch(handler: &dyn Fn(Incoming) -> OutgoingAnswer, incoming: Incoming) -> OutgoingAnswer {
    let _working = current::work_on(Some(incoming.current()));
    // Unwind safety is about broken invariants behind shared references; the handler owns its request, and statics of
    // the handler are as exposed to a panicking thread as in any Rust program.
    let result = panic::catch_unwind(AssertUnwindSafe(|| handler(incoming)));
    result.unwrap_or_else(|_| answer())
}

/// The answer to a request whose handler panicked.
pub fn answer() -> OutgoingAnswer {
    OutgoingAnswer::Whole(Response::internal_error(ANSWER))
}

/// A call whose panics become `None`, with its request named to the panic hook.
#[cfg(feature = "async")]
pub struct PanicGuard<F> {
    pub future: F,
    pub current: Arc<Current>,
}

#[cfg(feature = "async")]
impl<F: Future + Unpin> Future for PanicGuard<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let _working = current::work_on(Some(self.current.clone()));
        // A future that panicked is not polled again.
        let polled = panic::catch_unwind(AssertUnwindSafe(|| Pin::new(&mut self.future).poll(context)));
        polled.map_or(Poll::Ready(None), |polled| polled.map(Some))
    }
}
