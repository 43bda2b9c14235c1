//! An endpoint, as the supervisor describes it to the front.
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Value, json};

use super::Handler;

/// Its state, but for what serves it.
pub struct Endpoint(Value);

pub fn get(route: &str) -> Endpoint {
    Endpoint::new("GET", route)
}

pub fn post(route: &str) -> Endpoint {
    Endpoint::new("POST", route)
}

impl Endpoint {
    pub fn new(method: &str, route: &str) -> Self {
        Self(json!({
            "id": format!("{method} {route}"),
            "domain": "*",
            "method": method,
            "route": route,
            "routed": true,
            "limits": { "timeoutMs": 30_000, "idleTimeoutMs": 30_000, "concurrentRequests": 100 },
        }))
    }

    /// By this host only.
    pub fn of(mut self, domain: &str) -> Self {
        self.0["domain"] = domain.into();
        self
    }

    /// With a limit other than the default: `timeoutMs`, `idleTimeoutMs` or `concurrentRequests`.
    pub fn limit(mut self, name: &str, value: u32) -> Self {
        self.0["limits"][name] = value.into();
        self
    }

    /// With policies, as `src/gateway/policy-compiler.ts` writes them, but for their digest.
    pub fn policies(mut self, mut policies: Value) -> Self {
        let mut hasher = DefaultHasher::new();
        policies.to_string().hash(&mut hasher);
        policies["digest"] = format!("{:x}", hasher.finish()).into();
        self.0["policies"] = policies;
        self
    }

    pub fn served_by(self, Handler { instance, socket, takes }: &Handler) -> Value {
        let target = json!({
            "weight": 100,
            "version": 1,
            "instance": { "id": instance, "socket": socket, "takes": takes },
        });
        self.serving(json!({ "kind": "running", "targets": [target] }))
    }

    /// The whole state.
    pub fn serving(mut self, serving: Value) -> Value {
        self.0["serving"] = serving;
        self.0
    }
}
