//! A panic is a 500 for its own request, and does not affect others.

use super::answer::Answered;
use super::current::{self, Current};
use super::input::Incoming;
use super::records;
use crate::Response;
use std::panic::{self, AssertUnwindSafe, Location};

const SDK: &str = env!("CARGO_MANIFEST_DIR");
/// What the client reads. The details are for the log only.
const ANSWER: &str = "The handler failed. The endpoint's log has the details.";

/// Makes panics records, with the request they belong to.
pub fn install_hook() {
    panic::set_hook(Box::new(|info| {
        let payload = info.payload();
        let message = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("(no message)");
        records::panicked(info.location().map(place_of), message);
    }));
}

/// A place in the source, as the log has it.
pub fn place_of(place: &Location<'_>) -> String {
    format!("{}:{}:{}", short_path(place.file()), place.line(), place.column())
}

/// The same, if it is one of the handler or of its crates.
pub fn place_outside_sdk(place: &Location<'_>) -> Option<String> {
    let is_ours = place.file().starts_with(SDK) || place.file().contains("library/core/src/");
    (!is_ours).then(|| place_of(place))
}

/// A source file without the folders of the machine that compiled it: of the SDK, `rust-edge-gateway-sdk/core/src/...`;
/// of a crate, `name-version/src/...`.
fn short_path(file: &str) -> String {
    let sdk = SDK.strip_suffix("/core").unwrap_or(SDK);
    if let Some(rest) = file.strip_prefix(sdk).filter(|rest| rest.starts_with('/')) {
        return format!("rust-edge-gateway-sdk{rest}");
    }
    // CARGO_HOME/registry/src/<index>/<name>-<version>/...
    let in_registry = file.split_once("/registry/src/").and_then(|(_, rest)| rest.split_once('/'));
    in_registry.map_or(file, |(_, crate_path)| crate_path).to_owned()
}

/// Calls the handler; a panic becomes a 500.
pub fn catch(handler: &dyn Fn(Incoming) -> Answered, incoming: Incoming) -> Answered {
    let _working = current::work_on(Some(Current::of(&incoming.request)));
    // Unwind safety is about broken invariants behind shared references; the handler owns its request, and statics of
    // the handler are as exposed to a panicking thread as in any Rust program.
    let result = panic::catch_unwind(AssertUnwindSafe(|| handler(incoming)));
    result.unwrap_or_else(|_| answer())
}

/// The answer to a request whose handler panicked.
pub fn answer() -> Answered {
    Answered::Whole(Response::internal_error(ANSWER))
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
