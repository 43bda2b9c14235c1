// GET /sleep/{ms}: answers after so many milliseconds. Thousands may sleep at once: each is a task, not a thread.
//
//     curl http://localhost:8080/sleep/250
//     {"slept_ms":250}

use rust_edge_gateway_sdk::prelude::*;
use rust_edge_gateway_sdk::tokio::time::{sleep, Duration};

async fn handle(req: Request) -> Response {
    let ms: u64 = match req.require_path_param("ms") {
        Ok(ms) => ms,
        Err(error) => return error.into(),
    };
    if ms > 10_000 {
        return Response::bad_request("At most 10000 ms.");
    }
    sleep(Duration::from_millis(ms)).await;
    Response::ok(json!({"slept_ms": ms}))
}

handler_loop_async!(handle);
