//! Keys of callers. Only their hashes are known here.
use std::collections::HashMap;
use std::sync::Arc;

use ring::digest;

use super::clock::unix_seconds;
use super::compiled::CompiledApiKeys;
use super::hex::bytes_of_hex;
use super::identity::Identity;
use crate::request::Head;

#[derive(Debug)]
pub struct ApiKeys {
    header: Box<str>,
    keys: HashMap<[u8; 32], StoredKey, foldhash::fast::RandomState>,
}

#[derive(Debug)]
struct StoredKey {
    identity: Arc<Identity>,
    expires_at: Option<u64>,
}

impl ApiKeys {
    pub fn new(compiled: CompiledApiKeys) -> Self {
        let keys = compiled.keys.into_iter().filter_map(|key| {
            let identity = Arc::new(Identity::of_key(key.id, key.label));
            Some((bytes_of_hex(&key.hash)?, StoredKey { identity, expires_at: key.expires_at }))
        });
        Self { header: compiled.header, keys: keys.collect() }
    }

    /// Whose key a request has. None: it has no key. An error: it has one that is not known, or has expired.
    pub fn check(&self, head: &Head<'_, '_>) -> Option<Result<Arc<Identity>, ()>> {
        if !head.headers.iter().any(|header| header.name.eq_ignore_ascii_case(&self.header)) {
            return None;
        }
        let found = head.single_header(&self.header).and_then(|key| {
            let hash = digest::digest(&digest::SHA256, key);
            self.keys.get(hash.as_ref()).filter(|key| key.expires_at.is_none_or(|at| unix_seconds() < at))
        });
        Some(found.map(|key| key.identity.clone()).ok_or(()))
    }
}
