//! The other end of the protocol, as a thread per connection: it sends the answers that tests set, and records calls.

use rust_edge_gateway_sdk::wire::buffer::Buffer;
use rust_edge_gateway_sdk::wire::frame::{header, Kind};
use serde_json::{json, Value};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;

/// The token in the environment of this process, which connections begin with.
pub const TOKEN: &str = "token of \"this\" test";

/// A call that came.
#[derive(Debug, Clone)]
pub struct Call {
    /// Connections are numbered as they are accepted.
    pub connection: usize,
    pub head: Value,
    pub payload: Vec<u8>,
}

/// What a call is answered with; by default, with nothing.
#[derive(Default)]
pub struct Answer {
    /// A head and a body.
    pub frame: Option<(Value, Vec<u8>)>,
    /// The text of a head, without a body.
    pub raw_head: Option<String>,
    /// Bytes after it.
    pub raw: Vec<u8>,
    /// Whether the connection is closed then.
    pub close: bool,
    /// Whether the connection stays open then, but nothing more is read from it.
    pub deaf: bool,
}

/// Success with a result and a payload.
pub fn ok(result: Value, payload: impl AsRef<[u8]>) -> Answer {
    Answer { frame: Some((json!({"ok": true, "result": result}), payload.as_ref().to_vec())), ..Answer::default() }
}

/// Failure.
pub fn failure(kind: &str, message: &str) -> Answer {
    let head = json!({"ok": false, "kind": kind, "message": message});
    Answer { frame: Some((head, Vec::new())), ..Answer::default() }
}

extern "C" {
    fn atexit(callback: extern "C" fn()) -> std::os::raw::c_int;
}

extern "C" fn remove_socket() {
    let _ = std::fs::remove_file(&SERVER.socket);
}

type Script = Arc<dyn Fn(&Call) -> Answer + Send + Sync>;

pub struct Server {
    pub socket: PathBuf,
    scripts: Mutex<HashMap<String, Script>>,
    calls: Mutex<Vec<Call>>,
    pub accepted: AtomicUsize,
    pub closed: AtomicUsize,
    /// Frames in the first read of the last connection.
    pub first_read: AtomicUsize,
    /// Connections kept open.
    deaf: Mutex<Vec<UnixStream>>,
    /// Says what the token is answered with; nothing by default.
    pub greeting: Mutex<Option<Value>>,
}

/// Started at the first use, which also sets its address in the environment of this process.
pub static SERVER: LazyLock<Server> = LazyLock::new(|| {
    let socket = std::env::temp_dir().join(format!("edge-sdk-services-{}", std::process::id()));
    let _ = std::fs::remove_file(&socket);
    let listener = UnixListener::bind(&socket).unwrap();
    // SAFETY: registers a function that touches the socket's file only.
    unsafe { atexit(remove_socket) };
    std::env::set_var("EDGE_SERVICES_SOCKET", &socket);
    std::env::set_var("EDGE_SERVICES_TOKEN", TOKEN);
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            SERVER.accepted.fetch_add(1, Ordering::SeqCst);
            thread::spawn(move || {
                serve(number, &stream.unwrap());
                SERVER.closed.fetch_add(1, Ordering::SeqCst);
            });
        }
    });
    Server {
        socket,
        scripts: Mutex::default(),
        calls: Mutex::default(),
        accepted: AtomicUsize::new(0),
        closed: AtomicUsize::new(0),
        first_read: AtomicUsize::new(0),
        deaf: Mutex::default(),
        greeting: Mutex::default(),
    }
});

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says how calls of a pool are answered.
pub fn on(pool: &str, script: impl Fn(&Call) -> Answer + Send + Sync + 'static) {
    lock(&SERVER.scripts).insert(pool.to_owned(), Arc::new(script));
}

/// The calls of a pool so far.
pub fn calls(pool: &str) -> Vec<Call> {
    lock(&SERVER.calls).iter().filter(|call| call.head["pool"] == pool).cloned().collect()
}

/// The operations of a pool's calls so far.
pub fn operations(pool: &str) -> Vec<String> {
    calls(pool).iter().map(|call| call.head["op"].as_str().unwrap().to_owned()).collect()
}

fn serve(connection: usize, mut stream: &UnixStream) {
    let mut received = Buffer::new();
    let mut is_known = false;
    let mut is_first_read = true;
    while let Ok(n @ 1..) = stream.read(received.room()) {
        received.filled(n);
        let mut frames = 0;
        while let Some(frame) = received.next_frame().unwrap() {
            frames += 1;
            assert_eq!(frame.kind, Kind::Request);
            let head: Value = serde_json::from_slice(frame.head).unwrap();
            if !is_known {
                assert_eq!(head, json!({"token": TOKEN}));
                is_known = true;
                if let Some(greeting) = &*lock(&SERVER.greeting) {
                    stream.write_all(&encoded(frame.number, greeting, &[])).unwrap();
                }
                continue;
            }
            let number = frame.number;
            let call = Call { connection, head, payload: frame.body.to_vec() };
            lock(&SERVER.calls).push(call.clone());
            let script = lock(&SERVER.scripts).get(call.head["pool"].as_str().unwrap()).cloned();
            let Answer { frame, raw_head, raw, close, deaf } = script.expect("a script for the pool")(&call);
            let mut bytes = frame.map(|(head, body)| encoded(number, &head, &body)).unwrap_or_default();
            bytes.extend(raw_head.map(|head| framed(number, &head, &[])).unwrap_or_default());
            bytes.extend(raw);
            if deaf {
                stream.shutdown(Shutdown::Read).unwrap();
                lock(&SERVER.deaf).push(stream.try_clone().unwrap());
            }
            if stream.write_all(&bytes).is_err() || close || deaf {
                return;
            }
        }
        if std::mem::take(&mut is_first_read) {
            SERVER.first_read.store(frames, Ordering::SeqCst);
        }
    }
}

/// An answer as bytes.
pub fn encoded(number: u32, head: &Value, body: &[u8]) -> Vec<u8> {
    framed(number, &head.to_string(), body)
}

/// An answer with the text of its head, as bytes.
pub fn framed(number: u32, head: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = header(Kind::Response, number, head.len(), body.len()).to_vec();
    bytes.extend_from_slice(head.as_bytes());
    bytes.extend_from_slice(body);
    bytes
}
