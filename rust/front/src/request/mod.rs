//! What a request says in its head, whichever version of HTTP it came by, and the answer to one that is refused.
//! Nothing here knows of connections, endpoints or threads.
mod head;
mod refusal;
mod request_id;
pub mod session_cookie;
mod target;
mod trace;

pub use head::{Framing, Head, HeadEnd, MAX_HEAD_BYTES, MAX_HEADERS, check_beginning, read as read_head};
pub use refusal::Refusal;
pub use request_id::RequestIds;
pub use target::{Target, host_name};
pub use trace::{RequestSpan, TraceIds};
