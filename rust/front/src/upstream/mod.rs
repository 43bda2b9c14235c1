//! Handlers: which ones serve an endpoint, and the connections to them.
mod body_stream;
mod by_id;
mod connection;
mod connector;
pub mod endpoint;
mod entry_limit;
#[cfg(fuzzing)]
pub mod fuzzing;
mod in_flight;
mod incoming;
mod interval;
mod outgoing;
mod pool;
mod reply;
mod response_head;
mod shared;
mod shared_memory;
mod socket;
pub mod sticky;
mod stream_buffer;
mod stream_handle;
mod upload;
mod window;

pub use body_stream::BodyStream;
pub use by_id::ById;
pub use connector::Connector;
pub use outgoing::RequestBody;
pub use pool::HandlerPool;
pub use reply::{Answer, AnswerBody, Outcome, Reply, SWITCHING, StreamedAnswer};
pub use shared::{ActiveRequest, SharedEndpoint};
pub use stream_buffer::End;
pub use upload::Upload;

#[cfg(test)]
mod sleep_tests;
#[cfg(test)]
mod stream_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod upload_tests;
