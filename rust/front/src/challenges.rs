//! Answers to ACME servers that ask whether a host leads here (HTTP-01, RFC 8555, section 8.3).
use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use serde::Deserialize;

/// Where they are asked for.
pub const PREFIX: &str = "/.well-known/acme-challenge/";

/// What an ACME server asks for below `/.well-known/acme-challenge/` of a host, and what it expects.
#[derive(Deserialize)]
pub struct Challenge {
    pub host: Box<str>,
    pub token: Box<str>,
    pub answer: Box<str>,
}

/// The challenges that are pending, for all threads. Only requests for such paths look at them.
#[derive(Default)]
pub struct Challenges(RwLock<HashMap<Box<str>, Challenge>>);

impl Challenges {
    /// Replaces all.
    pub fn set(&self, challenges: Vec<Challenge>) {
        let by_token = challenges.into_iter().map(|challenge| (challenge.token.clone(), challenge)).collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = by_token;
    }

    /// The answer to a request; none unless it asks about a pending challenge of this host, which is in lower case.
    pub fn answer(&self, method: &str, host: &str, path: &str) -> Option<String> {
        let token = path.strip_prefix(PREFIX)?;
        if method != "GET" && method != "HEAD" {
            return None;
        }
        let challenges = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let challenge = challenges.get(token)?;
        (*challenge.host == *host).then(|| challenge.answer.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pending_challenges_of_a_host_are_answered() {
        let challenges = Challenges::default();
        let path = "/.well-known/acme-challenge/token";
        assert_eq!(challenges.answer("GET", "shop.example", path), None);
        let challenge = |token: &str| Challenge {
            host: "shop.example".into(),
            token: token.into(),
            answer: format!("{token}.thumbprint").into(),
        };
        challenges.set(vec![challenge("token")]);
        for method in ["GET", "HEAD"] {
            assert_eq!(challenges.answer(method, "shop.example", path).as_deref(), Some("token.thumbprint"));
        }
        for (method, host, path) in [
            ("POST", "shop.example", path),
            ("GET", "other.example", path),
            ("GET", "shop.example", "/.well-known/acme-challenge/"),
            ("GET", "shop.example", "/.well-known/acme-challenge/token/"),
            ("GET", "shop.example", "/other/token"),
        ] {
            assert_eq!(challenges.answer(method, host, path), None, "{method} {host} {path}");
        }
        challenges.set(vec![challenge("next")]);
        assert_eq!(challenges.answer("GET", "shop.example", path), None);
    }
}
