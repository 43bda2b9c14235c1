//! Who calls: keys, names and passwords, signatures, tokens. One of the ways that an endpoint has suffices; credentials
//! that are wrong are refused, whatever else the request has.
use std::sync::Arc;

use super::api_key::ApiKeys;
use super::basic::Basic;
use super::evaluation::Evaluation;
use super::hmac::{Hmac, Signature};
use super::identity::Identity;
use super::jwt::{Jwt, TokenCheck};
use crate::request::{Head, Refusal};

pub enum AuthOutcome {
    Admitted(Arc<Identity>),
    /// If the signature is that of the body.
    Signed(Signature),
    Refused(Refusal),
}

#[derive(Debug)]
pub struct Auth {
    api_keys: Option<Arc<ApiKeys>>,
    basic: Option<Arc<Basic>>,
    hmac: Option<Arc<Hmac>>,
    jwt: Option<Arc<Jwt>>,
    /// `WWW-Authenticate`, for requests without credentials.
    challenges: String,
}

impl Auth {
    /// Without a way to show who one is, nobody is let in.
    pub fn new(
        api_keys: Option<Arc<ApiKeys>>,
        basic: Option<Arc<Basic>>,
        hmac: Option<Arc<Hmac>>,
        jwt: Option<Arc<Jwt>>,
    ) -> Self {
        let mut challenges = String::new();
        if let Some(Basic { realm, .. }) = basic.as_deref() {
            challenges.push_str(&format!("WWW-Authenticate: Basic realm=\"{realm}\", charset=\"UTF-8\"\r\n"));
        }
        if jwt.is_some() {
            challenges.push_str("WWW-Authenticate: Bearer\r\n");
        }
        Self { api_keys, basic, hmac, jwt, challenges }
    }

    pub fn check(&self, head: &Head<'_, '_>, evaluation: &mut Evaluation) -> AuthOutcome {
        if let Some(checked) = self.api_keys.as_ref().and_then(|keys| keys.check(head)) {
            return match checked {
                Ok(identity) => AuthOutcome::Admitted(identity),
                Err(()) => self.refused("The key is not valid, or it has expired."),
            };
        }
        if self.basic.is_some() || self.jwt.is_some() {
            if let Some(outcome) = self.check_authorization(head, evaluation) {
                return outcome;
            }
        }
        match self.hmac.as_ref().and_then(|hmac| hmac.read(head)) {
            Some(Ok(signature)) => AuthOutcome::Signed(signature),
            Some(Err(())) => self.refused("The signature is not valid."),
            None => self.refused("Credentials are needed to call this endpoint."),
        }
    }

    fn check_authorization(&self, head: &Head<'_, '_>, evaluation: &mut Evaluation) -> Option<AuthOutcome> {
        if !head.headers.iter().any(|header| header.name.eq_ignore_ascii_case("authorization")) {
            return None;
        }
        let (scheme, credentials) =
            head.single_text_header("authorization").and_then(|value| value.split_once(' ')).unwrap_or_default();
        let credentials = credentials.trim();
        if let Some(basic) = self.basic.as_ref().filter(|_| scheme.eq_ignore_ascii_case("basic")) {
            let identity = basic.check(credentials);
            return Some(
                identity.map_or_else(|| self.refused("The name or the password is not right."), AuthOutcome::Admitted),
            );
        }
        if let Some(jwt) = self.jwt.as_ref().filter(|_| scheme.eq_ignore_ascii_case("bearer")) {
            return Some(match jwt.check(credentials, evaluation) {
                TokenCheck::Valid(identity) => AuthOutcome::Admitted(identity),
                TokenCheck::Invalid(reason) => AuthOutcome::Refused(bearer(401, "invalid_token", reason)),
                TokenCheck::Insufficient => AuthOutcome::Refused(bearer(
                    403,
                    "insufficient_scope",
                    "The token does not have the scopes needed.",
                )),
            });
        }
        Some(self.refused("The credentials are not of a kind that this endpoint takes."))
    }

    fn refused(&self, message: &'static str) -> AuthOutcome {
        AuthOutcome::Refused(Refusal { lines: self.challenges.clone().into(), ..Refusal::policy("auth", 401, message) })
    }

    pub fn refuse_body(&self, signature: &Signature, body: &[u8]) -> Option<Refusal> {
        let is_right = self.hmac.as_ref().is_some_and(|hmac| hmac.is_right(signature, body));
        (!is_right).then(|| Refusal::policy("auth", 401, "The signature is not that of the body."))
    }
}

fn bearer(status: u16, error: &str, message: &'static str) -> Refusal {
    let lines = format!("WWW-Authenticate: Bearer error=\"{error}\"\r\n").into();
    Refusal { lines, ..Refusal::policy("auth", status, message) }
}
