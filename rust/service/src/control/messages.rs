//! What an actor host and this process tell each other. `src/contracts/service-process.ts` is made from these types,
//! which `src/actors/service-process/messages.ts` extends.
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::backend::{Limits, RoundTrip};
use crate::error::CallError;
use crate::log::Level;
use crate::memory::MemoryBudget;
use crate::serve::{Figures, ServeRequest};

/// Texts of backends may be as long as an answer.
const MAX_TEXT: usize = 4_096;

/// A message to the process.
#[derive(Deserialize)]
pub struct ToService<C> {
    pub number: u64,
    pub request: Request<C>,
}

/// What the process is asked to do; each is answered.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Request<C> {
    Serve(Box<Work<C, ServeRequest>>),
    Test(Box<Work<C, TestRequest>>),
    /// Replaces the bindings.
    Bind {
        bindings: Vec<crate::serve::Binding>,
    },
    /// Is it alive?
    Ping,
    /// Answered with `figures`.
    Measure,
    /// New calls belong elsewhere. Answered with `figures` when those in progress have ended, or after the limit.
    /// Without a limit, the process lives on until handlers have left it.
    Drain {
        #[serde(rename = "limitMs")]
        limit_ms: Option<f64>,
    },
}

/// Common to both kinds of work of such a process.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Work<C, R> {
    pub config: C,
    /// The size of one answer of the backend.
    pub answer_bytes: usize,
    /// The limit of memory of this process, MiB.
    pub memory_mb: usize,
    /// The folders in which files of sqlite services may be.
    pub sqlite_folders: Vec<PathBuf>,
    /// Whether lines of the level `debug` are logged.
    pub logs_debug: bool,
    #[serde(flatten)]
    pub rest: R,
}

impl<C, R> Work<C, R> {
    /// Its limits, with a budget for what is held for clients.
    pub fn limits(&self, memory_bytes: usize) -> Limits {
        Limits {
            answer_bytes: self.answer_bytes,
            memory: Arc::new(MemoryBudget::new(memory_bytes)),
            memory_mb: self.memory_mb,
            sqlite_folders: self.sqlite_folders.clone(),
        }
    }
}

/// A connection that is opened, tested and closed. Answered with `tested`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TestRequest {
    pub timeout_ms: u64,
}

/// A message from the process.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum FromService<'a> {
    Answer {
        number: u64,
        answer: Answer,
    },
    State {
        state: Value,
    },
    Figures {
        figures: &'a Figures,
    },
    /// An error that nothing has caught; the process ends.
    Failed {
        reason: String,
    },
    Log {
        level: Level,
        details: Value,
        message: &'a str,
    },
}

#[derive(Default, Serialize)]
pub struct Answer {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figures: Option<Figures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tested: Option<TestResult>,
}

/// The outcome of a test.
#[derive(Serialize)]
#[serde(untagged)]
pub enum TestResult {
    Connected { connected: True, latency_ms: u64, message: String },
    Failed { connected: False, error: String },
}

/// `true`. Whoever reads an outcome finds out by it which one it is.
pub struct True;

/// `false`.
pub struct False;

impl Serialize for True {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(true)
    }
}

impl Serialize for False {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(false)
    }
}

impl TestResult {
    pub fn of(result: Result<RoundTrip, CallError>) -> Self {
        match result {
            Ok(RoundTrip { message, latency_ms }) => {
                Self::Connected { connected: True, latency_ms, message: cut(format!("Connected to {message}")) }
            }
            Err(error) => Self::Failed { connected: False, error: cut(error.message) },
        }
    }
}

/// The value without long texts.
pub fn shortened(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(cut(text)),
        Value::Array(items) => Value::Array(items.into_iter().map(shortened).collect()),
        Value::Object(members) => {
            Value::Object(members.into_iter().map(|(name, member)| (name, shortened(member))).collect())
        }
        other => other,
    }
}

/// The text, without what is too much of it.
pub fn cut(text: String) -> String {
    crate::text::cut(text, MAX_TEXT)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requests_are_those_of_the_actor_host() {
        let text = r#"{"number":1,"request":{"type":"serve","service":{"id":"a","type":"postgres"},
            "config":{"host":"h","pool_size":10},
            "bindings":[{"endpoint_id":"e","service_id":"a","pool_id":"db"}],"answerBytes":1,"memoryMb":512,"sqliteFolders":["/d"],"logsDebug":false,
            "handlerSocket":"/s","objectSocket":"/o","key":"k","tokenFolder":"/t","queueLimit":2,"defaultCallMs":3,"longestCallMs":4,
            "memoryBytes":5.5,"handlerThreads":6}}"#;
        let ToService::<Value> { number, request: Request::Serve(work) } = serde_json::from_str(text).unwrap() else {
            panic!("not a request to serve");
        };
        assert_eq!((number, &work.config["pool_size"], work.rest.handler_threads), (1, &json!(10), 6));
        assert_eq!((work.memory_mb, work.sqlite_folders), (512, vec!["/d".into()]));
        let drain = serde_json::from_str::<ToService<Value>>(r#"{"number":2,"request":{"type":"drain"}}"#);
        assert!(matches!(drain.unwrap(), ToService { request: Request::Drain { limit_ms: None }, .. }));
    }

    #[test]
    fn long_texts_are_cut() {
        let long = "ä".repeat(MAX_TEXT + 1);
        let expected = format!("{} ...", "ä".repeat(MAX_TEXT));
        assert_eq!(shortened(json!({ "a": [long], "b": 1 })), json!({ "a": [expected], "b": 1 }));
        let pairs = format!("x{}", "😀".repeat(MAX_TEXT / 2));
        assert_eq!(cut(pairs), format!("x{} ...", "😀".repeat(MAX_TEXT / 2 - 1)));
    }
}
