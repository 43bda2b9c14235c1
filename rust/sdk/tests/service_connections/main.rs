//! The connection with the actor host, when all is well and when not. Connections are shared by all tests of a process,
//! so these run one after the other.

#[cfg(feature = "async")]
mod asynchronous;
#[path = "../services/server.rs"]
mod server;

use rust_edge_gateway_sdk::prelude::*;
use rust_edge_gateway_sdk::services::with_deadline;
use server::{calls, encoded, failure, lock, ok, on, operations, Answer, SERVER};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Barrier, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// Only a test that would never end runs into it.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Waits for its turn.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = lock(&TURN);
    *lock(&SERVER.greeting) = None;
    turn
}

/// Waits until the server has closed all connections but so many.
fn wait_for_open(most: usize) {
    let start = Instant::now();
    while SERVER.accepted.load(SeqCst) - SERVER.closed.load(SeqCst) > most {
        assert!(start.elapsed() < TIMEOUT, "connections stay open");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Gets rid of the connections that wait for the next call.
fn forget_connections() {
    on("forget", |_| Answer { close: true, ..Answer::default() });
    while SERVER.accepted.load(SeqCst) > SERVER.closed.load(SeqCst) {
        let before = SERVER.closed.load(SeqCst);
        RedisPool::new("forget").get("k").unwrap_err();
        while SERVER.closed.load(SeqCst) == before {
            thread::yield_now();
        }
    }
}

fn value() -> Answer {
    ok(json!({"found": true}), "v")
}

fn get(pool: &str) -> Result<Option<String>, HandlerError> {
    RedisPool::new(pool).get("k")
}

#[test]
fn the_token_goes_out_with_the_first_call_and_never_again() {
    let _turn = alone();
    on("first", |_| value());
    forget_connections();
    let accepted = SERVER.accepted.load(SeqCst);
    assert_eq!(get("first").unwrap().as_deref(), Some("v"));
    assert_eq!(SERVER.first_read.load(SeqCst), 2, "token and call come in one piece");
    for _ in 0..100 {
        get("first").unwrap();
    }
    assert_eq!(SERVER.accepted.load(SeqCst), accepted + 1, "the connection is used again");
}

#[test]
fn the_token_may_be_answered() {
    let _turn = alone();
    on("greeted", |_| value());
    *lock(&SERVER.greeting) = Some(json!({"ok": true}));
    forget_connections();
    for _ in 0..3 {
        assert_eq!(get("greeted").unwrap().as_deref(), Some("v"));
    }
    let greeting = json!({"ok": false, "kind": "unauthenticated", "message": "the token is not valid"});
    *lock(&SERVER.greeting) = Some(greeting);
    forget_connections();
    let error = get("greeted").unwrap_err();
    assert!(matches!(error, HandlerError::PoolNotBound(_)), "{error}");
    assert_eq!(error.to_string(), "Service not bound: the pool \"greeted\": the token is not valid");
}

#[test]
fn every_kind_of_failure_has_its_error() {
    let _turn = alone();
    type IsIt = fn(&HandlerError) -> bool;
    let kinds: [(&str, u16, IsIt); 9] = [
        ("unauthenticated", 500, |error| matches!(error, HandlerError::PoolNotBound(_))),
        ("unbound", 500, |error| matches!(error, HandlerError::PoolNotBound(_))),
        ("inactive", 503, |error| matches!(error, HandlerError::ServiceInactive(_))),
        ("unavailable", 503, |error| matches!(error, HandlerError::BackendUnavailable(_))),
        ("deadline", 504, |error| matches!(error, HandlerError::DeadlineExceeded(_))),
        ("busy", 503, |error| matches!(error, HandlerError::ServiceBusy(_))),
        ("backend", 500, |error| matches!(error, HandlerError::RedisError(_))),
        ("invalid", 500, |error| matches!(error, HandlerError::RedisError(_))),
        ("of the future", 500, |error| matches!(error, HandlerError::RedisError(_))),
    ];
    for (kind, status, is_it) in kinds {
        on("fails", move |_| failure(kind, "why \"so\""));
        let error = get("fails").unwrap_err();
        assert!(is_it(&error), "{kind}: {error:?}");
        assert_eq!(error.status_code(), status);
        assert!(error.to_string().ends_with(": the pool \"fails\": why \"so\""), "{error}");
    }
}

#[test]
fn an_idle_connection_that_was_closed_is_replaced_unnoticed() {
    let _turn = alone();
    on("closes", |_| Answer { close: true, ..value() });
    for n in 1..=10 {
        assert_eq!(get("closes").unwrap().as_deref(), Some("v"));
        assert_eq!(calls("closes").len(), n);
        wait_for_open(0);
    }
}

#[test]
fn a_connection_that_breaks_before_anything_is_written_is_replaced_unnoticed() {
    let _turn = alone();
    // Looks alive until one writes to it.
    on("deaf", |_| Answer { deaf: true, ..value() });
    for n in 1..=10 {
        assert_eq!(get("deaf").unwrap().as_deref(), Some("v"));
        assert_eq!(calls("deaf").len(), n);
    }
    let connections: BTreeSet<usize> = calls("deaf").iter().map(|call| call.connection).collect();
    assert_eq!(connections.len(), 10);
}

#[test]
fn a_call_that_may_have_run_is_not_made_again() {
    let _turn = alone();
    on("breaks", |_| Answer { close: true, ..Answer::default() });
    let error = get("breaks").unwrap_err();
    assert!(matches!(error, HandlerError::BackendUnavailable(_)), "{error}");
    assert!(error.to_string().contains("what the call did is not known"), "{error}");
    assert_eq!(calls("breaks").len(), 1);
    // A call is not made again either when the connection breaks in the middle of an answer.
    let (head, body) = value().frame.unwrap();
    for length in [1, 15, 16, 20, encoded(1, &head, &body).len() - 1] {
        let bytes = encoded(1, &head, &body)[..length].to_vec();
        let before = calls("breaks").len();
        on("breaks", move |_| Answer { raw: bytes.clone(), close: true, ..Answer::default() });
        forget_connections();
        assert!(matches!(get("breaks"), Err(HandlerError::BackendUnavailable(_))));
        assert_eq!(calls("breaks").len(), before + 1);
    }
}

#[test]
fn what_is_no_answer_ends_the_connection() {
    let _turn = alone();
    let head = json!({"ok": true, "result": {"found": false}});
    let mut request = encoded(1, &head, b"");
    request[1] = 1;
    for raw in [b"HTTP/1.1 400".to_vec(), encoded(77, &head, b""), request] {
        on("garbage", move |_| Answer { raw: raw.clone(), ..Answer::default() });
        let closed = SERVER.closed.load(SeqCst);
        let error = get("garbage").unwrap_err();
        assert!(matches!(error, HandlerError::BackendUnavailable(_)), "{error}");
        assert!(error.to_string().contains("violated the protocol"), "{error}");
        while SERVER.closed.load(SeqCst) == closed {
            thread::yield_now();
        }
    }
    // A head that cannot be read leaves the connection as it is.
    on("garbage", |_| Answer { frame: Some((json!([1]), Vec::new())), ..Answer::default() });
    let error = get("garbage").unwrap_err();
    assert!(error.to_string().contains("the answer to get cannot be understood"), "{error}");
}

#[test]
fn an_answer_nobody_asked_for_is_never_taken_for_another() {
    let _turn = alone();
    forget_connections();
    on("talks", |_| Answer { raw: encoded(2, &json!({"ok": true, "result": {"found": false}}), b""), ..value() });
    let accepted = SERVER.accepted.load(SeqCst);
    assert_eq!(get("talks").unwrap().as_deref(), Some("v"));
    assert_eq!(get("talks").unwrap().as_deref(), Some("v"));
    assert_eq!(SERVER.accepted.load(SeqCst), accepted + 2);
}

#[test]
fn a_deadline_is_sent_and_enforced() {
    let _turn = alone();
    on("deadlines", |_| value());
    get("deadlines").unwrap();
    with_deadline(Duration::from_millis(1500), || {
        get("deadlines").unwrap();
        with_deadline(Duration::from_secs(7200), || get("deadlines").unwrap());
        with_deadline(Duration::ZERO, || get("deadlines").unwrap());
        get("deadlines").unwrap();
    });
    get("deadlines").unwrap();
    let sent: Vec<JsonValue> = calls("deadlines").iter().map(|call| call.head["deadline_ms"].clone()).collect();
    assert_eq!(sent, [JsonValue::Null, json!(1500), json!(3_600_000), json!(1), json!(1500), JsonValue::Null]);

    // The actor host enforces the deadline, and has two seconds more to report that.
    on("late", |_| {
        thread::sleep(Duration::from_millis(100));
        value()
    });
    assert_eq!(with_deadline(Duration::from_millis(50), || get("late")).unwrap().as_deref(), Some("v"));
    on("silent", |_| Answer::default());
    let error = with_deadline(Duration::from_millis(50), || get("silent")).unwrap_err();
    assert!(matches!(error, HandlerError::DeadlineExceeded(_)), "{error}");
    assert!(error.to_string().contains("did not answer within 2050 ms"), "{error}");
    // The connection on which an answer may still come is not used again.
    assert_eq!(get("deadlines").unwrap().as_deref(), Some("v"));
}

#[test]
fn a_deadline_ends_with_a_panic_too() {
    let _turn = alone();
    on("panic", |_| value());
    let panicked = std::panic::catch_unwind(|| with_deadline(Duration::from_secs(1), || panic!("on purpose")));
    assert!(panicked.is_err());
    get("panic").unwrap();
    assert_eq!(calls("panic")[0].head["deadline_ms"], JsonValue::Null);
}

#[test]
fn large_payloads_arrive_byte_for_byte() {
    let _turn = alone();
    on("large", |call| ok(json!({"found": true}), &call.payload));
    let redis = RedisPool::new("large");
    // Around the sizes at which buffers end, and a large one.
    let sizes = [0, 1, 16_000, 16_300, 16_383, 16_384, 16_385, 33_000, 100_000, 40 << 20];
    for size in sizes {
        let sent: Vec<u8> = (0..size).map(|n: usize| (n * 31 + n / 251) as u8).collect();
        let before = calls("large").len();
        redis.set("k", &sent).unwrap_err();
        assert!(calls("large")[before].payload == sent, "{size}");
        on("stored", move |_| ok(json!({"found": true}), &sent));
        let received = RedisPool::new("stored").get_bytes("k").unwrap().unwrap();
        assert!(received == calls("large")[before].payload, "{size}");
    }
}

#[test]
fn large_heads_arrive_whole_and_so_does_an_answer_that_comes_byte_by_byte() {
    let _turn = alone();
    let long = "x".repeat(300_000);
    let text = long.clone();
    on("wordy", move |_| failure("backend", &text));
    for _ in 0..2 {
        assert!(get("wordy").unwrap_err().to_string().ends_with(&long));
    }
    let (head, body) = value().frame.unwrap();
    assert_eq!(get_dripped(&encoded(1, &head, &body)).as_deref(), Some("v"));
}

/// An answer that comes byte by byte: bytes that are written one by one are read so, or several at once.
fn get_dripped(bytes: &[u8]) -> Option<String> {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;
    forget_connections();
    let aside = SERVER.socket.with_extension("aside");
    std::fs::rename(&SERVER.socket, &aside).unwrap();
    let listener = UnixListener::bind(&SERVER.socket).unwrap();
    let result = thread::scope(|scope| {
        scope.spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
            for byte in bytes {
                stream.write_all(&[*byte]).unwrap();
                thread::yield_now();
            }
        });
        get("dripped").unwrap()
    });
    std::fs::rename(&aside, &SERVER.socket).unwrap();
    result
}

