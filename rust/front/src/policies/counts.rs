//! The requests of callers in their windows, by which rates are limited: exact over all threads, and kept when policies
//! change. The counts go on to the front that replaces this one, which then counts for both: so each request is counted
//! once, whichever of the two gets it.
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const SHARDS: usize = 64;
/// Callers that are counted at a time, in each of the parts. With more, some of them are forgotten.
const SHARD_CALLERS: usize = 8 * 1024;
/// Callers whose counts the next front gets: those with the highest. It is one message, and requests wait for it.
const HANDED_OVER: usize = 100_000;
/// A caller as it is handed over: who, how many requests, and until when.
const ENTRY_BYTES: usize = 16 + 4 + 8;

/// The counts of this process.
pub static COUNTS: LazyLock<Counts> = LazyLock::new(Counts::default);

/// A request was counted.
#[derive(Debug)]
pub struct Count {
    pub is_admitted: bool,
    /// Requests in this window, with this one.
    pub used: u32,
    /// The time until the window ends, milliseconds.
    pub ends_ms: u64,
}

struct RateWindow {
    ends_at: u64,
    used: u32,
}

#[derive(Default)]
struct Shard {
    windows: HashMap<u128, RateWindow>,
    /// The front that replaces this one counts.
    is_handed_over: bool,
}

pub struct Counts {
    shards: [Mutex<Shard>; SHARDS],
}

impl Default for Counts {
    fn default() -> Self {
        Self { shards: std::array::from_fn(|_| Mutex::default()) }
    }
}

impl Counts {
    /// Counts a request of a caller, who may send so many in a window. None: another front counts.
    pub fn count(&self, caller: u128, requests: u32, window_ms: u64, now: u64) -> Option<Count> {
        let mut shard = self.shard(caller);
        if shard.is_handed_over {
            return None;
        }
        let windows = &mut shard.windows;
        make_room(windows, caller, now);
        let window = windows.entry(caller).or_insert(RateWindow { ends_at: now + window_ms, used: 0 });
        if window.ends_at <= now {
            *window = RateWindow { ends_at: now + window_ms, used: 0 };
        }
        let is_admitted = window.used < requests;
        window.used += u32::from(is_admitted);
        Some(Count { is_admitted, used: window.used, ends_ms: window.ends_at - now })
    }

    /// The counts, for the front that counts from now on.
    pub fn hand_over(&self, now: u64) -> String {
        let mut all = Vec::new();
        for shard in &self.shards {
            let mut shard = lock(shard);
            shard.is_handed_over = true;
            all.extend(std::mem::take(&mut shard.windows).into_iter().filter(|(_, window)| window.ends_at > now));
        }
        if all.len() > HANDED_OVER {
            all.select_nth_unstable_by_key(HANDED_OVER, |(_, window)| std::cmp::Reverse(window.used));
            all.truncate(HANDED_OVER);
        }
        let mut bytes = Vec::with_capacity(all.len() * ENTRY_BYTES);
        for (caller, window) in all {
            bytes.extend(caller.to_be_bytes());
            bytes.extend(window.used.to_be_bytes());
            bytes.extend((window.ends_at - now).to_be_bytes());
        }
        STANDARD.encode(bytes)
    }

    /// Counts on from what another front has handed over. False when it cannot be read.
    pub fn adopt(&self, counts: &str, now: u64) -> bool {
        let decoded = STANDARD.decode(counts);
        for shard in &self.shards {
            lock(shard).is_handed_over = false;
        }
        let Ok(bytes) = decoded else { return false };
        for (caller, window) in bytes.chunks_exact(ENTRY_BYTES).filter_map(|entry| read_entry(entry, now)) {
            let windows = &mut self.shard(caller).windows;
            make_room(windows, caller, now);
            windows.insert(caller, window);
        }
        bytes.len() % ENTRY_BYTES == 0
    }

