//! One request, or its streamed answer, on a connection to a handler, as those see it who read or write it.
use std::rc::Rc;
use std::time::Instant;

use edge_wire::Kind;

use super::outgoing::RequestBody;
use super::shared_memory::{Memories, MemoryOffer};

/// A connection that carries streams, which have numbers.
pub trait StreamCarrier {
    /// Sends a piece of the body of a request; a whole frame.
    fn send_piece(&self, frame: RequestBody);

    /// The body of a request is complete. The time of the handler begins.
    fn end_body(&self, number: u32, deadline: Instant);

    /// Nobody waits for the answer to a request any more, if there is none yet, or sends any more of its body.
    fn leave(&self, number: u32, reason: &str);

    /// A request has not been read in time.
    fn expire_request(&self);

    /// The handler may send so many more bytes of a stream.
    fn give_credit(&self, number: u32, bytes: u32);

    /// Whether the handler is still sending a stream that is wanted.
    fn is_streaming(&self, number: u32) -> bool;

    /// Where its handler may put large streams.
    fn memories(&self) -> &Memories;

    /// Gives the handler memory for what follows of a stream.
    fn give_memory(&self, number: u32, given: MemoryOffer);

    /// Sends a frame of a WebSocket, unless the handler has ended it.
    fn send_frame(&self, number: u32, kind: Kind, payload: &[u8]);

    /// Nobody wants the rest of a stream, if there is any.
    fn drop_stream(&self, number: u32);
}

/// A stream of a connection.
pub struct StreamHandle {
    pub carrier: Rc<dyn StreamCarrier>,
    pub number: u32,
}
