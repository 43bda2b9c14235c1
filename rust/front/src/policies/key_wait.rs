//! Tokens whose keys are not known here: the keys of their issuer are asked for, and requests wait for these. Tokens
//! that nobody has signed look the same. So a request waits only for a key that its token names, only so many do at a
//! time, and none for a key that the issuer did not have a moment ago.
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ring::digest;

use super::clock::unix_seconds;

/// How long a request waits.
pub const KEY_WAIT: Duration = Duration::from_secs(2);
/// How often keys are fetched.
const FETCH_EVERY_SECONDS: u64 = 1;
/// Requests of a policy that wait at a time.
const MAX_WAITING: usize = 256;
/// How long a key counts as missing, and how many are remembered.
const MISSING: Duration = Duration::from_secs(60);
const MAX_MISSING: usize = 10_000;

type KeyId = [u8; 32];

/// The requests of a policy that wait.
#[derive(Debug, Default)]
pub struct KeyWaits {
    fetched_at: AtomicU64,
    waiting: AtomicUsize,
    /// Keys that could not be had, and until when they count as missing.
    missing: Mutex<HashMap<KeyId, Instant, foldhash::fast::RandomState>>,
}

impl KeyWaits {
    /// Claims a fetch of keys, of which there is one a second. Returns whether this caller has it.
    pub fn claim_fetch(&self) -> bool {
        let last = self.fetched_at.load(Ordering::Relaxed);
        unix_seconds() >= last + FETCH_EVERY_SECONDS
            && self.fetched_at.compare_exchange(last, unix_seconds(), Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Begins to wait for a key. None: the request is not to wait.
    pub fn begin(waits: &Arc<Self>, kid: &str, until: Instant) -> Option<KeyWait> {
        let mut id = [0; 32];
        id.copy_from_slice(digest::digest(&digest::SHA256, kid.as_bytes()).as_ref());
        if waits.is_missing(&id) {
            return None;
        }
        let is_free = |waiting| (waiting < MAX_WAITING).then_some(waiting + 1);
        waits.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_free).ok()?;
        Some(KeyWait { waits: waits.clone(), id, until })
    }

    fn is_missing(&self, id: &KeyId) -> bool {
        let missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        missing.get(id).is_some_and(|&until| Instant::now() < until)
    }
}

/// A request waits, as long as this exists.
#[derive(Debug)]
pub struct KeyWait {
    waits: Arc<KeyWaits>,
    id: KeyId,
    until: Instant,
}

impl KeyWait {
    /// Whether it is time to fetch keys again.
    pub fn claim_fetch(&self) -> bool {
        self.waits.claim_fetch()
    }

    pub fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// The key has not come: no request waits for it for a while.
    pub fn give_up(&self) {
        let now = Instant::now();
        let mut missing = self.waits.missing.lock().unwrap_or_else(PoisonError::into_inner);
        if missing.len() >= MAX_MISSING {
            missing.retain(|_, &mut until| now < until);
            if missing.len() >= MAX_MISSING {
                missing.clear();
            }
        }
        missing.insert(self.id, now + MISSING);
    }
}

impl Drop for KeyWait {
    fn drop(&mut self) {
        self.waits.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(waits: &Arc<KeyWaits>, kid: &str) -> Option<KeyWait> {
        KeyWaits::begin(waits, kid, Instant::now() + KEY_WAIT)
    }

    #[test]
    fn only_so_many_requests_of_a_policy_wait_at_a_time() {
        let waits = Arc::<KeyWaits>::default();
        let waiting: Vec<_> = (0..MAX_WAITING + 9).filter_map(|number| begin(&waits, &number.to_string())).collect();
        assert_eq!(waiting.len(), MAX_WAITING);
        drop(waiting);
        assert!(begin(&waits, "next").is_some());
    }

    #[test]
    fn a_key_that_did_not_come_is_not_waited_for_again_and_such_keys_take_bounded_memory() {
        let waits = Arc::<KeyWaits>::default();
        for number in 0..MAX_MISSING + 9 {
            begin(&waits, &number.to_string()).unwrap().give_up();
        }
        assert!(begin(&waits, &(MAX_MISSING + 8).to_string()).is_none());
        assert!(begin(&waits, "another").is_some());
        assert!(waits.missing.lock().unwrap().len() <= MAX_MISSING);
    }
}
