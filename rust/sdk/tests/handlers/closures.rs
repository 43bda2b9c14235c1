//! The loop macros take any expression that is a handler, also a closure that does not say what it takes.

use rust_edge_gateway_sdk::prelude::*;

mod inner {
    use rust_edge_gateway_sdk::{Request, Response};

    pub mod deeper {
        pub fn handle(request: super::Request) -> super::Response {
            super::Response::text(200, request.path)
        }
    }
}

fn main_by_path() {
    mod by_path {
        use rust_edge_gateway_sdk::prelude::*;
        handler_loop!(super::inner::deeper::handle);
        #[allow(dead_code)]
        pub fn check() -> fn() {
            main
        }
    }
    let _ = by_path::check();
}

handler_loop!(|req| {
    main_by_path();
    Response::ok(json!([req.method, 1, null]))
});
