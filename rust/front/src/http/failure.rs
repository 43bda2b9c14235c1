//! Requests whose handler has not answered.
use serde_json::json;

use crate::endpoint_state::EndpointState;
use crate::messages::Level;
use crate::request::Refusal;
use crate::thread::Thread;
use crate::upstream::endpoint::{Endpoint, Failure};

/// What a client gets instead of the answer of a handler.
pub fn refusal_of(
    failure: Failure,
    thread: &Thread,
    endpoint: &Endpoint,
    state: &EndpointState,
    request_id: &str,
) -> Refusal {
    let endpoint_id = &*endpoint.shared.id;
    match failure {
        Failure::Aborted(reason) => {
            let fields = json!({ "request_id": request_id, "endpoint_id": endpoint_id, "reason": &*reason });
            thread.supervisor.log(Level::Warn, fields, "handler aborted a request");
            Refusal::aborted(&reason)
        }
        Failure::Expired => {
            let fields = json!({ "request_id": request_id, "endpoint_id": endpoint_id });
            thread.supervisor.log(Level::Warn, fields, "request exceeded its deadline");
            Refusal::expired(state.limits.timeout_ms.into())
        }
        Failure::Unavailable => Refusal::unavailable(),
        Failure::Overloaded => Refusal::overloaded(state.limits.concurrent_requests),
        Failure::TooLarge(problem) => Refusal::request_too_large(problem),
        Failure::OutOfMemory => Refusal::out_of_memory(),
        Failure::NoSocket => Refusal::websocket_only(),
    }
}
