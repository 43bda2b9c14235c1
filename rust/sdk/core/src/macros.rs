//! The macros that make a `main` out of a handler.

/// Serves requests with a `fn(Request) -> Response`. The function may take a [`StreamRequest`](crate::StreamRequest)
/// instead, and return a [`StreamResponse`](crate::StreamResponse) or an [`Sse`](crate::Sse); so with all these macros.
///
/// ```no_run
/// use rust_edge_gateway_sdk_core::prelude::*;
///
/// fn handle(req: Request) -> Response {
///     Response::ok(json!({"path": req.path}))
/// }
///
/// handler_loop!(handle);
/// ```
#[macro_export]
macro_rules! handler_loop {
    // A closure that does not say what it takes.
    (|$request:pat_param| $($body:tt)+) => {
        $crate::handler_loop!(|$request: $crate::Request| $($body)+);
    };
    ($handler:expr) => {
        fn main() {
            $crate::__private::run($handler)
        }
    };
}

/// Serves requests with a `fn(Request) -> Result<Response, HandlerError>`; an error is answered as
/// [`HandlerError::to_response`](crate::HandlerError::to_response) says.
///
/// ```no_run
/// use rust_edge_gateway_sdk_core::prelude::*;
///
/// fn handle(req: Request) -> Result<Response, HandlerError> {
///     let id: i64 = req.require_path_param("id")?;
///     Ok(Response::ok(json!({"id": id})))
/// }
///
/// handler_loop_result!(handle);
/// ```
#[macro_export]
macro_rules! handler_loop_result {
    // A closure that does not say what it takes.
    (|$request:pat_param| $($body:tt)+) => {
        $crate::handler_loop_result!(|$request: $crate::Request| $($body)+);
    };
    ($handler:expr) => {
        fn main() {
            $crate::__private::run_result($handler)
        }
    };
}

/// Serves requests with an `async fn(Request) -> Response`, or one that returns `Result<Response, HandlerError>`, on a
/// tokio runtime that this macro starts.
///
/// ```no_run
/// use rust_edge_gateway_sdk_core::prelude::*;
/// use rust_edge_gateway_sdk_core::tokio;
///
/// async fn handle(req: Request) -> Response {
///     tokio::time::sleep(std::time::Duration::from_millis(10)).await;
///     Response::ok(json!({"path": req.path}))
/// }
///
/// handler_loop_async!(handle);
/// ```
#[cfg(feature = "async")]
#[macro_export]
macro_rules! handler_loop_async {
    // A closure that does not say what it takes.
    (|$request:pat_param| $($body:tt)+) => {
        $crate::handler_loop_async!(|$request: $crate::Request| $($body)+);
    };
    ($handler:expr) => {
        fn main() {
            #[allow(unused_imports)]
            use $crate::__private::{RunLocal as _, RunShared as _};
            (&&$crate::__private::AsyncHandler::new($handler)).run()
        }
    };
}

/// Serves WebSockets with a `fn(WebSocket)`, or one that returns `Result<(), HandlerError>`. See [`crate::WebSocket`].
/// Its endpoint has the method GET; requests that ask for no WebSocket get 426.
#[macro_export]
macro_rules! handler_ws {
    ($handler:expr) => {
        fn main() {
            $crate::__private::run_socket($handler)
        }
    };
}

/// Serves WebSockets with an `async fn(AsyncWebSocket)`, or one that returns `Result<(), HandlerError>`, on a tokio
/// runtime that this macro starts; its future has to be `Send`. See [`crate::AsyncWebSocket`].
#[cfg(feature = "async")]
#[macro_export]
macro_rules! handler_ws_async {
    ($handler:expr) => {
        fn main() {
            $crate::__private::run_async_socket($handler)
        }
    };
}
