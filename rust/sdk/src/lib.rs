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
//! | [`handler_ws!`] | `fn(WebSocket) -> Result<(), HandlerError>` |
//! | `handler_ws_async!` | `async fn(AsyncWebSocket) -> Result<(), HandlerError>`, feature `async` |
//!
//! `handler_loop_result_async!` is another name of the last one. Instead of [`Response`], all take [`StreamResponse`]
//! and [`Sse`], whose bodies are sent while they are made.
//!
//! One process serves many requests at once, on several threads: a handler that waits delays no other. A panic is a
//! 500 for its own request. What a handler prints, the gateway keeps as the endpoint's log.

#![warn(missing_docs)]

#[doc(inline)]
pub use rust_edge_gateway_sdk_core::*;

#[doc(hidden)]
pub mod shared;

/// The examples of README.md, so that they keep compiling. Some need the feature.
#[cfg(all(doctest, feature = "async"))]
#[doc = include_str!("../README.md")]
struct Readme;
