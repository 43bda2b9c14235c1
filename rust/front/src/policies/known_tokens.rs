//! Tokens that were verified, by their hashes: signatures are not checked again until a token expires.
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::cache::{self, Cached};
use super::clock::unix_seconds;
use super::identity::Identity;
use crate::workers;

/// The most tokens of a policy.
const MAX_TOKENS: usize = 10_000;
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// What a token takes besides what it says.
const TOKEN_BYTES: usize = 256;
/// The cache of all policies hears of the first one, and each time when there are so many more.
const STEP_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub struct KnownTokens {
    domain: Arc<str>,
    tokens: Mutex<Tokens>,
    is_used: AtomicBool,
}

#[derive(Debug, Default)]
struct Tokens {
    by_hash: HashMap<[u8; 32], KnownToken, foldhash::fast::RandomState>,
    bytes: usize,
}

#[derive(Clone, Debug)]
pub struct KnownToken {
    pub identity: Arc<Identity>,
    /// Seconds since 1970.
    pub expires_at: u64,
}

impl KnownToken {
    fn bytes(&self) -> usize {
        TOKEN_BYTES + self.identity.json.len() + self.identity.subject.as_ref().map_or(0, String::len)
    }
}

impl Cached for KnownTokens {
    fn bytes(&self) -> usize {
        self.tokens().bytes
    }

    fn take_used(&self) -> bool {
        self.is_used.swap(false, Ordering::Relaxed)
    }

    fn forget(&self) {
        let forgotten = std::mem::take(&mut *self.tokens());
        drop(forgotten);
    }
}

impl KnownTokens {
    pub fn new(domain: Arc<str>) -> Self {
        Self { domain, tokens: Mutex::default(), is_used: AtomicBool::new(false) }
    }

    pub fn get(&self, hash: &[u8; 32]) -> Option<KnownToken> {
        let found = self.tokens().by_hash.get(hash).cloned();
        if found.is_some() && !self.is_used.load(Ordering::Relaxed) {
            self.is_used.store(true, Ordering::Relaxed);
        }
        found
    }

    pub fn add(self: &Arc<Self>, hash: [u8; 32], token: KnownToken) {
        let mut tokens = self.tokens();
        if tokens.are_too_many() {
            tokens.forget_expired();
        }
        if tokens.are_too_many() {
            *tokens = Tokens::default();
        }
        let before = tokens.bytes;
        tokens.bytes += token.bytes();
        let has_grown = before == 0 || tokens.bytes / STEP_BYTES > before / STEP_BYTES;
        if let Some(replaced) = tokens.by_hash.insert(hash, token) {
            tokens.bytes -= replaced.bytes();
        }
        drop(tokens);
        if has_grown {
            let known = self.clone();
            workers::in_background(move || cache::keep(&(known.clone() as Arc<dyn Cached>), &known.domain));
        }
    }

    fn tokens(&self) -> MutexGuard<'_, Tokens> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tokens {
    fn are_too_many(&self) -> bool {
        self.by_hash.len() >= MAX_TOKENS || self.bytes >= MAX_BYTES
    }

    fn forget_expired(&mut self) {
        let now = unix_seconds();
        self.by_hash.retain(|_, token| now < token.expires_at);
        self.bytes = self.by_hash.values().map(KnownToken::bytes).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(bytes: usize, expires_at: u64) -> KnownToken {
        let identity = Arc::new(Identity { json: "x".repeat(bytes), ..Identity::default() });
        KnownToken { identity, expires_at }
    }

    #[test]
    fn tokens_are_bounded_in_bytes_and_those_that_have_expired_go_first() {
        let known = Arc::new(KnownTokens::new("*".into()));
        let large = MAX_BYTES / 4;
        known.add([0; 32], token(10, u64::MAX));
        for number in 1..=4 {
            known.add([number; 32], token(large, 0));
        }
        assert!(known.bytes() >= MAX_BYTES);
        known.add([5; 32], token(10, u64::MAX));
        assert!(known.get(&[0; 32]).is_some() && known.get(&[1; 32]).is_none());
        assert_eq!(known.bytes(), 2 * (TOKEN_BYTES + 10));
        for number in 6..=10 {
            known.add([number; 32], token(large, u64::MAX));
        }
        assert!(known.get(&[0; 32]).is_none() && known.get(&[10; 32]).is_some());
        assert_eq!(known.bytes(), TOKEN_BYTES + large);
        known.add([10; 32], token(10, u64::MAX));
        assert_eq!(known.bytes(), TOKEN_BYTES + 10);
    }
}
