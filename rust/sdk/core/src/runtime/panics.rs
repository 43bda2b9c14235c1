//! A panic is a 500 for its own request, and does not affect others.

use super::records;
use crate::{Request, Response};
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};

/// What the client reads. The details are for the log only.
const ANSWER: &str = "The handler failed. The endpoint's log has the details.";

thread_local! {
    /// The request this thread works on; read by the panic hook.
    static REQUEST_ID: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Makes panics records, with the request they belong to.
pub fn install_hook() {
    panic::set_hook(Box::new(|info| {
        let payload = info.payload();
        let message = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("(no message)");
        let place = info.location();
        let place = place.map(|place| format!("{}:{}:{}", short_path(place.file()), place.line(), place.column()));
        records::panicked(place, message);
    }));
}

/// The request that this thread works on; empty if there is none.
pub fn request_id() -> String {
    // A panic inside with_borrow's closure is impossible; a panic while the id is being set is only a missing id.
    let id = REQUEST_ID.try_with(|id| id.try_borrow().map_or_else(|_| String::new(), |id| id.clone()));
    id.unwrap_or_default()
}

/// A source file without the folders of the machine that compiled it: of the SDK, `rust-edge-gateway-sdk/core/src/...`;
/// of a crate, `name-version/src/...`.
fn short_path(file: &str) -> String {
    let sdk = env!("CARGO_MANIFEST_DIR").strip_suffix("/core").unwrap_or(env!("CARGO_MANIFEST_DIR"));
    if let Some(rest) = file.strip_prefix(sdk).filter(|rest| rest.starts_with('/')) {
        return format!("rust-edge-gateway-sdk{rest}");
    }
    // CARGO_HOME/registry/src/<index>/<name>-<version>/...
    let in_registry = file.split_once("/registry/src/").and_then(|(_, rest)| rest.split_once('/'));
    in_registry.map_or(file, |(_, crate_path)| crate_path).to_owned()
}

/// Calls the handler; a panic becomes a 500.
pub fn catch(handler: &dyn Fn(Request) -> Response, request: Request) -> Response {
    name_request(&request.request_id);
    // Unwind safety is about broken invariants behind shared references; the handler owns its request, and statics of
    // the handler are as exposed to a panicking thread as in any Rust program.
    let result = panic::catch_unwind(AssertUnwindSafe(|| handler(request)));
    name_request("");
    result.unwrap_or_else(|_| Response::internal_error(ANSWER))
}

/// The answer to a request whose handler panicked elsewhere.
#[cfg(feature = "async")]
pub fn answer() -> Response {
    Response::internal_error(ANSWER)
}

/// Says which request this thread works on; empty for none.
pub fn name_request(id: &str) {
    REQUEST_ID.with_borrow_mut(|current| {
        current.clear();
        current.push_str(id);
    });
}

#[cfg(test)]
mod tests {
    use super::short_path;

    #[test]
    fn places_name_no_folder_of_the_machine() {
        let here = concat!(env!("CARGO_MANIFEST_DIR"), "/src/response.rs");
        assert_eq!(short_path(here), "rust-edge-gateway-sdk/core/src/response.rs");
        let of_a_crate = "/home/me/.cargo/registry/src/registry-1949cf8c6b5b557f/regex-1.11.1/src/lib.rs";
        assert_eq!(short_path(of_a_crate), "regex-1.11.1/src/lib.rs");
        for as_it_is in ["handler.rs", "/rustc/5980/library/core/src/option.rs", "core/src/response.rs"] {
            assert_eq!(short_path(as_it_is), as_it_is);
        }
    }
}
