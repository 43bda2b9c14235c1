//! The handler of the process tests. Latches and barriers instead of sleeps: the tests order events, and never depend
//! on how long something takes.

use rust_edge_gateway_sdk::prelude::*;
use std::collections::HashMap;
use std::sync::{Condvar, Mutex};

static LATCHES: Mutex<Option<HashMap<String, usize>>> = Mutex::new(None);
static CHANGED: Condvar = Condvar::new();

/// Adds one to the counter `name`, and waits until it has reached `target`.
fn arrive_and_wait(name: &str, target: usize) {
    let mut latches = LATCHES.lock().unwrap();
    *latches.get_or_insert_with(HashMap::new).entry(name.to_owned()).or_default() += 1;
    CHANGED.notify_all();
    while latches.as_ref().unwrap()[name] < target {
        latches = CHANGED.wait(latches).unwrap();
    }
}

fn handle(req: Request) -> Response {
    let count = req.query_param_as("n").unwrap_or(0);
    let name = req.query_param("latch").cloned().unwrap_or_default();
    match req.path.as_str() {
        "/quick" => Response::ok(json!({"n": count})),
        "/echo" => Response::binary(200, req.body_bytes(), "application/octet-stream"),
        "/wait" => {
            arrive_and_wait(&name, count);
            Response::text(200, "waited")
        }
        "/wait-blocking" => {
            rust_edge_gateway_sdk::blocking(|| arrive_and_wait(&name, count));
            Response::text(200, "waited")
        }
        "/service" => match RedisPool::new("cache").get("key") {
            Ok(value) => Response::text(200, value.unwrap_or_default()),
            Err(error) => error.into(),
        },
        "/spin" => {
            // Slow enough for the runtime to notice.
            std::thread::sleep(std::time::Duration::from_millis(1));
            Response::ok(json!({"n": count}))
        }
        "/refused" => HandlerError::DatabaseError("no table users".into()).into(),
        "/panic" => panic!("secret detail"),
        "/large" => Response::text(200, "x".repeat(count)),
        "/bad-header" => Response::no_content().with_header("X-Note", "two\r\nlines"),
        "/bad-name" => Response::no_content().with_header("X Note", "v"),
        "/bad-status" => Response::new(99),
        _ => Response::not_found(),
    }
}

handler_loop!(handle);
