//! Tokens of an issuer. That libraries of issuers make such tokens, and attacks on them, is tested in
//! `test/processes/policies/jwt.test.ts`.
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING as P256, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

use super::Fixture;
use crate::support::eventually;

const ISSUER: &str = "https://issuer.example/";
const AUDIENCE: &str = "the api";

enum Key {
    Es256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl Key {
    fn es256() -> Self {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&P256, &random).unwrap();
        Self::Es256(EcdsaKeyPair::from_pkcs8(&P256, pkcs8.as_ref(), &random).unwrap())
    }

    fn ed25519() -> Self {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Ed25519(Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap())
    }

    /// The public key as an issuer publishes it.
    fn public(&self, kid: &str) -> Value {
        match self {
            Self::Es256(key) => {
                // A byte that says that it is not compressed, and both coordinates.
                let (x, y) = key.public_key().as_ref()[1..].split_at(32);
                json!({ "kid": kid, "kty": "EC", "crv": "P-256", "x": BASE64.encode(x), "y": BASE64.encode(y) })
            }
            Self::Ed25519(key) => {
                json!({ "kid": kid, "kty": "OKP", "crv": "Ed25519", "x": BASE64.encode(key.public_key()) })
            }
        }
    }

    /// A token with these claims besides those that are always needed.
    fn sign(&self, kid: &str, claims: Value) -> String {
        let mut all = json!({ "iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": now() + 300 });
        for (name, value) in claims.as_object().unwrap() {
            all[name] = value.clone();
        }
        let alg = if matches!(self, Self::Es256(_)) { "ES256" } else { "EdDSA" };
        let part = |value: &Value| BASE64.encode(value.to_string());
        let signed = format!("{}.{}", part(&json!({ "alg": alg, "kid": kid })), part(&all));
        let signature = match self {
            Self::Es256(key) => BASE64.encode(key.sign(&SystemRandom::new(), signed.as_bytes()).unwrap()),
            Self::Ed25519(key) => BASE64.encode(key.sign(signed.as_bytes())),
        };
        format!("{signed}.{signature}")
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// The policy with these keys, and other members.
fn policy(keys: &[Value], more: Value) -> Value {
    let mut jwt = json!({ "issuer": ISSUER, "audience": [AUDIENCE], "keys": keys });
    for (name, value) in more.as_object().unwrap() {
        jwt[name] = value.clone();
    }
    json!({ "auth": { "jwt": jwt } })
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

#[test]
fn a_caller_with_a_token_is_let_in_and_the_handler_gets_its_subject_and_claims() {
    let fixture = Fixture::start();
    let keys = [("es", Key::es256()), ("ed", Key::ed25519())];
    fixture.set(policy(&keys.each_ref().map(|(kid, key)| key.public(kid)), json!({})));
    for (kid, key) in &keys {
        let token = key.sign(kid, json!({ "roles": ["a", { "b": 1 }] }));
        let echoed = fixture.echoed(&(bearer(&token) + "Subject: eve\r\nAuth: {\"subject\":\"eve\"}\r\n"));
        assert_eq!(echoed["auth"]["subject"], "ada");
        assert_eq!(echoed["auth"]["claims"]["roles"], json!(["a", { "b": 1 }]));
    }
    let none = fixture.front.get("/echo", "");
    assert_eq!((none.status, none.header("www-authenticate").as_deref()), (401, Some("Bearer")));
}

#[test]
fn a_caller_is_refused_from_the_moment_its_token_expires_also_one_that_was_let_in_with_it() {
    let fixture = Fixture::start();
    let key = Key::es256();
    fixture.set(policy(&[key.public("one")], json!({ "clock_skew_seconds": 0 })));
    let token = bearer(&key.sign("one", json!({ "exp": now() + 10 })));
    assert_eq!(fixture.status(&token), 200);
    eventually(|| "the token does not expire".to_owned(), || fixture.status(&token) == 401);
    assert_eq!(fixture.status(&bearer(&key.sign("one", json!({ "exp": now() - 1 })))), 401);
}

#[test]
fn a_caller_needs_the_claims_the_scopes_and_the_algorithm_that_the_policy_names() {
    let fixture = Fixture::start();
    let (key, other) = (Key::es256(), Key::ed25519());
    let needs = json!({
        "required_claims": { "tenant": "a", "verified": true, "email": null },
        "scopes": ["read", "write"],
        "algorithms": ["ES256"],
    });
    fixture.set(policy(&[key.public("one"), other.public("other")], needs));
    let good = json!({ "tenant": ["b", "a"], "verified": true, "email": "x", "scope": "write read" });
    let with = |name: &str, value: Value| {
        let mut claims = good.clone();
        claims[name] = value;
        claims
    };
    let status = |claims: Value| fixture.status(&bearer(&key.sign("one", claims)));
    assert_eq!(status(good.clone()), 200);
    let mut in_a_list = with("scp", json!(["read", "write"]));
    in_a_list.as_object_mut().unwrap().remove("scope");
    assert_eq!(status(in_a_list), 200);
    let lacks = fixture.front.get("/echo", &bearer(&key.sign("one", with("scope", json!("read writes")))));
    assert_eq!(lacks.status, 403);
    assert_eq!(lacks.header("www-authenticate").as_deref(), Some("Bearer error=\"insufficient_scope\""));
    assert_eq!(status(with("tenant", json!("b"))), 401);
    assert_eq!(status(with("verified", json!("true"))), 401);
    let mut without_email = good.clone();
    without_email.as_object_mut().unwrap().remove("email");
    assert_eq!(status(without_email), 401);
    assert_eq!(fixture.status(&bearer(&other.sign("other", good.clone()))), 401);
}

#[test]
fn callers_with_tokens_have_rates_by_their_subjects() {
    let fixture = Fixture::start();
    let key = Key::ed25519();
    let mut policies = policy(&[key.public("one")], json!({}));
    let rule = json!({ "id": "domain subject", "requests": 1, "window_seconds": 3600, "by": "subject" });
    policies["rate_limits"] = json!([rule]);
    fixture.set(policies);
    let mut number = 0;
    let statuses = ["ada", "ada", "bob"].map(|subject| {
        number += 1;
        fixture.status(&bearer(&key.sign("one", json!({ "sub": subject, "jti": number }))))
    });
    assert_eq!(statuses, [200, 429, 200]);
}

#[test]
fn a_request_whose_key_is_not_known_waits_until_the_supervisor_sends_the_new_keys() {
    let fixture = Fixture::start();
    let (old, new) = (Key::es256(), Key::es256());
    let at = json!({ "jwks_url": "https://issuer.example/keys" });
    fixture.set(policy(&[old.public("old")], at.clone()));
    let mut client = fixture.front.connect();
    let token = bearer(&new.sign("new", json!({})));
    client.send(format!("GET /echo HTTP/1.1\r\nHost: localhost\r\n{token}\r\n"));
    let report = fixture.front.supervisor.report("an unknown key", |report| report["type"] == "unknownKey");
    assert_eq!(report["endpointId"], "GET /echo");
    assert!(client.received.is_empty());
    fixture.set(policy(&[old.public("old"), new.public("new")], at));
    assert_eq!(client.response().status, 200);
}
