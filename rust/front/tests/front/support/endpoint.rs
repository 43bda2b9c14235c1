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

/// The member of a state that has texts of its policies.
pub const TEXTS: &str = "texts";

fn digest(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{:x}", hasher.finish())
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

    /// It is reached by this host only.
    pub fn of(mut self, domain: &str) -> Self {
        self.0["domain"] = domain.into();
        self
    }

    /// Sets a limit other than the default: `timeoutMs`, `idleTimeoutMs` or `concurrentRequests`.
    pub fn limit(mut self, name: &str, value: u32) -> Self {
        self.0["limits"][name] = value.into();
        self
    }

    /// Sets policies, as `src/gateway/policies/policy-compiler.ts` makes them. Their texts go with the state, until
    /// `apply` puts them into the message.
    pub fn policies(mut self, policies: Value) -> Self {
        let (mut named, mut parts, mut texts) = (json!({}), json!({}), json!({}));
        let mut add = |name: &str, text: String| {
            let digest = digest(&text);
            texts[&digest] = text.into();
            parts[name] = digest.into();
        };
        for (name, policy) in policies.as_object().unwrap() {
            match &**name {
                "body_limit" | "broken" => named[name] = policy.clone(),
                "auth" => policy.as_object().unwrap().iter().for_each(|(name, way)| add(name, way.to_string())),
                // It is a text already.
                "validate" => add(name, policy.as_str().unwrap().into()),
                _ => add(name, policy.to_string()),
            }
        }
        named["parts"] = parts;
        self = self.named_policies(named);
        self.0[TEXTS] = texts;
        self
    }

    /// Sets policies whose texts come separately.
    pub fn named_policies(mut self, mut policies: Value) -> Self {
        policies["digest"] = digest(&policies.to_string()).into();
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
