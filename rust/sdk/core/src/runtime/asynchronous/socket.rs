//! WebSockets that tasks serve.

use super::stream::TaskBody;
use super::{run, Answers, Call, Guarded, Outgoing, Start};
use crate::runtime::input::Incoming;
use crate::runtime::socket::{asked, SocketEnd};
use crate::runtime::streams::StreamId;
use crate::runtime::CurrentRequest;
use crate::websocket::AsyncWebSocket;
use crate::wire::frame::{header, Kind};
use crate::wire::head;
use crate::wire::takes::Takes;
use crate::Response;
use std::future::{poll_fn, Future};
use std::io;

/// The connection of a socket.
pub struct TaskSocket {
    answers: Answers,
    number: u32,
}

impl TaskSocket {
    pub(super) fn new(answers: Answers, number: u32) -> Self {
        TaskSocket { answers, number }
    }

    pub fn number(&self) -> u32 {
        self.number
    }

    /// Sends the head that accepts the socket. `None` if it cannot be sent, and a 500 is the answer.
    pub fn accept(&self, head: &Response) -> Option<StreamId> {
        let mut begin = Vec::new();
        let is_accepted = head::socket(&mut begin, self.number, head);
        self.answers.begin(self.number, begin, is_accepted)
    }

    /// Waits until so many bytes may be sent.
    pub async fn take(&self, id: StreamId, bytes: usize) -> io::Result<()> {
        poll_fn(|context| self.answers.streams.poll_take_all(id, bytes, context)).await
    }

    pub fn write(&self, kind: Kind, payload: &[u8]) {
        let frame = [&header(kind, self.number, 0, payload.len())[..], payload].concat();
        self.answers.send(Outgoing::Frames(frame));
    }

    /// Whether nobody wants it any more.
    pub fn is_over(&self, id: StreamId) -> bool {
        self.answers.streams.is_over(id)
    }

    /// Resolves when nobody wants it any more.
    pub async fn over(&self, id: StreamId) {
        self.answers.streams.over(id).await;
    }
}

impl TaskBody {
    /// The connection of the socket whose messages it brings.
    pub fn socket(&self) -> TaskSocket {
        TaskSocket::new(self.answers.clone(), self.id.number)
    }
}

/// Serves WebSockets until the gateway stops the process, each a task. What `handler_ws_async!` expands to.
pub fn run_socket<F, Fut>(handler: F) -> !
where
    F: Fn(AsyncWebSocket) -> Fut + Copy + Sync + 'static,
    Fut: Future<Output: SocketEnd> + Send + 'static,
{
    let call = move |incoming: Incoming| match asked(incoming) {
        Ok((request, body, line)) => {
            let future = handler(AsyncWebSocket::new(request, body, line.clone()));
            Box::pin(async move {
                let current = CurrentRequest::get().current();
                let future = Box::pin(async move { future.await.into_end() });
                line.finish_async(Guarded { future, current }.await).await
            }) as Call
        }
        Err(answer) => Box::pin(std::future::ready(answer)) as Call,
    };
    run(Takes::Websockets, Start::Shared(Box::new(call)))
}

/// Ends a socket with its last frames; with none if it has ended already.
pub(super) fn end(answers: &Answers, number: u32, last_frames: Vec<u8>) {
    if !last_frames.is_empty() {
        answers.streams.remove(number);
        answers.send(Outgoing::Frames(last_frames));
    }
}
