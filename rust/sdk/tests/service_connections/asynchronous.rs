//! Calls from tasks of tokio.

use super::*;
use rust_edge_gateway_sdk::tokio;
use tokio::runtime::Builder;

#[test]
fn a_waiting_call_does_not_hold_up_other_tasks() {
    let _turn = alone();
    let latch: Arc<Latch> = Arc::default();
    let waits = latch.clone();
    on("waits", move |_| {
        waits.wait();
        value()
    });
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let found = runtime.block_on(async {
        let call = tokio::spawn(async { get("waits") });
        // The only worker waits for the answer, which comes when this one has run on it.
        let other = tokio::spawn(async move {
            while calls("waits").is_empty() {
                tokio::task::yield_now().await;
            }
            latch.open();
        });
        other.await.unwrap();
        call.await.unwrap()
    });
    assert_eq!(found.unwrap().as_deref(), Some("v"));
}

#[test]
fn calls_work_wherever_tokio_runs() {
    let _turn = alone();
    on("anywhere", |_| value());
    let is_found = || get("anywhere").unwrap().as_deref() == Some("v");
    let single = Builder::new_current_thread().enable_all().build().unwrap();
    assert!(single.block_on(async { is_found() }));
    let local = tokio::task::LocalSet::new();
    assert!(local.block_on(&single, async { tokio::task::spawn_local(async move { is_found() }).await.unwrap() }));
    let multi = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    assert!(multi.block_on(async { is_found() }));
    assert!(multi.block_on(async { tokio::task::spawn_blocking(is_found).await.unwrap() }));
    assert!(multi.block_on(async { tokio::spawn(async move { is_found() }).await.unwrap() }));
}
