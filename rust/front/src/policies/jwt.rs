//! Tokens that an issuer has signed (RFC 7519, and the advice of RFC 8725). What the head of a token says decides
//! nothing but which of the known keys is tried: keys, addresses and algorithms that it brings are not looked at.
use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512,
    RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use serde_json::Value;

use super::clock::unix_seconds;
use super::compiled::{CompiledJwt, CompiledPublicKey};
use super::evaluation::Evaluation;
use super::identity::Identity;
use super::key_wait::KeyWaits;
use super::known_tokens::{KnownToken, KnownTokens};

const MAX_TOKEN_BYTES: usize = 8 * 1024;
const DEFAULT_SKEW_SECONDS: u64 = 30;
/// Keys without an id that are tried.
const MAX_TRIED: usize = 4;

pub enum TokenCheck {
    Valid(Arc<Identity>),
    Invalid(&'static str),
    /// It is valid, but lacks a scope.
    Insufficient,
}

#[derive(Debug)]
pub struct Jwt {
    issuer: String,
    audience: Vec<String>,
    keys: Vec<VerificationKey>,
    /// The algorithms that are accepted. None: all that are known here.
    algorithms: Option<Vec<String>>,
    skew: u64,
    required_claims: BTreeMap<String, Value>,
    scopes: Vec<String>,
    /// The requests that wait for keys, where those are fetched.
    waits: Option<Arc<KeyWaits>>,
    known: Arc<KnownTokens>,
}

#[derive(Debug)]
struct VerificationKey {
    kid: Option<String>,
    alg: Option<String>,
    public: PublicKey,
}

#[derive(Debug)]
enum PublicKey {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

impl VerificationKey {
    fn new(compiled: CompiledPublicKey) -> Option<Self> {
        let CompiledPublicKey { kid, kty, alg, n, e, crv, x, y } = compiled;
        let public = match (&*kty, crv.as_deref()) {
            ("RSA", _) => PublicKey::Rsa { n: unsigned(&n?)?, e: unsigned(&e?)? },
            ("EC", Some("P-256")) => PublicKey::P256(point(&x?, &y?, 32)?),
            ("EC", Some("P-384")) => PublicKey::P384(point(&x?, &y?, 48)?),
            ("OKP", Some("Ed25519")) => PublicKey::Ed25519(URL_SAFE_NO_PAD.decode(x?).ok()?),
            _ => return None,
        };
        Some(Self { kid, alg, public })
    }

    /// Whether tokens of this algorithm can be signed with it. Others cannot be confused with them: a public key is
    /// never a secret of HMAC here.
    fn fits(&self, alg: &str) -> bool {
        let fits = match self.public {
            PublicKey::Rsa { .. } => rsa(alg).is_some(),
            PublicKey::P256(_) => alg == "ES256",
            PublicKey::P384(_) => alg == "ES384",
            PublicKey::Ed25519(_) => alg == "EdDSA" || alg == "Ed25519",
        };
        fits && self.alg.as_deref().is_none_or(|own| own == alg)
    }

