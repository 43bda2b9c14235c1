//! Handlers in threads of the test: they serve their sockets as those do that are made with the SDK, or as a test says.
use std::collections::BTreeMap;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use edge_wire::Kind;
use serde_json::{Value, json};

use super::Frames;
use super::frames::OwnedFrame;

pub struct Handler {
    pub instance: u64,
    pub socket: PathBuf,
    pub takes: &'static str,
}

impl Handler {
    pub fn new(folder: &Path, takes: &'static str, script: impl Fn(&mut Frames) + Send + Sync + 'static) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let instance = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        let socket = folder.join(format!("{instance}.sock"));
        let listener = UnixListener::bind(&socket).unwrap();
        let script = Arc::new(script);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (script, mut frames) = (script.clone(), Frames::new(stream.unwrap()));
                thread::spawn(move || script(&mut frames));
            }
        });
        Self { instance, socket, takes }
    }
}

/// A request as a handler gets it.
#[derive(Debug)]
pub struct Request {
    /// See `docs/SERVICE-PROTOCOL.md`.
    pub head: Value,
    pub body: Vec<u8>,
    /// No more of the body comes.
    pub is_whole: bool,
}

impl Request {
    pub fn method(&self) -> &str {
        self.head["method"].as_str().unwrap()
    }

    /// Path and query.
    pub fn target(&self) -> &str {
        self.head["target"].as_str().unwrap()
    }

    /// The value of a parameter of the query, as it was sent.
    pub fn query(&self, name: &str) -> Option<&str> {
        let (_, query) = self.target().split_once('?')?;
        query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    }

    /// The headers by their names in lower case. Several of a name are joined.
    pub fn headers(&self) -> BTreeMap<String, String> {
        let mut headers = BTreeMap::<String, String>::new();
        for pair in self.head["headers"].as_array().unwrap().chunks_exact(2) {
            let (name, value) = (pair[0].as_str().unwrap().to_lowercase(), pair[1].as_str().unwrap());
            let joined = headers.get(&name).map_or(value.to_owned(), |before| format!("{before}, {value}"));
            headers.insert(name, joined);
        }
        headers
    }
}

/// The answer of a handler.
pub struct Answer {
    head: Value,
    body: Vec<u8>,
}

impl Answer {
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { head: json!({ "status": status, "headers": [] }), body: body.into() }
    }

    pub fn json(body: &Value) -> Self {
        Self::new(200, body.to_string()).header("Content-Type", "application/json")
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.head["headers"].as_array_mut().unwrap().extend([name.into(), value.into()]);
        self
    }
}

/// Answers with the request as the handler sees it: the head that it gets, its headers by name, and its body.
pub fn anything(request: &Request) -> Answer {
    let mut echo = request.head.clone();
    echo["headers"] = json!(request.headers());
    echo["body"] = String::from_utf8_lossy(&request.body).into();
    Answer::json(&echo)
}

impl Frames {
    /// Answers all requests that come, each in a thread of its own: a slow one delays no other.
    pub fn answer_all(&mut self, answer: &(impl Fn(&Request) -> Answer + Sync)) {
        thread::scope(|scope| {
            while let Some(OwnedFrame { number, head, body, .. }) = self.receive_of(Kind::Request) {
                let mut writer = self.writer();
                scope.spawn(move || {
                    let Answer { head, body } =
                        answer(&Request { head: serde_json::from_slice(&head).unwrap(), body, is_whole: true });
                    writer.respond(number, &head, &body);
                });
            }
        });
    }
}

/// Holds handlers back until the test opens it.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    pub fn is_open(&self) -> bool {
        *self.0.0.lock().unwrap()
    }

    pub fn wait(&self) {
        drop(self.0.1.wait_while(self.0.0.lock().unwrap(), |is_open| !*is_open).unwrap());
    }
}
