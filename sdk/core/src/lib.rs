//! Write HTTP endpoint handlers for the edge gateway.
//!
//! A handler is a function from a [`Request`] to a [`Response`]; a macro makes a program of it, which the gateway
//! compiles, starts and sends requests to.
//!
//! ```no_run
//! use rust_edge_gateway_sdk::prelude::*;
//!
//! fn handle(req: Request) -> Response {
//!     Response::ok(json!({"hello": req.path_param("name")}))
//! }
//!
//! handler_loop!(handle);
//! ```
//!
//! | macro | handler |
//! |---|---|
//! | [`handler_loop!`] | `fn(Request) -> Response` |
//! | [`handler_loop_result!`] | `fn(Request) -> Result<Response, HandlerError>` |
//! | `handler_loop_async!` | `async fn(Request) -> Response`, feature `async` |
//! | `handler_loop_async_result!` | `async fn(Request) -> Result<Response, HandlerError>`, feature `async` |
//!
//! One process serves many requests at once, on several threads: a handler that waits holds up nobody else. A panic is a
//! 500 for its own request. What a handler prints, the gateway keeps as the endpoint's log.

#![warn(missing_docs)]

pub mod error;
mod json_bridge;
mod macros;
mod multipart;
pub mod request;
pub mod response;
mod runtime;
#[doc(hidden)]
pub mod wire;

pub use error::HandlerError;
pub use multipart::{MultipartData, MultipartFile};
pub use request::Request;
pub use response::Response;
#[doc(hidden)]
pub use runtime::blocking;
#[cfg(feature = "async")]
pub use tokio;

/// Everything a handler usually needs: `use rust_edge_gateway_sdk::prelude::*;`
pub mod prelude {
    pub use crate::{handler_loop, handler_loop_result, json};
    #[cfg(feature = "async")]
    pub use crate::{handler_loop_async, handler_loop_async_result};
    pub use crate::{HandlerError, MultipartData, MultipartFile, Request, Response};
    pub use serde::{Deserialize, Serialize};
    pub use serde_json::Value as JsonValue;
}

/// What the macros expand to. Not for use by hand.
#[doc(hidden)]
pub mod __private {
    pub use crate::json_bridge::macros::{ArrayBuilder, ObjectBuilder};
    pub use crate::json_bridge::to_value;
    #[cfg(feature = "async")]
    pub use crate::runtime::asynchronous::run_async;
    pub use crate::runtime::run;
    pub use serde_json::Value;
}
