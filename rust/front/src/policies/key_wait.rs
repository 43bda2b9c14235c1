//! Tokens whose keys are not known here: the keys of their issuer are asked for, and requests wait for these. Tokens
//! that nobody has signed look the same. So a request waits only for a key that its token names, only so many do at a
//! time, and none for a key that the issuer did not have a moment ago.
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ring::digest;
use tokio::time::timeout_at;

use super::clock::unix_seconds;
use super::validate::Validator;

/// How long a request waits, and how often keys are asked for.
const KEY_WAIT: Duration = Duration::from_secs(2);
const ASK_EVERY_SECONDS: u64 = 1;
/// Requests of a policy that wait at a time.
const MAX_WAITING: usize = 256;
/// For how long a key counts as missing, and how many are remembered.
const MISSING: Duration = Duration::from_secs(60);
const MAX_MISSING: usize = 10_000;

type KeyId = [u8; 32];

/// What a request still does before it is judged to the end. It is judged again afterwards.
#[derive(Debug, Default)]
pub struct Patience {
    since: Option<Instant>,
    /// For the key of its token.
    wait: Option<KeyWait>,
    /// The management side is to be asked for new keys.
    asks: bool,
    /// It was counted by the rules that do not ask who calls, or is to be, before anything else is looked at.
    pub is_counted: bool,
    pub counts_first: bool,
    /// What its answer says of that.
    pub lines: String,
    /// The policy `validate`, which is to be made ready before anything is counted.
    pub unprepared: Option<Arc<Validator>>,
    /// How long that was waited for.
    pub prepared_for: Duration,
    /// It was not ready in time, and is not waited for any more.
    pub is_unprepared: bool,
}

impl Patience {
    /// Waits until a policy is ready, as long as checks of a request with this time may take.
    pub async fn prepare(&mut self, validator: &Arc<Validator>, timeout: Duration) {
        let began = Instant::now();
        let deadline = began + validator.check_time(timeout).saturating_sub(self.prepared_for);
        self.is_unprepared = !timeout_at(deadline.into(), validator.prepare()).await.unwrap_or(false);
        self.prepared_for += began.elapsed();
    }

    /// Whether new keys are to be asked for, and what the request is to wait for before it is judged again.
    pub fn take(&mut self) -> (bool, Option<KeyWait>) {
        (std::mem::take(&mut self.asks), self.wait.take())
    }

    /// No key verifies the token. `kid`: that of a key which is not known, if it names one.
    pub fn wants_key(&mut self, waits: &Arc<KeyWaits>, kid: Option<&str>) {
        self.asks = waits.asks();
        if let Some(kid) = kid {
            let until = *self.since.get_or_insert_with(Instant::now) + KEY_WAIT;
            self.wait = KeyWaits::begin(waits, kid, until);
        }
    }
}

/// The requests of a policy that wait.
#[derive(Debug, Default)]
pub struct KeyWaits {
    asked_at: AtomicU64,
    waiting: AtomicUsize,
    /// Keys that could not be had, and until when they count as missing.
    missing: Mutex<HashMap<KeyId, Instant, foldhash::fast::RandomState>>,
}

impl KeyWaits {
    /// Whether keys are to be asked for now.
    fn asks(&self) -> bool {
        let last = self.asked_at.load(Ordering::Relaxed);
        unix_seconds() >= last + ASK_EVERY_SECONDS
            && self.asked_at.compare_exchange(last, unix_seconds(), Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// None: the request is not to wait.
    fn begin(waits: &Arc<Self>, kid: &str, until: Instant) -> Option<KeyWait> {
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
    /// Whether keys are to be asked for again.
    pub fn asks(&self) -> bool {
        self.waits.asks()
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
    fn a_request_waits_only_for_a_key_that_its_token_names_and_all_have_it_asked_for() {
        for (kid, waits) in [(None, false), (Some("new"), true)] {
            let mut patience = Patience::default();
            patience.wants_key(&Arc::default(), kid);
            let (asks, wait) = patience.take();
            assert_eq!((asks, wait.is_some()), (true, waits));
        }
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
