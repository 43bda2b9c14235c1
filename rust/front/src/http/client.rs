//! The client of one request, as an exchange needs it, whichever version of HTTP it speaks.
use bytes::Bytes;

use super::guard::Watch;
use super::response::ResponseHead;
use super::stream::{Broken, ClientStream};

/// Whether the connection can take another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Request,
    Close,
}

/// What a request comes over.
pub trait Link {
    /// Whether it has TLS.
    fn is_secure(&self) -> bool;

    /// What is waited for.
    fn watch(&self) -> &Watch;

    /// Does work for the client, as long as that has not left in a way that can be seen.
    async fn unless_reset<T>(&self, work: impl Future<Output = T>) -> Result<T, Broken>;
}

pub trait Client: Link {
    /// Whether all of the body has been read. At first: whether there is none.
    fn is_complete(&self) -> bool;

    /// The body is wanted: a client that waits for `100 Continue` gets it.
    async fn begin_body(&mut self) -> Result<(), Broken>;

    /// Reads more of the body behind what is in `bytes`, a piece at a time, so that its memory can be accounted for: at
    /// most `limit` bytes, or as many as had arrived before. Nothing is lost when the future is dropped.
    async fn read_body(&mut self, bytes: &mut Vec<u8>, limit: usize) -> Result<(), Broken>;

    /// The request has been read: gives memory back that it has left.
    fn give_back(&mut self);

    /// Sends a whole response; the client has to take it fast enough.
    async fn send(&mut self, head: ResponseHead<'_>, body: &[u8]) -> Result<Next, Broken>;

    /// Begins a response whose body comes piece by piece; without a content length, it is as long as the pieces.
    async fn begin_stream(&mut self, head: ResponseHead<'_>) -> Result<(), Broken>;

    /// Sends pieces of the body at once; the client has to take them fast enough.
    async fn send_pieces(&mut self, pieces: Vec<Bytes>) -> Result<(), Broken>;

    /// Whether nothing but the kernel looks at the pieces that are sent.
    fn sends_as_it_is(&self) -> bool;

    /// The body is complete.
    async fn end_stream(&mut self) -> Result<Next, Broken>;

    /// The body ends before its end: the connection, or the stream, is to be closed in a way that the client sees.
    fn cut_off(&mut self);

    /// Does work for the client, as long as that is there: one that sends no more has left, too.
    async fn unless_left<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Broken>;

    /// The connection, to go on as a WebSocket; none where it carries other requests, too.
    fn raw(&mut self) -> Option<&mut ClientStream>;

    /// Before an answer without the body: drops it, if it is small and there. Returns whether nothing of it is left.
    async fn drop_at_once(&mut self) -> Result<bool, Broken>;

    /// After an answer without the body: drops what is left of it, for a while. Returns whether that was all: what is
    /// behind it is the next request.
    async fn drop_rest(&mut self) -> bool;
}