    fn verifies(&self, alg: &str, signed: &[u8], signature: &[u8]) -> bool {
        let with = |algorithm: &'static dyn VerificationAlgorithm, key: &Vec<u8>| {
            UnparsedPublicKey::new(algorithm, key).verify(signed, signature).is_ok()
        };
        match &self.public {
            PublicKey::Rsa { n, e } => {
                rsa(alg).is_some_and(|how| RsaPublicKeyComponents { n, e }.verify(how, signed, signature).is_ok())
            }
            PublicKey::P256(key) => with(&ECDSA_P256_SHA256_FIXED, key),
            PublicKey::P384(key) => with(&ECDSA_P384_SHA384_FIXED, key),
            PublicKey::Ed25519(key) => with(&ED25519, key),
        }
    }
}

fn rsa(alg: &str) -> Option<&'static RsaParameters> {
    Some(match alg {
        "RS256" => &RSA_PKCS1_2048_8192_SHA256,
        "RS384" => &RSA_PKCS1_2048_8192_SHA384,
        "RS512" => &RSA_PKCS1_2048_8192_SHA512,
        "PS256" => &RSA_PSS_2048_8192_SHA256,
        "PS384" => &RSA_PSS_2048_8192_SHA384,
        "PS512" => &RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}

fn unsigned(text: &str) -> Option<Vec<u8>> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let first = bytes.iter().position(|&byte| byte != 0)?;
    Some(bytes[first..].to_vec())
}

fn point(x: &str, y: &str, length: usize) -> Option<Vec<u8>> {
    let mut point = vec![4];
    for text in [x, y] {
        let number = URL_SAFE_NO_PAD.decode(text).ok()?;
        point.resize(point.len() + length.checked_sub(number.len())?, 0);
        point.extend_from_slice(&number);
    }
    Some(point)
}

impl Jwt {
    pub fn new(compiled: CompiledJwt, domain: &Arc<str>) -> Self {
        Self {
            issuer: compiled.issuer,
            audience: compiled.audience,
            keys: compiled.keys.into_iter().filter_map(VerificationKey::new).collect(),
            algorithms: compiled.algorithms,
            skew: compiled.clock_skew_seconds.unwrap_or(DEFAULT_SKEW_SECONDS),
            required_claims: compiled.required_claims,
            scopes: compiled.scopes,
            waits: compiled.jwks_url.map(|_| Arc::default()),
            known: Arc::new(KnownTokens::new(domain.clone())),
        }
    }

    pub fn check(&self, token: &str, evaluation: &mut Evaluation) -> TokenCheck {
        if token.len() > MAX_TOKEN_BYTES {
            return TokenCheck::Invalid("The token is too long.");
        }
        let mut hash = [0; 32];
        hash.copy_from_slice(digest::digest(&digest::SHA256, token.as_bytes()).as_ref());
        if let Some(KnownToken { identity, expires_at }) = self.known.get(&hash) {
            return match unix_seconds() < expires_at {
                true => TokenCheck::Valid(identity),
                false => TokenCheck::Invalid("The token has expired."),
            };
        }
        let claims = match self.verified(token, evaluation) {
            Ok(claims) => claims,
            Err(reason) => return TokenCheck::Invalid(reason),
        };
        let expires_at = match self.check_claims(&claims) {
            Ok(expires_at) => expires_at,
            Err(reason) => return TokenCheck::Invalid(reason),
        };
        if !self.has_scopes(&claims) {
            return TokenCheck::Insufficient;
        }
        let identity = Arc::new(Identity::of_token(&claims));
        self.known.add(hash, KnownToken { identity: identity.clone(), expires_at });
        TokenCheck::Valid(identity)
    }

