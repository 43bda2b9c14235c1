//! The same as `handler.rs` where it makes sense, for the async loop.

use rust_edge_gateway_sdk::prelude::*;
use rust_edge_gateway_sdk::tokio::sync::Barrier;

static BARRIER: std::sync::OnceLock<Barrier> = std::sync::OnceLock::new();

async fn handle(req: Request) -> Result<Response, HandlerError> {
    let count: usize = req.query_param_as("n").unwrap_or(0);
    match req.path.as_str() {
        "/quick" => Ok(Response::ok(json!({"n": count}))),
        "/echo" => Ok(Response::binary(200, req.body_bytes(), "application/octet-stream")),
        "/wait" => {
            BARRIER.get_or_init(|| Barrier::new(count)).wait().await;
            Ok(Response::text(200, "waited"))
        }
        "/panic" => {
            rust_edge_gateway_sdk::tokio::task::yield_now().await;
            panic!("secret detail")
        }
        "/large" => Ok(Response::text(200, "x".repeat(count))),
        "/conflict" => Err(HandlerError::Conflict("taken".into())),
        _ => Err(HandlerError::NotFound),
    }
}

handler_loop_async_result!(handle);
