// GET /limited: lets each client in ten times a minute. Needs a memcached service bound as "cache".
//
//     curl http://localhost:8080/limited
//     {"left":9}

use rust_edge_gateway_sdk::prelude::*;
use std::time::{SystemTime, UNIX_EPOCH};

const CALLS_A_MINUTE: u64 = 10;

fn handle(req: Request) -> Result<Response, HandlerError> {
    let client = req.client_ip.unwrap_or_default();
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let key = format!("calls:{client}:{}", now.as_secs() / 60);
    // One step, however many ask at once: adds one, or begins at one.
    let calls = MemcachedPool::new("cache").incr_or_set(&key, 1, 1, Some(120))?;
    if calls > CALLS_A_MINUTE {
        return Ok(Response::json(
            429,
            json!({"error": "Too many calls, wait a minute."}),
        ));
    }
    Ok(Response::ok(json!({"left": CALLS_A_MINUTE - calls})))
}

handler_loop_result!(handle);
