//! An async handler whose future cannot move between threads.

use rust_edge_gateway_sdk::prelude::*;
use rust_edge_gateway_sdk::tokio::task::yield_now;
use std::cell::Cell;
use std::rc::Rc;

async fn handle(req: Request) -> Response {
    let visits = Rc::new(Cell::new(0));
    visits.set(visits.get() + 1);
    yield_now().await;
    if req.path == "/panic" {
        panic!("secret detail");
    }
    Response::ok(json!({"visits": visits.get()}))
}

handler_loop_async!(handle);
