//! Signatures of bodies, as GitHub and Stripe send them with webhooks.
use ring::hmac::{self, HMAC_SHA256, Key};

use super::clock::unix_seconds;
use super::compiled::{CompiledHmac, HmacStyle};
use super::hex::hex_bytes;
use crate::request::Head;

const GITHUB: &str = "x-hub-signature-256";
const STRIPE: &str = "stripe-signature";
/// More of one request are not looked at.
const MAX_SIGNATURES: usize = 8;

#[derive(Debug)]
pub struct Hmac {
    style: HmacStyle,
    key: Key,
    tolerance_seconds: u64,
}

/// What the head of a request says.
pub struct Signature {
    /// One of them has to be right: a sender that changes its secret signs with both.
    tags: Vec<Vec<u8>>,
    /// What is signed before the body.
    prefix: String,
}

impl Hmac {
    pub fn new(compiled: CompiledHmac) -> Self {
        Self {
            style: compiled.style,
            key: Key::new(HMAC_SHA256, compiled.secret.as_bytes()),
            tolerance_seconds: compiled.tolerance_seconds,
        }
    }

    /// Reads the signature of a request. None: it has none. An error: it has none that could be right.
    pub fn read(&self, head: &Head<'_, '_>) -> Option<Result<Signature, ()>> {
        let name = match self.style {
            HmacStyle::Github => GITHUB,
            HmacStyle::Stripe => STRIPE,
        };
        if !head.headers.iter().any(|header| header.name.eq_ignore_ascii_case(name)) {
            return None;
        }
        let signature = head.single_text_header(name).and_then(|text| match self.style {
            HmacStyle::Github => {
                let tag = hex_bytes(text.trim().strip_prefix("sha256=")?)?;
                Some(Signature { tags: vec![tag], prefix: String::new() })
            }
            HmacStyle::Stripe => self.read_stripe(text),
        });
        Some(signature.ok_or(()))
    }

    /// `t=1492774577,v1=5257a8...,v1=...`
    fn read_stripe(&self, text: &str) -> Option<Signature> {
        let (mut time, mut tags) = (None, Vec::new());
        for (name, value) in text.split(',').filter_map(|part| part.trim().split_once('=')) {
            match name {
                "t" if time.is_some() => return None,
                "t" => time = Some(value),
                "v1" if tags.len() < MAX_SIGNATURES => tags.push(hex_bytes(value)?),
                _ => {}
            }
        }
        let time = time?;
        let is_recent = time.parse::<u64>().ok()?.abs_diff(unix_seconds()) <= self.tolerance_seconds;
        (is_recent && !tags.is_empty()).then(|| Signature { tags, prefix: format!("{time}.") })
    }

    pub fn is_right(&self, signature: &Signature, body: &[u8]) -> bool {
        let signed: Vec<u8>;
        let signed = if signature.prefix.is_empty() {
            body
        } else {
            signed = [signature.prefix.as_bytes(), body].concat();
            &signed
        };
        // It compares in constant time.
        signature.tags.iter().any(|tag| hmac::verify(&self.key, signed, tag).is_ok())
    }
}
