//! Policies as the supervisor sends them. `src/contracts/front.ts` is made from these types. One is called
//! `Compiled...` where the front prepares another one from it; the others are used as they come.
use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use serde_json::Value;

use super::origins::Origins;

/// Texts of parts of policies by their digests.
pub type Texts = HashMap<Box<str>, Box<str>>;
/// Digests of the parts that an endpoint has, by the names of policies.
pub type Digests = BTreeMap<Box<str>, Box<str>>;

/// The policies of an endpoint.
#[derive(Deserialize)]
pub struct CompiledPolicies {
    /// The digest of all the rest.
    pub digest: Box<str>,
    /// Digests of texts that come with the message, or that other endpoints of the domain have already.
    #[serde(default)]
    pub parts: Digests,
    /// Why nobody can be let in: a secret is missing, for example.
    pub broken: Option<Box<str>>,
    pub body_limit: Option<usize>,
    #[serde(flatten)]
    pub whole: WholePolicies,
}

/// Policies that are no parts: a supervisor of the version before sends them so.
#[derive(Default, Deserialize)]
pub struct WholePolicies {
    pub cors: Option<CompiledCors>,
    pub ip: Option<CompiledNetworks>,
    pub rate_limits: Option<Vec<CompiledRule>>,
    pub auth: Option<CompiledAuth>,
    pub headers: Option<CompiledHeaders>,
    pub redirect: Option<Redirect>,
    pub maintenance: Option<Maintenance>,
    pub compress: Option<CompiledCompress>,
    pub validate: Option<Box<str>>,
    pub websocket: Option<Sockets>,
}

#[derive(Deserialize)]
pub struct CompiledCors {
    pub origins: Origins,
    pub methods: Option<Vec<String>>,
    pub headers: Option<Vec<String>>,
    pub expose: Option<Vec<String>>,
    #[serde(default)]
    pub credentials: bool,
    pub max_age_seconds: Option<u32>,
}

#[derive(Deserialize)]
pub struct CompiledNetworks {
    pub allow: Option<Vec<String>>,
    pub deny: Option<Vec<String>>,
}

/// What becomes of requests that cannot be counted.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    #[default]
    Open,
    Closed,
}

#[derive(Deserialize)]
pub struct CompiledRule {
    /// Which counts it uses: those of where it is set.
    pub id: String,
    pub requests: u32,
    pub window_seconds: u32,
    pub by: String,
    #[serde(default)]
    pub on_failure: OnFailure,
}

#[derive(Default, Deserialize)]
pub struct CompiledAuth {
    pub api_key: Option<CompiledApiKeys>,
    pub basic: Option<CompiledBasic>,
    pub hmac: Option<CompiledHmac>,
    pub jwt: Option<CompiledJwt>,
}

#[derive(Deserialize)]
pub struct CompiledApiKeys {
    pub header: Box<str>,
    pub keys: Vec<CompiledApiKey>,
}

/// A key of a caller.
#[derive(Deserialize)]
pub struct CompiledApiKey {
    pub id: String,
    pub label: String,
    /// SHA-256, in hexadecimal digits.
    pub hash: String,
    /// Seconds since 1970; null: it does not expire.
    #[serde(deserialize_with = "Option::deserialize")]
    pub expires_at: Option<u64>,
}

#[derive(Deserialize)]
pub struct CompiledBasic {
    pub realm: String,
    pub users: Vec<CompiledUser>,
}

#[derive(Deserialize)]
pub struct CompiledUser {
    pub name: String,
    /// SHA-256 of the password, in hexadecimal digits.
    pub hash: String,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum HmacStyle {
    Github,
    Stripe,
}

#[derive(Deserialize)]
pub struct CompiledHmac {
    pub style: HmacStyle,
    pub secret: String,
    pub tolerance_seconds: u64,
}

#[derive(Deserialize)]
pub struct CompiledJwt {
    pub issuer: String,
    pub audience: Vec<String>,
    pub keys: Vec<CompiledPublicKey>,
    pub jwks_url: Option<String>,
    pub algorithms: Option<Vec<String>>,
    pub clock_skew_seconds: Option<u64>,
    #[serde(default)]
    pub required_claims: BTreeMap<String, Value>,
    #[serde(default)]
    pub scopes: Vec<String>,
}

#[derive(Deserialize)]
pub struct CompiledPublicKey {
    pub kid: Option<String>,
    pub kty: String,
    pub alg: Option<String>,
    pub n: Option<String>,
    pub e: Option<String>,
    pub crv: Option<String>,
    pub x: Option<String>,
    pub y: Option<String>,
}

#[derive(Default, Deserialize)]
pub struct CompiledHeaders {
    pub request: Option<CompiledChanges>,
    pub response: Option<CompiledChanges>,
    #[serde(default)]
    pub security_headers: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct CompiledChanges {
    pub remove: Vec<String>,
    pub set: BTreeMap<String, String>,
    pub add: BTreeMap<String, String>,
    pub allow: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub struct Redirect {
    pub to: String,
    pub status: Option<u16>,
    #[serde(default)]
    pub keep_path: bool,
}

#[derive(Debug, Deserialize)]
pub struct Maintenance {
    pub message: Option<String>,
    pub retry_after_seconds: Option<u32>,
}

#[derive(Deserialize)]
pub struct CompiledCompress {
    pub min_bytes: Option<usize>,
    pub algorithms: Option<Vec<String>>,
}

/// What may be sent over WebSockets, and from which pages they are opened.
#[derive(Debug, Deserialize)]
#[serde(default)]
pub struct Sockets {
    /// Pages that open them, besides those of the same host.
    pub allowed_origins: Origins,
    /// Longest message, bytes.
    pub max_message_bytes: usize,
    /// Messages of a client in a second; any number without it.
    pub messages_per_second: Option<u32>,
}

impl Default for Sockets {
    /// The limits of endpoints without the policy.
    fn default() -> Self {
        Self { allowed_origins: Origins::default(), max_message_bytes: 1 << 20, messages_per_second: None }
    }
}
