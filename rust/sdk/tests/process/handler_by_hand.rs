//! A handler with a loop of its own, as SDK 0.1 allowed.

use rust_edge_gateway_sdk::prelude::*;

fn main() {
    loop {
        match read_request() {
            Ok(req) if req.path == "/forget" => {}
            Ok(req) => {
                if let Err(e) = send_response(Response::ok(json!({"path": req.path}))) {
                    eprintln!("{}", e);
                }
            }
            Err(e) => {
                eprintln!("{}", e);
                break;
            }
        }
    }
}
