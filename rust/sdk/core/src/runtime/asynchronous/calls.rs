//! Makes the calls of requests, and answers them.

use super::connection::{TaskConnection, WriterMessage};
use super::stream;
use crate::runtime::answer::OutgoingAnswer;
use crate::runtime::current;
use crate::runtime::input::Incoming;
use crate::runtime::panics::{self, PanicGuard};
use std::future::Future;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::Pin;

/// A running call. Boxed, so that tokio's tasks are compiled here and not in every handler.
pub type CallFuture = Pin<Box<dyn Future<Output = OutgoingAnswer> + Send>>;
/// A running call that must stay on the thread it began on.
pub type LocalCallFuture = Pin<Box<dyn Future<Output = OutgoingAnswer>>>;

/// Makes a call, and answers its request. Returns at the end of the answer, if it is a stream.
pub async fn serve<F>(
    handler: &(dyn Fn(Incoming) -> F + Sync),
    number: u32,
    incoming: Incoming,
    connection: TaskConnection,
) where
    F: Future<Output = OutgoingAnswer> + Unpin,
{
    match call(handler, incoming).await {
        OutgoingAnswer::Whole(response) => {
            connection.streams.answered(number);
            connection.send(WriterMessage::Answer(number, response));
        }
        OutgoingAnswer::Stream(answer) => stream::answer(&connection, number, *answer).await,
        // A socket that has ended already has none.
        OutgoingAnswer::Socket(last_frames) if last_frames.is_empty() => {}
        OutgoingAnswer::Socket(last_frames) => {
            connection.streams.remove(number);
            connection.send(WriterMessage::Frames(last_frames));
        }
    }
}

/// Makes a call; a panic becomes a 500.
async fn call<F>(handler: &(dyn Fn(Incoming) -> F + Sync), incoming: Incoming) -> OutgoingAnswer
where
    F: Future<Output = OutgoingAnswer> + Unpin,
{
    let current = incoming.current();
    // Calling an async fn runs none of it; but a handler may be an ordinary function that returns a future.
    let future = {
        let _working = current::work_on(Some(current.clone()));
        catch_unwind(AssertUnwindSafe(|| handler(incoming)))
    };
    match future {
        Ok(future) => PanicGuard { future, current }.await.unwrap_or_else(panics::answer),
        Err(_) => panics::answer(),
    }
}
