//! Handlers in the style of the Rust Edge Gateway SDK 0.1. That they compile is the test.

#![allow(dead_code, clippy::all)] // Written as others write.

#[cfg(feature = "async")]
#[path = "handlers/asynchronous.rs"]
mod asynchronous;
#[path = "handlers/closures.rs"]
mod closures;
#[path = "handlers/crud.rs"]
mod crud;
#[path = "handlers/forms.rs"]
mod forms;
#[path = "handlers/pools.rs"]
mod pools;
#[path = "handlers/results.rs"]
mod results;

/// Handlers that stay as they are, and are run by `test/processes/sdk-0.1.test.ts`. Included, so that cargo fmt leaves
/// them alone.
mod as_they_are {
    mod literals {
        include!("../../../test/sdk-0.1/literals.rs");
    }
    mod pools {
        include!("../../../test/sdk-0.1/pools.rs");
    }
    mod storage {
        include!("../../../test/sdk-0.1/storage.rs");
    }
}