#[test]
fn what_is_too_large_is_refused_before_it_is_sent() {
    let _turn = alone();
    let objects = ObjectStore::new("never called");
    for error in [
        objects.put("k", vec![0; (64 << 20) + 1]).unwrap_err(),
        objects.get(&"k".repeat(1 << 20)).unwrap_err(),
        ObjectStore::new("x".repeat(1 << 20)).get("k").unwrap_err(),
    ] {
        assert!(matches!(error, HandlerError::StorageError(_)));
    }
    on("just fits", |_| ok(json!({"size": 1}), b""));
    ObjectStore::new("just fits").put("k", vec![0; 64 << 20]).unwrap();
    ObjectStore::new("just fits").put(&"\0".repeat(170_000), "x").unwrap();
}

#[test]
fn calls_of_many_threads_run_side_by_side() {
    const THREADS: usize = 96;
    let _turn = alone();
    // Nobody is answered before all have asked.
    let all = Arc::new(Barrier::new(THREADS));
    on("parallel", move |call| {
        all.wait();
        ok(json!({"found": true}), call.head["args"]["key"].as_str().unwrap())
    });
    thread::scope(|scope| {
        for n in 0..THREADS {
            scope.spawn(move || {
                for round in 0..5 {
                    let key = format!("{n} {round}");
                    assert_eq!(RedisPool::new("parallel").get(&key).unwrap(), Some(key));
                }
            });
        }
    });
    // Some wait for the next call. None comes, so they are given up.
    wait_for_open(64);
    wait_for_open(0);
}

