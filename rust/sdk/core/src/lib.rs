//! The code behind `rust-edge-gateway-sdk`, which re-exports all of it: handlers depend on that crate, and its page is
//! the documentation. They are two crates because they are compiled differently; see `shared.rs` there.

#![warn(missing_docs)]

pub mod error;
pub mod ipc;
mod json_bridge;
mod macros;
mod multipart;
mod pairs;
pub mod request;
pub mod response;
mod runtime;
pub mod services;
mod sse;
mod stream;
mod stream_request;
mod values;
mod websocket;
pub mod storage {
    //! [`Storage`]: JSON records by id. The same items as in [`crate::services`].

    pub use crate::services::{Storage, StorageType};
}
#[doc(hidden)]
pub mod wire;

pub use error::HandlerError;
/// The crate of the macros in [`prelude`]. A handler that depends on it, by itself or through another crate, uses the
/// same.
pub use log;
pub use multipart::{MultipartData, MultipartFile};
pub use pairs::Pairs;
pub use request::Request;
pub use response::Response;
#[cfg(feature = "async")]
pub use runtime::asynchronous::body_writer::AsyncBodyWriter;
pub use runtime::in_request::{call_in_request, in_request, InRequest};
#[cfg(feature = "async")]
pub use runtime::in_request::{spawn, spawn_blocking};
#[doc(hidden)]
pub use runtime::workers::blocking;
pub use services::{Storage, StorageType};
#[cfg(feature = "async")]
pub use sse::AsyncEventWriter;
pub use sse::{Event, EventWriter, Sse};
pub use stream::{BodyWriter, StreamResponse};
#[cfg(feature = "async")]
pub use stream_request::AsyncBodyReader;
pub use stream_request::{BodyReader, StreamRequest};
#[cfg(feature = "async")]
pub use tokio;
pub use values::{one_of, Values};
#[cfg(feature = "async")]
pub use websocket::asynchronous::{AsyncSocketReceiver, AsyncSocketSender, AsyncWebSocket};
pub use websocket::message::{CloseFrame, Message};
pub use websocket::{SocketReceiver, SocketSender, WebSocket};

/// The async twin of [`handler_loop_result!`]; [`handler_loop_async!`] takes both kinds of handlers.
#[cfg(feature = "async")]
pub use handler_loop_async as handler_loop_async_result;
/// The same by another name.
#[cfg(feature = "async")]
pub use handler_loop_async as handler_loop_result_async;

/// Everything a handler usually needs: `use rust_edge_gateway_sdk_core::prelude::*;`
pub mod prelude {
    pub use crate::ipc::{read_request, send_response};
    pub use crate::services::{
        DbPool, DbResult, EmailMessage, EmailPool, FindOptions, FtpPool, HttpPool, HttpRequest, HttpResponse,
        MemcachedPool, MongoPool, ObjectStore, RedisPool, Storage, StorageType, Transaction, UpdateOptions,
    };
    #[cfg(feature = "async")]
    pub use crate::AsyncWebSocket;
    pub use crate::{handler_loop, handler_loop_result, handler_ws, json};
    #[cfg(feature = "async")]
    pub use crate::{handler_loop_async, handler_loop_async_result, handler_loop_result_async, handler_ws_async};
    #[cfg(feature = "async")]
    pub use crate::{spawn, spawn_blocking};
    pub use crate::{CloseFrame, Message, WebSocket};
    pub use crate::{
        Event, HandlerError, MultipartData, MultipartFile, Pairs, Request, Response, Sse, StreamRequest, StreamResponse,
    };
    pub use log::{debug, error, info, trace, warn};
    pub use serde::{Deserialize, Serialize};
    pub use serde_json::Value as JsonValue;
}

/// What the macros expand to. Not for use by hand.
#[doc(hidden)]
pub mod __private {
    pub use crate::json_bridge::from_bytes;
    pub use crate::json_bridge::macros::{ArrayBuilder, ObjectBuilder, Value};
    pub use crate::json_bridge::write::to_value;
    #[cfg(feature = "async")]
    pub use crate::runtime::asynchronous::{run_socket as run_async_socket, AsyncHandler, RunLocal, RunShared};
    pub use crate::runtime::{run, run_result, run_socket};
}
