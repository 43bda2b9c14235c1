//! A handler that was started without access to services.

use rust_edge_gateway_sdk::prelude::*;

#[test]
fn a_call_without_access_to_services_fails_and_says_why() {
    let error = DbPool::new("main-db").query("SELECT 1", ()).unwrap_err();
    assert!(matches!(error, HandlerError::PoolNotBound(_)));
    let text = "Service not bound: the pool \"main-db\": this handler was started without access to services";
    assert_eq!(error.to_string(), text);
    assert!(DbPool::new("main-db").begin().is_err());
}