#[test]
fn an_actor_host_that_is_away_is_an_error_until_it_is_back() {
    let _turn = alone();
    on("away", |_| value());
    forget_connections();
    let aside = SERVER.socket.with_extension("aside");
    std::fs::rename(&SERVER.socket, &aside).unwrap();
    let error = get("away").unwrap_err();
    std::fs::rename(&aside, &SERVER.socket).unwrap();
    assert!(matches!(error, HandlerError::BackendUnavailable(_)), "{error}");
    assert!(error.to_string().contains("the pool \"away\": the actor host of this machine cannot be reached"));
    assert_eq!(get("away").unwrap().as_deref(), Some("v"));
}

#[test]
fn a_transaction_whose_connection_breaks_is_over() {
    let _turn = alone();
    on("broken tx", |call| match call.head["op"].as_str() {
        Some("begin") => ok(JsonValue::Null, b""),
        _ => Answer { close: true, ..Answer::default() },
    });
    let mut transaction = DbPool::new("broken tx").begin().unwrap();
    for text in ["closed the connection", "the transaction is over"] {
        let error = transaction.execute("X", ()).unwrap_err();
        assert!(matches!(error, HandlerError::BackendUnavailable(_)), "{error}");
        assert!(error.to_string().contains(text), "{error}");
    }
    assert!(transaction.commit().is_err());
    assert_eq!(operations("broken tx"), ["begin", "execute"]);
}

/// A latch that a call waits for.
#[derive(Default)]
struct Latch(Mutex<bool>, Condvar);

impl Latch {
    fn open(&self) {
        *lock(&self.0) = true;
        self.1.notify_all();
    }

    fn wait(&self) {
        let is_open = lock(&self.0);
        let (is_open, _) = self.1.wait_timeout_while(is_open, TIMEOUT, |is_open| !*is_open).unwrap();
        assert!(*is_open, "the latch stays closed");
    }
}

#[test]
fn a_call_that_waits_leaves_others_alone() {
    let _turn = alone();
    let latch: Arc<Latch> = Arc::default();
    let waits = latch.clone();
    on("waits", move |_| {
        waits.wait();
        value()
    });
    on("runs", |_| value());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| get("waits"));
        assert_eq!(get("runs").unwrap().as_deref(), Some("v"));
        latch.open();
        assert_eq!(waiting.join().unwrap().unwrap().as_deref(), Some("v"));
    });
}
