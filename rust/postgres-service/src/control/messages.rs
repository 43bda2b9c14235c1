//! What an actor host and this process tell each other; `src/actors/service-process/messages.ts` is the other end.
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::log::Level;
use crate::pg::Config;
use crate::serve::{Figures, ServeRequest};

/// Texts of backends may be as long as an answer.
const MAX_TEXT: usize = 4_096;

/// To the process.
#[derive(Deserialize)]
pub struct ToService {
    pub number: u64,
    pub request: Request,
}

/// What the process is asked to do; each is answered.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Request {
    Serve(Box<Work<ServeRequest>>),
    Test(Box<Work<TestRequest>>),
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
pub struct Work<R> {
    pub config: Config,
    /// The size of one answer of the backend.
    pub answer_bytes: usize,
    /// Whether lines of the level `debug` are logged.
    pub logs_debug: bool,
    #[serde(flatten)]
    pub rest: R,
}

/// A connection that is opened, tested and closed. Answered with `tested`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TestRequest {
    pub timeout_ms: u64,
}

/// From the process.
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
    pub tested: Option<Tested>,
}

/// The outcome of a test.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Tested {
    Connected { connected: bool, latency_ms: u64, message: String },
    Failed { connected: bool, error: String },
}

impl Tested {
    pub fn of(result: Result<crate::pg::Tested, crate::error::CallError>) -> Self {
        match result {
            Ok(crate::pg::Tested { message, latency_ms }) => {
                Self::Connected { connected: true, latency_ms, message: cut(format!("Connected to {message}")) }
            }
            Err(error) => Self::Failed { connected: false, error: cut(error.message) },
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
            "config":{"host":"h","port":5432,"database":"d","username":"u","ssl_mode":"verify-ca","pool_size":10},
            "bindings":[{"endpoint_id":"e","service_id":"a","pool_id":"db"}],"answerBytes":1,"logsDebug":false,
            "handlerSocket":"/s","objectSocket":"/o","key":"k","tokenFolder":"/t","queueLimit":2,"defaultCallMs":3,"longestCallMs":4,
            "memoryBytes":5.5,"handlerThreads":6}}"#;
        let ToService { number, request: Request::Serve(work) } = serde_json::from_str(text).unwrap() else {
            panic!("not a request to serve");
        };
        assert_eq!((number, work.config.pool_size, work.rest.handler_threads), (1, 10, 6));
        let drain = serde_json::from_str(r#"{"number":2,"request":{"type":"drain"}}"#);
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
