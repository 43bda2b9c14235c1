//! The client of one request, as an exchange needs it, whichever version of HTTP it speaks.
use bytes::Bytes;

use super::response::ResponseHead;
use super::stream::{ClientStream, StreamError};
use crate::guard::Watch;

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

    /// Says what the front waits for.
    fn watch(&self) -> &Watch;

    /// Works until the client resets the connection or the stream. One that closes its sending side is not noticed.
    async fn until_client_resets<T>(&self, work: impl Future<Output = T>) -> Result<T, StreamError>;
}

pub trait Client: Link {
    /// Whether all of the body has been read. At first: whether there is none.
    fn is_complete(&self) -> bool;

    /// Asks for the body: a client that waits for `100 Continue` gets it.
    async fn begin_body(&mut self) -> Result<(), StreamError>;

    /// Reads more of the body behind what is in `bytes`, a piece at a time, so that its memory can be accounted for: at
    /// most `limit` bytes, or as many as had arrived before. Nothing is lost when the future is dropped.
    async fn read_body(&mut self, bytes: &mut Vec<u8>, limit: usize) -> Result<(), StreamError>;

    /// Releases memory that reading the request has left.
    fn release_memory(&mut self);

    /// Sends a whole response; the client has to take it fast enough.
    async fn send(&mut self, head: ResponseHead<'_>, body: &[u8]) -> Result<Next, StreamError>;

    /// Begins a response whose body comes piece by piece; without a content length, it is as long as the pieces.
    async fn begin_stream(&mut self, head: ResponseHead<'_>) -> Result<(), StreamError>;

    /// Sends pieces of the body at once; the client has to take them fast enough.
    async fn send_pieces(&mut self, pieces: Vec<Bytes>) -> Result<(), StreamError>;

    /// Whether the kernel alone reads the pieces that are sent: then a handler may still change their memory.
    fn can_send_file(&self) -> bool;

    /// Ends a body that is complete.
    async fn end_stream(&mut self) -> Result<Next, StreamError>;

    /// Cuts a body off: the connection, or the stream, is to be closed in a way that the client sees.
    fn cut_off(&mut self);

    /// Works until the client closes the connection, or its sending side.
    async fn until_client_closes<T>(&mut self, work: impl Future<Output = T>) -> Result<T, StreamError>;

    /// The connection, which becomes a WebSocket; none where it carries other requests, too.
    fn raw(&mut self) -> Option<&mut ClientStream>;

    /// Reads and drops a body that nobody wants, if it is small and has arrived. Returns whether that was all of it.
    async fn drop_small_body(&mut self) -> Result<bool, StreamError>;

    /// Reads and drops what is left of a body after its answer, for a while. Returns whether that was all: then the
    /// next request is behind it.
    async fn drop_rest_of_body(&mut self) -> bool;
}
