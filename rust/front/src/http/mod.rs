//! HTTP/1 and HTTP/2: the connections of clients. The front passes on unambiguous requests and rejects all others;
//! `docs/HTTP.md` lists the response to each kind of input.
mod chunks;
mod client;
mod connection;
mod exchange;
mod failure;
#[cfg(fuzzing)]
pub mod fuzzing;
mod handler_head;
mod http1;
mod http2;
mod received_request;
mod response;
mod stream;
mod streamed;
mod unparsable;
mod upgrade;
mod upload;
#[cfg(not(fuzzing))]
mod websocket;
#[cfg(fuzzing)]
pub mod websocket;

pub use connection::serve;
pub use failure::refusal_of;
pub use handler_head::HandlerHead;

pub use received_request::sticky_place;
pub use unparsable::refuse_connection;