    /// The claims of a token whose signature is right.
    fn verified(&self, token: &str, evaluation: &mut Evaluation) -> Result<Value, &'static str> {
        const MALFORMED: &str = "The token is not a signed JWT.";
        let (signed, signature) = token.rsplit_once('.').ok_or(MALFORMED)?;
        let (head, claims) = signed.split_once('.').filter(|(_, claims)| !claims.contains('.')).ok_or(MALFORMED)?;
        let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).map_err(|_| MALFORMED);
        let parse = |bytes: Vec<u8>| serde_json::from_slice::<Value>(&bytes).map_err(|_| MALFORMED);
        let head = parse(decode(head)?)?;
        let alg = head.get("alg").and_then(Value::as_str).ok_or(MALFORMED)?;
        let is_allowed = self.algorithms.as_ref().is_none_or(|allowed| allowed.iter().any(|one| one == alg));
        if !is_allowed || !self.keys.iter().any(|key| key.fits(alg)) && self.waits.is_none() {
            return Err("The token is signed in a way that is not accepted.");
        }
        if head.get("crit").is_some() || head.get("b64").is_some() {
            return Err("The token has extensions that are not known.");
        }
        let kid = match head.get("kid") {
            None => None,
            Some(Value::String(kid)) => Some(kid.as_str()),
            Some(_) => return Err(MALFORMED),
        };
        let signature = decode(signature)?;
        let mut fitting = self.keys.iter().filter(|key| key.fits(alg));
        let has_id = |key: &&VerificationKey| kid.is_none() || key.kid.is_none() || key.kid.as_deref() == kid;
        let found = fitting.by_ref().filter(has_id).take(MAX_TRIED).collect::<Vec<_>>();
        if found.iter().any(|key| key.verifies(alg, signed.as_bytes(), &signature)) {
            return parse(decode(claims)?);
        }
        let is_known = kid.is_some() && self.keys.iter().any(|key| key.kid.as_deref() == kid);
        if let Some(waits) = self.waits.as_ref().filter(|_| !is_known && is_supported(alg)) {
            evaluation.key_is_missing(waits, kid);
        }
        Err("The signature of the token is not valid.")
    }

    /// Checks the claims of a token. Returns until when it is valid, seconds since 1970.
    fn check_claims(&self, claims: &Value) -> Result<u64, &'static str> {
        if claims.get("iss").and_then(Value::as_str) != Some(&self.issuer) {
            return Err("The token is of another issuer.");
        }
        let is_ours =
            |audience: &Value| audience.as_str().is_some_and(|text| self.audience.iter().any(|one| one == text));
        let is_for_us = match claims.get("aud") {
            Some(Value::Array(audiences)) => audiences.iter().any(is_ours),
            Some(audience) => is_ours(audience),
            None => false,
        };
        if !is_for_us {
            return Err("The token is for another audience.");
        }
        let time = |name: &str| match claims.get(name) {
            None => Ok(None),
            Some(value) => {
                let seconds = value.as_f64().filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
                seconds.map(|seconds| Some(seconds as u64)).ok_or("A time of the token is not a number.")
            }
        };
        let expires_at = time("exp")?.ok_or("The token does not say when it expires.")?.saturating_add(self.skew);
        if unix_seconds() >= expires_at {
            return Err("The token has expired.");
        }
        for name in ["nbf", "iat"] {
            if time(name)?.is_some_and(|at| at > unix_seconds().saturating_add(self.skew)) {
                return Err("The token is not valid yet.");
            }
        }
        for (name, expected) in &self.required_claims {
            let is_right = claims.get(name).is_some_and(|value| expected.is_null() || contains(value, expected));
            if !is_right {
                return Err("The token lacks a claim that is needed here.");
            }
        }
        Ok(expires_at)
    }

    /// OAuth has them in `scope`, with spaces between; others in lists, or in `scp`.
    fn has_scopes(&self, claims: &Value) -> bool {
        let has = |value: &Value, scope: &str| match value {
            Value::String(text) => text.split(' ').any(|one| one == scope),
            Value::Array(items) => items.iter().any(|item| item.as_str() == Some(scope)),
            _ => false,
        };
        let lists = || ["scope", "scp"].into_iter().filter_map(|name| claims.get(name));
        self.scopes.iter().all(|scope| lists().any(|list| has(list, scope)))
    }
}

/// Whether a key for it could be fetched.
fn is_supported(alg: &str) -> bool {
    rsa(alg).is_some() || ["ES256", "ES384", "EdDSA", "Ed25519"].contains(&alg)
}

/// Equal, or one of a list.
fn contains(value: &Value, expected: &Value) -> bool {
    let is_it = |value: &Value| match (value, expected) {
        // 1 and 1.0 are one number.
        (Value::Number(left), Value::Number(right)) => left.as_f64() == right.as_f64(),
        _ => value == expected,
    };
    is_it(value) || value.as_array().is_some_and(|items| items.iter().any(is_it))
}