    fn shard(&self, caller: u128) -> MutexGuard<'_, Shard> {
        lock(&self.shards[(caller >> 64) as usize % SHARDS])
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read_entry(entry: &[u8], now: u64) -> Option<(u128, RateWindow)> {
    let (caller, rest) = entry.split_first_chunk()?;
    let (used, ends_ms) = rest.split_first_chunk()?;
    let ends_at = now.saturating_add(u64::from_be_bytes(*ends_ms.first_chunk()?));
    Some((u128::from_be_bytes(*caller), RateWindow { ends_at, used: u32::from_be_bytes(*used) }))
}

/// Forgets some callers when there are too many: those with the fewest requests. So callers that each send one, whom
/// anybody can make up, take the place of nobody who has used up a limit of more.
fn make_room(windows: &mut HashMap<u128, RateWindow>, caller: u128, now: u64) {
    if windows.len() < SHARD_CALLERS || windows.contains_key(&caller) {
        return;
    }
    windows.retain(|_, window| window.ends_at > now);
    let spare = SHARD_CALLERS - SHARD_CALLERS / 8;
    if windows.len() > spare {
        let mut excess = windows.len() - spare;
        let mut used: Vec<_> = windows.values().map(|window| window.used).collect();
        let (_, most, _) = used.select_nth_unstable(excess - 1);
        let most = *most;
        excess -= windows.values().filter(|window| window.used < most).count();
        windows.retain(|_, window| {
            let is_one_of_many = window.used == most && excess > 0;
            excess -= usize::from(is_one_of_many);
            window.used >= most && !is_one_of_many
        });
    }
}

/// How many gateways count by themselves, and the place of this one among them.
static SHARE: AtomicU64 = AtomicU64::new(0);

/// Has this gateway let its part of each limit through from now on. What was counted is kept.
pub fn set_share(gateways: u32, place: u32) {
    SHARE.store(u64::from(gateways) << 32 | u64::from(place), Ordering::Relaxed);
}

/// The part of a limit that this gateway lets through. Those of all gateways make up the limit, but each has at least
/// one request: else a caller would find no gateway open that it happens to reach.
pub fn share_of(requests: u32) -> u32 {
    let share = SHARE.load(Ordering::Relaxed);
    part_of(requests, (share >> 32) as u32, share as u32)
}

fn part_of(requests: u32, gateways: u32, place: u32) -> u32 {
    if gateways <= 1 {
        return requests;
    }
    let rest = requests % gateways;
    (requests / gateways + u32::from(place < rest)).max(1)
}

static SEED: OnceLock<Box<str>> = OnceLock::new();

/// Fronts with the same seed know callers by the same numbers. To be called before the first of `hash`.
pub fn set_seed(seed: Box<str>) {
    // Another one is that of the tests of this process.
    let _ = SEED.set(seed);
}

/// The number of a caller. Nobody can make two callers equal: the seed is random, and not told to anybody.
pub fn hash(value: impl Hash) -> u128 {
    static SEEDED: LazyLock<[DefaultHasher; 2]> = LazyLock::new(|| {
        let own = RandomState::new();
        [0_u8, 1].map(|number| {
            let mut hasher = DefaultHasher::new();
            match SEED.get() {
                Some(seed) => (number, seed).hash(&mut hasher),
                None => std::hash::BuildHasher::hash_one(&own, number).hash(&mut hasher),
            }
            hasher
        })
    });
    let [first, second] = &*SEEDED;
    let finish = |seeded: &DefaultHasher| {
        let mut hasher = seeded.clone();
        value.hash(&mut hasher);
        u128::from(hasher.finish())
    };
    finish(first) << 64 | finish(second)
}

/// Milliseconds since the first call.
pub fn now_ms() -> u64 {
    static FIRST: LazyLock<Instant> = LazyLock::new(Instant::now);
    FIRST.elapsed().as_millis() as u64
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    const WINDOW: u64 = 10_000;

    fn is_admitted(counts: &Counts, requests: u32, now: u64) -> bool {
        counts.count(7, requests, WINDOW, now).unwrap().is_admitted
    }

    #[test]
    fn a_window_admits_so_many_over_all_threads() {
        let counts = Counts::default();
        let admitted: usize = std::thread::scope(|scope| {
            let take = || (0..500).filter(|_| is_admitted(&counts, 1_000, 5)).count();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(admitted, 1_000);
        assert!(!is_admitted(&counts, 1_000, 10_004));
        assert!(is_admitted(&counts, 1_000, 10_005));
    }

    #[test]
    fn memory_is_bounded() {
        let counts = Counts::default();
        for caller in 0..(3 * SHARD_CALLERS as u128) {
            counts.count(caller, 1, WINDOW, 0);
        }
        assert!(lock(&counts.shards[0]).windows.len() <= SHARD_CALLERS);
    }

    #[test]
    fn callers_of_one_request_do_not_give_another_one_back_what_it_has_used_up() {
        let counts = Counts::default();
        let admitted = |caller| counts.count(caller, 5, WINDOW, 0).unwrap().is_admitted;
        assert_eq!((0..9).filter(|_| admitted(7)).count(), 5);
        for caller in 8..(20 * SHARD_CALLERS as u128) {
            admitted(caller);
        }
        assert!(!admitted(7));
        assert!(lock(&counts.shards[0]).windows.len() > SHARD_CALLERS / 2);
    }

    #[test]
    fn a_front_counts_on_from_another_while_that_counts_no_more() {
        let (old, new) = (Counts::default(), Counts::default());
        let has_adopted = AtomicBool::new(false);
        let admitted = |counts: &Counts| counts.count(7, 1_000, WINDOW, 0).map(|count| count.is_admitted);
        let send = || {
            if let Some(is_admitted) = admitted(&old) {
                return is_admitted;
            }
            // The supervisor sees to it that nothing is counted before the other front has adopted the counts.
            while !has_adopted.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            admitted(&new).unwrap()
        };
        let total: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| (0..20_000).filter(|_| send()).count())).collect();
            assert!(new.adopt(&old.hand_over(0), 0));
            has_adopted.store(true, Ordering::Release);
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(total, 1_000);
        assert!(admitted(&old).is_none());
    }

    #[test]
    fn what_is_handed_over_is_counted_on_until_its_window_ends() {
        let (old, new) = (Counts::default(), Counts::default());
        for caller in [1, 1, 1 << 100] {
            old.count(caller, 3, WINDOW, 0);
        }
        old.count(2, 3, 1_000, 0);
        let handed_over = old.hand_over(4_000);
        assert!(new.adopt(&handed_over, 100));
        let used = |caller, now| new.count(caller, 3, WINDOW, now).unwrap().used;
        assert_eq!([used(1, 100), used(1 << 100, 100), used(2, 100)], [3, 2, 1]);
        assert_eq!(used(1, 6_100), 1);
        // Given back, because the new one has failed.
        assert!(old.adopt(&handed_over, 4_001));
        assert_eq!(old.count(1, 3, WINDOW, 4_001).unwrap().used, 3);
    }

    #[test]
    fn those_with_the_most_requests_are_handed_over_when_there_are_too_many() {
        let counts = Counts::default();
        for caller in 0..=HANDED_OVER as u128 {
            counts.count(caller << 64, 5, WINDOW, 0);
        }
        counts.count(9 << 64, 5, WINDOW, 0);
        let handed_over = counts.hand_over(0);
        assert_eq!(STANDARD.decode(&handed_over).unwrap().len(), HANDED_OVER * ENTRY_BYTES);
        let new = Counts::default();
        assert!(new.adopt(&handed_over, 0));
        assert_eq!(new.count(9 << 64, 5, WINDOW, 0).unwrap().used, 3);
    }

    #[test]
    fn what_cannot_be_read_is_no_count() {
        let counts = Counts::default();
        assert!(!counts.adopt("no base64", 0));
        assert!(!counts.adopt("AAAA", 0));
        assert_eq!(counts.count(0, 1, WINDOW, 0).unwrap().used, 1);
    }

    #[test]
    fn gateways_share_a_limit_without_a_rest() {
        for gateways in 1..8 {
            for requests in 1..100 {
                let parts = (0..gateways).map(|place| part_of(requests, gateways, place));
                assert_eq!(parts.clone().sum::<u32>(), requests.max(gateways));
                assert!(parts.min() > Some(0));
            }
        }
        assert_eq!(part_of(7, 0, 0), 7);
    }

    #[test]
    fn callers_have_different_numbers() {
        assert_ne!(hash(("rule", 1)), hash(("rule", 2)));
        assert_eq!(hash(("rule", 1)), hash(("rule", 1)));
        assert_ne!(hash("rule") >> 64, hash("rule") & u128::from(u64::MAX));
    }
}
