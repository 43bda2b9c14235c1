//! HTTP/1: the connections of clients. The front passes on unambiguous requests and rejects all others; `docs/HTTP.md`
//! lists the response to each kind of input.
mod body;
mod chunks;
mod client;
mod connection;
mod exchange;
mod failure;
mod guard;
mod handler_head;
mod head;
mod http1;
mod refusal;
mod request;
mod request_id;
mod response;
mod session_cookie;
mod stream;
mod streamed;
mod target;
mod trace;

pub use connection::serve;
pub use failure::refusal_of;
pub use guard::Guard;
pub use handler_head::write as handler_head;
pub use head::{Head, MAX_HEADERS, read as read_head};
pub use refusal::{Refusal, refuse_connection};
pub use request::place;
pub use request_id::RequestIds;
pub use response::Dates;
pub use session_cookie::is_set_by as is_session_set_by;
pub use target::{Target, host_name};
pub use trace::{RequestSpan, TraceIds};
