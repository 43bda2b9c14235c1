//! Log lines, which the actor host writes with its other lines of this service.
use std::rc::Rc;

use serde::Serialize;
use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Debug,
    Info,
    Warn,
}

type Send = dyn Fn(Level, Value, &str);

/// Sends a line to the actor host. `details` is an object.
#[derive(Clone)]
pub struct Log(Rc<Send>);

impl Log {
    pub fn new(send: impl Fn(Level, Value, &str) + 'static) -> Self {
        Self(Rc::new(send))
    }

    pub fn line(&self, level: Level, details: Value, message: &str) {
        (self.0)(level, details, message);
    }
}
