//! Names and passwords (RFC 7617).
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest;
use subtle::ConstantTimeEq;

use super::compiled::CompiledBasic;
use super::hex::bytes_of_hex;
use super::identity::Identity;

#[derive(Debug)]
pub struct Basic {
    pub realm: String,
    users: Box<[User]>,
}

#[derive(Debug)]
struct User {
    name: String,
    hash: [u8; 32],
    identity: Arc<Identity>,
}

impl Basic {
    pub fn new(compiled: CompiledBasic) -> Self {
        let users = compiled.users.into_iter().filter_map(|user| {
            let identity = Arc::new(Identity::of_user(user.name.clone()));
            Some(User { hash: bytes_of_hex(&user.hash)?, identity, name: user.name })
        });
        Self { realm: compiled.realm, users: users.collect() }
    }

    /// Whom `credentials` of `Authorization: Basic` belong to. It takes as long whether there is such a user or not.
    pub fn check(&self, credentials: &str) -> Option<Arc<Identity>> {
        let decoded = STANDARD.decode(credentials).ok()?;
        let at = decoded.iter().position(|&byte| byte == b':')?;
        let (name, password) = (&decoded[..at], &decoded[at + 1..]);
        let hash = digest::digest(&digest::SHA256, password);
        let mut found = None;
        for user in &self.users {
            let is_it = is_equal(user.name.as_bytes(), name) & is_equal(&user.hash, hash.as_ref());
            if is_it {
                found = Some(&user.identity);
            }
        }
        found.cloned()
    }
}

/// Compares without telling by its time where they differ.
fn is_equal(left: &[u8], right: &[u8]) -> bool {
    left.ct_eq(right).into()
}
