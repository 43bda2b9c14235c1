//! Who has sent a request, as a policy has found.
use serde_json::json;

/// A caller.
#[derive(Debug, Default)]
pub struct Identity {
    pub subject: Option<String>,
    pub key_id: Option<String>,
    pub key_label: Option<String>,
    /// The caller as the handler gets it, as JSON.
    pub json: String,
}

impl Identity {
    pub fn of_key(id: String, label: String) -> Self {
        let json = json!({ "kind": "api_key", "key_id": id, "key_label": label }).to_string();
        Self { key_id: Some(id), key_label: Some(label), subject: None, json }
    }

    pub fn of_user(name: String) -> Self {
        let json = json!({ "kind": "basic", "subject": name }).to_string();
        Self { subject: Some(name), json, ..Self::default() }
    }

    /// `claims`: those of a token.
    pub fn of_token(claims: &serde_json::Value) -> Self {
        let subject = claims.get("sub").and_then(|subject| subject.as_str()).map(str::to_owned);
        let json = json!({ "kind": "jwt", "subject": subject, "claims": claims }).to_string();
        Self { subject, json, ..Self::default() }
    }
}
