//! [`Sse`]: server-sent events, which browsers read with `EventSource`.

use crate::stream::{BodyWriter, StreamResponse};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Duration;

#[cfg(feature = "async")]
use crate::runtime::asynchronous::body_writer::AsyncBodyWriter;

/// A stream of server-sent events (HTML standard, section 9.2). A handler returns it instead of a
/// [`Response`](crate::Response), also in a `Result`.
///
/// ```no_run
/// use rust_edge_gateway_sdk_core::prelude::*;
/// use std::time::Duration;
///
/// fn handle(_req: Request) -> Sse {
///     Sse::new(|events| {
///         for n in 0.. {
///             events.send(Event::new().id(n.to_string()).event("tick").data(format!("{n} seconds")))?;
///             std::thread::sleep(Duration::from_secs(1));
///         }
///         Ok(())
///     })
/// }
///
/// handler_loop!(handle);
/// ```
///
/// Each event is with the client when `send` has returned and the network has brought it. A client that leaves makes
/// the next `send` fail; one that comes back tells the last id that it has seen in the header `Last-Event-ID`. Where
/// events are rare, send [`Event::comment`] now and then: it keeps the endpoint's `idle_timeout_ms` from ending the
/// stream, and proxies from closing the connection. Where many clients stay, use [`Sse::new_async`].
#[derive(Debug)]
pub struct Sse(StreamResponse);

impl Sse {
    /// Events that `write` sends. It runs when the handler has returned.
    pub fn new(write: impl FnOnce(&mut EventWriter<'_>) -> io::Result<()> + Send + 'static) -> Self {
        Sse(with_head(StreamResponse::new(|out| write(&mut EventWriter(out)))))
    }

    /// Events that a task sends: for `handler_loop_async!`. It is dropped when the client leaves.
    ///
    /// ```no_run
    /// use rust_edge_gateway_sdk_core::prelude::*;
    /// use rust_edge_gateway_sdk_core::tokio::time::{interval, Duration};
    ///
    /// async fn handle(_req: Request) -> Sse {
    ///     Sse::new_async(|mut events| async move {
    ///         let mut ticks = interval(Duration::from_secs(1));
    ///         loop {
    ///             ticks.tick().await;
    ///             events.send(Event::new().data("tick")).await?;
    ///         }
    ///     })
    /// }
    ///
    /// handler_loop_async!(handle);
    /// ```
    #[cfg(feature = "async")]
    pub fn new_async<F, Fut>(write: F) -> Self
    where
        F: FnOnce(AsyncEventWriter) -> Fut + Send + 'static,
        Fut: std::future::Future<Output = io::Result<()>> + Send + 'static,
    {
        Sse(with_head(StreamResponse::new_async(|out| write(AsyncEventWriter(out)))))
    }

    /// The events of a stream (`futures_core::Stream`), for `handler_loop_async!`. It is dropped when the client
    /// leaves.
    #[cfg(feature = "async")]
    pub fn from_stream<S>(events: S) -> Self
    where
        S: futures_core::Stream<Item = Event> + Send + 'static,
    {
        Self::new_async(|mut out| async move {
            let mut events = Box::pin(events);
            while let Some(event) = std::future::poll_fn(|context| events.as_mut().poll_next(context)).await {
                out.send(event).await?;
            }
            Ok(())
        })
    }

    /// Sets a header, as [`Response::with_header`](crate::Response::with_header).
    pub fn with_header(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        Sse(self.0.with_header(key, value))
    }
}

impl From<Sse> for StreamResponse {
    fn from(events: Sse) -> Self {
        events.0
    }
}

fn with_head(stream: StreamResponse) -> StreamResponse {
    stream.with_header("Content-Type", "text/event-stream").with_header("Cache-Control", "no-cache")
}

/// Sends the events of an [`Sse`].
pub struct EventWriter<'a>(&'a mut BodyWriter);

impl EventWriter<'_> {
    /// Sends an event at once.
    ///
    /// # Errors
    /// `BrokenPipe` when the client has left.
    pub fn send(&mut self, event: Event) -> io::Result<()> {
        self.0.write_all(event.finished().as_bytes())?;
        self.0.flush()
    }

    /// Whether the client has left: all further events fail.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

/// Sends the events of an [`Sse`] from a task.
#[cfg(feature = "async")]
pub struct AsyncEventWriter(AsyncBodyWriter);

#[cfg(feature = "async")]
impl AsyncEventWriter {
    /// Sends an event at once.
    ///
    /// # Errors
    /// `BrokenPipe` when the client has left.
    pub async fn send(&mut self, event: Event) -> io::Result<()> {
        self.0.send(event.finished()).await
    }

    /// Resolves when the client has left: for tasks that the stream has started.
    pub async fn closed(&self) {
        self.0.closed().await
    }
}

/// A server-sent event.
///
/// ```
/// use rust_edge_gateway_sdk_core::prelude::*;
/// let event = Event::new().event("joined").id("7").data("two\nlines");
/// assert_eq!(event.to_string(), "event: joined\nid: 7\ndata: two\ndata: lines\n\n");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    lines: String,
}

impl Event {
    /// One without anything: clients ignore it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Its type: what `addEventListener` of an `EventSource` names. Without one it is `message`. Line breaks in it
    /// become spaces.
    pub fn event(self, name: impl AsRef<str>) -> Self {
        self.line("event", name.as_ref())
    }

    /// What a client that comes back sends as `Last-Event-ID`. Line breaks in it become spaces.
    pub fn id(self, id: impl AsRef<str>) -> Self {
        self.line("id", id.as_ref())
    }

    /// Its data. Text of several lines is several lines of data, which the client puts together again.
    pub fn data(mut self, text: impl AsRef<str>) -> Self {
        let text = text.as_ref().replace("\r\n", "\n").replace('\r', "\n");
        for line in text.split('\n') {
            self = self.line("data", line);
        }
        self
    }

    /// Its data, as JSON.
    ///
    /// # Errors
    /// What is no JSON: a map with keys that are no strings, a `Serialize` that fails.
    pub fn json<T: serde::Serialize>(self, data: &T) -> io::Result<Self> {
        Ok(self.data(serde_json::to_string(data)?))
    }

    /// How long the client is to wait before it comes back after an interruption.
    pub fn retry(self, pause: Duration) -> Self {
        self.line("retry", &pause.as_millis().to_string())
    }

    /// A comment, which clients ignore: it keeps the connection in use.
    pub fn comment(self, text: impl AsRef<str>) -> Self {
        self.line("", text.as_ref())
    }

    fn line(mut self, name: &str, value: &str) -> Self {
        // A line break would begin another field, or another event.
        let value = value.replace(['\r', '\n'], " ");
        let _ = writeln!(self.lines, "{name}: {value}");
        self
    }

    fn finished(mut self) -> String {
        self.lines.push('\n');
        self.lines
    }
}

impl std::fmt::Display for Event {
    /// Writes the event as it is sent.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_within_their_fields() {
        let event = Event::new().event("a\ndata: b").id("1\r\n2").data("x\r\ny\rz\n").retry(Duration::from_secs(2));
        let text = "event: a data: b\nid: 1  2\ndata: x\ndata: y\ndata: z\ndata: \nretry: 2000\n\n";
        assert_eq!(event.to_string(), text);
        assert_eq!(event.finished(), text);
        assert_eq!(Event::new().comment("here").to_string(), ": here\n\n");
        assert_eq!(Event::new().json(&vec![1, 2]).unwrap().to_string(), "data: [1,2]\n\n");
    }
}
