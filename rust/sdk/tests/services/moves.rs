//! Calls that another process answers than the actor host.

use super::server::{self, framed, lock, ok, Answer, SERVER};
use rust_edge_gateway_sdk::prelude::*;
use rust_edge_gateway_sdk::wire::buffer::Buffer;
use serde_json::{json, Value};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const FOUND: &str = r#"{"ok":true,"result":{"found":true}}"#;
/// The service is not answered for there any more.
const ASK_AGAIN: &str = r#"{"ok":false,"kind":"moved"}"#;

fn name(purpose: &str) -> String {
    format!("edge-sdk-{purpose}-{}", std::process::id())
}

/// A process of a service: it listens beside the actor host, under this name and with a token of its own.
struct Elsewhere {
    path: PathBuf,
    calls: Arc<Mutex<Vec<Value>>>,
    connections: Arc<Mutex<Vec<UnixStream>>>,
    open: Arc<AtomicUsize>,
    answer: Arc<Mutex<&'static str>>,
}

impl Elsewhere {
    /// Every call is answered with this head.
    fn start(name: &str, token: &'static str, answer: &'static str) -> Elsewhere {
        let path = SERVER.socket.with_file_name(name);
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        let (calls, connections, open) = (Arc::default(), Arc::default(), Arc::<AtomicUsize>::default());
        let made = Elsewhere {
            path,
            calls: Arc::clone(&calls),
            connections: Arc::clone(&connections),
            open: Arc::clone(&open),
            answer: Arc::new(Mutex::new(answer)),
        };
        let answer = Arc::clone(&made.answer);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, calls, open) = (stream.unwrap(), Arc::clone(&calls), Arc::clone(&open));
                let answer = Arc::clone(&answer);
                lock(&connections).push(stream.try_clone().unwrap());
                open.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || {
                    answer_all(&stream, token, &calls, &answer);
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        made
    }

    /// Nobody listens there any more, and all connections are closed.
    fn end(&self) {
        std::fs::remove_file(&self.path).unwrap();
        for connection in lock(&self.connections).drain(..) {
            connection.shutdown(Shutdown::Both).unwrap();
        }
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        // It may have ended before.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn answer_all(mut stream: &UnixStream, token: &str, calls: &Mutex<Vec<Value>>, answer: &Mutex<&'static str>) {
    let mut received = Buffer::new();
    let mut is_known = false;
    while let Ok(n @ 1..) = stream.read(received.room()) {
        received.filled(n);
        while let Some(frame) = received.next_frame().unwrap() {
            let head: Value = serde_json::from_slice(frame.head).unwrap();
            if !is_known {
                assert_eq!(head, json!({ "token": token }));
                is_known = true;
                continue;
            }
            lock(calls).push(head);
            let _ = stream.write_all(&framed(frame.number, *lock(answer), &[]));
        }
    }
}

/// The call is to be made elsewhere.
fn moved(socket: &str, token: &str) -> Answer {
    // The service writes the members in this order.
    let head = format!(r#"{{"ok":false,"kind":"moved","to":{{"socket":"{socket}","token":"{token}"}}}}"#);
    Answer { raw_head: Some(head), ..Answer::default() }
}

#[test]
fn calls_go_to_the_process_of_the_service_and_stay_there() {
    let name = name("stays");
    let process = Elsewhere::start(&name, "its token", FOUND);
    server::on("stays", move |_| moved(&name, "its token"));
    for _ in 0..3 {
        assert_eq!(RedisPool::new("stays").get("a").unwrap().as_deref(), Some(""));
    }
    assert_eq!(server::calls("stays").len(), 1, "the actor host is asked once");
    let calls = lock(&process.calls);
    assert_eq!(calls.len(), 3);
    assert_eq!(calls[1], json!({"pool": "stays", "op": "get", "args": {"key": "a"}}));
    // The time that has been spent at the actor host is no part of its deadline any more.
    assert!(calls[0]["deadline_ms"].as_u64().is_some_and(|left| (1..60_000).contains(&left)), "{}", calls[0]);
}

#[test]
fn calls_at_once_share_the_address_and_close_their_connections_when_it_changes() {
    const CALLS: usize = 8;
    let (first, second) = (name("shared"), name("next"));
    let process = Elsewhere::start(&first, "one", FOUND);
    server::on("shared", move |_| moved(&first, "one"));
    let at_once = || {
        thread::scope(|scope| {
            for _ in 0..CALLS {
                scope.spawn(|| RedisPool::new("shared").get("a").unwrap());
            }
        });
    };
    at_once();
    let open = process.open.load(Ordering::SeqCst);
    assert!((1..=CALLS).contains(&open), "{open} connections");
    at_once();
    assert_eq!(process.open.load(Ordering::SeqCst), lock(&process.connections).len(), "none was closed");
    assert!(lock(&process.connections).len() <= CALLS);

    // It goes on listening, but does not answer for the service any more.
    *lock(&process.answer) = ASK_AGAIN;
    let next = Elsewhere::start(&second, "two", FOUND);
    server::on("shared", move |_| moved(&second, "two"));
    at_once();
    assert_eq!(lock(&next.calls).len(), CALLS);
    let deadline = Instant::now() + Duration::from_secs(10);
    while process.open.load(Ordering::SeqCst) > 0 {
        assert!(Instant::now() < deadline, "connections with the former process are open");
        thread::yield_now();
    }
}

#[test]
fn calls_go_to_the_actor_host_again_when_the_process_has_ended() {
    let (first, second) = (name("first"), name("second"));
    let process = Elsewhere::start(&first, "one", FOUND);
    server::on("ends", move |_| moved(&first, "one"));
    RedisPool::new("ends").get("a").unwrap();
    process.end();
    let next = Elsewhere::start(&second, "two", FOUND);
    server::on("ends", move |_| moved(&second, "two"));
    RedisPool::new("ends").get("a").unwrap();
    RedisPool::new("ends").get("a").unwrap();
    assert_eq!(server::calls("ends").len(), 2);
    assert_eq!(lock(&next.calls).len(), 2);
}

#[test]
fn calls_go_to_the_actor_host_again_when_the_process_does_not_answer_for_the_service_any_more() {
    let name = name("former");
    let process = Elsewhere::start(&name, "one", ASK_AGAIN);
    let is_first = AtomicBool::new(true);
    server::on("former", move |_| match is_first.swap(false, Ordering::SeqCst) {
        true => moved(&name, "one"),
        false => ok(json!({"found": false}), ""),
    });
    assert_eq!(RedisPool::new("former").get("a").unwrap(), None);
    assert_eq!(lock(&process.calls).len(), 1);
}

#[test]
fn calls_that_are_sent_on_for_ever_fail() {
    let name = name("circle");
    let _process = Elsewhere::start(&name, "one", ASK_AGAIN);
    server::on("circle", move |_| moved(&name, "one"));
    let error = RedisPool::new("circle").get("a").unwrap_err();
    assert!(matches!(error, HandlerError::BackendUnavailable(_)), "{error}");
}
