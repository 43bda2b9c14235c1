//! The types of SDK 0.1 that describe a service and a set of variables. Nothing of the gateway fills them: a handler
//! knows its services by their `pool_id` only.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// A service as handlers for SDK 0.1 describe one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceConfig {
    /// Its kind: `sqlite`, `redis` ...
    pub service_type: String,
    /// Where it is.
    pub connection: String,
    /// Whatever else is to be known of it.
    #[serde(default)]
    pub options: HashMap<String, String>,
}

/// Variables by their names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvVars {
    /// The variables.
    #[serde(default)]
    pub vars: HashMap<String, String>,
}

impl EnvVars {
    /// A variable.
    pub fn get(&self, key: &str) -> Option<&String> {
        self.vars.get(key)
    }
}
