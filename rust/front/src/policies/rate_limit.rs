//! How many requests a caller may send in a window of time. A window begins with the first request of a caller. The
//! counts are those of the process: exact over all its threads, and kept when policies change.
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Instant;

use super::auth::Identity;
use super::compiled::OnFailure;
use super::shared_rates::SharedRule;
use super::{compiled, header};
use crate::http::{Head, Refusal};

const SHARDS: usize = 64;
/// Callers that are counted at a time, in each of the parts. With more, some of them are forgotten.
const SHARD_CALLERS: usize = 8 * 1024;

#[derive(Debug)]
pub struct Rule {
    id: String,
    requests: u32,
    window_seconds: u32,
    by: By,
    /// How `RateLimit` names it.
    name: String,
    on_failure: OnFailure,
}

#[derive(Debug, PartialEq, Eq)]
enum By {
    Address,
    Key,
    Subject,
    Header(String),
}

impl Rule {
    pub fn new(compiled::Rule { id, requests, window_seconds, by, on_failure }: compiled::Rule) -> Self {
        let name = format!("{}-{window_seconds}s", by.replace(|c: char| !c.is_ascii_alphanumeric(), "-"));
        let by = match &*by {
            "key" => By::Key,
            "subject" => By::Subject,
            by => by.strip_prefix("header:").map_or(By::Address, |name| By::Header(name.to_owned())),
        };
        Self { id, requests, window_seconds, by, name, on_failure }
    }

    /// Whether the caller has to be known.
    pub fn is_late(&self) -> bool {
        matches!(self.by, By::Key | By::Subject)
    }

    /// For all machines: the caller has the same name on each.
    pub fn shared(&self, head: &Head<'_, '_>, address: IpAddr, identity: Option<&Identity>) -> SharedRule {
        let caller = self.value(head, identity);
        let network = network_of(address).to_be_bytes();
        let (kind, value): (&[u8], &[u8]) = caller.map_or((b" address ", &network), |value| (b" ", value));
        SharedRule::new(
            [self.id.as_bytes(), kind, value].concat().as_slice(),
            (&self.name, self.requests, self.window_seconds),
            self.on_failure == OnFailure::Open,
        )
    }

    /// Who is counted. Callers without what they are counted by are counted by their addresses.
    fn caller(&self, head: &Head<'_, '_>, address: IpAddr, identity: Option<&Identity>) -> u128 {
        self.value(head, identity)
            .map_or_else(|| hash((&self.id, network_of(address))), |value| hash((&self.id, value)))
    }
}

impl Rule {
    fn value<'a>(&self, head: &Head<'_, 'a>, identity: Option<&'a Identity>) -> Option<&'a [u8]> {
        match &self.by {
            By::Key => identity.and_then(|identity| identity.key_id.as_deref()).map(str::as_bytes),
            By::Subject => identity.and_then(|identity| identity.subject.as_deref()).map(str::as_bytes),
            By::Header(name) => header(head, name),
            By::Address => None,
        }
    }
}

/// Whoever has an address of IPv6 has very many: those of a network of 64 bits count as one.
fn network_of(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits() >> 64 << 64,
    }
}

/// Counts a request by all rules, and adds header lines. Refused when one of them has no more.
pub fn check(
    rules: &[Rule],
    head: &Head<'_, '_>,
    address: IpAddr,
    identity: Option<&Identity>,
    lines: &mut String,
) -> Option<Refusal> {
    if rules.is_empty() {
        return None;
    }
    let now = now_ms();
    let mut refused = None;
    let mut told = Told::default();
    for rule in rules {
        let count = COUNTS.take(rule.caller(head, address, identity), rule, now);
        let seconds = (count.ends_at - now).div_ceil(1000);
        told.add(&rule.name, rule.requests, rule.window_seconds, count.taken, seconds);
        if !count.is_admitted {
            refused = Some(seconds);
            break;
        }
    }
    told.write(lines);
    Some(refusal(refused?))
}

pub fn refusal(seconds: u64) -> Refusal {
    let refusal = Refusal::policy("rate_limit", 429, "Too many requests; try again later.");
    Refusal { lines: format!("Retry-After: {seconds}\r\n").into(), ..refusal }
}

/// What clients are told of the rules that apply to them.
#[derive(Default)]
pub struct Told {
    policies: String,
    states: String,
}

impl Told {
    pub fn add(&mut self, name: &str, requests: u32, window_seconds: u32, taken: u32, ends_in_seconds: u64) {
        use std::fmt::Write;
        let comma = if self.policies.is_empty() { "" } else { ", " };
        let left = requests.saturating_sub(taken);
        // Writing to memory does not fail.
        let _ = write!(self.policies, "{comma}\"{name}\";q={requests};w={window_seconds}");
        let _ = write!(self.states, "{comma}\"{name}\";r={left};t={ends_in_seconds}");
    }

    pub fn write(&self, lines: &mut String) {
        if !self.policies.is_empty() {
            for part in ["RateLimit-Policy: ", &self.policies, "\r\nRateLimit: ", &self.states, "\r\n"] {
                lines.push_str(part);
            }
        }
    }
}

static COUNTS: LazyLock<Counts> = LazyLock::new(Counts::default);

struct Window {
    ends_at: u64,
    taken: u32,
}

struct Count {
    is_admitted: bool,
    ends_at: u64,
    taken: u32,
}

struct Counts {
    shards: [Mutex<HashMap<u128, Window>>; SHARDS],
}

impl Default for Counts {
    fn default() -> Self {
        Self { shards: std::array::from_fn(|_| Mutex::default()) }
    }
}

impl Counts {
    fn take(&self, caller: u128, rule: &Rule, now: u64) -> Count {
        let shard = &self.shards[(caller >> 64) as usize % SHARDS];
        let mut windows = shard.lock().unwrap_or_else(PoisonError::into_inner);
        if windows.len() >= SHARD_CALLERS && !windows.contains_key(&caller) {
            forget_some(&mut windows, now);
        }
        let length = u64::from(rule.window_seconds) * 1000;
        let window = windows.entry(caller).or_insert(Window { ends_at: now + length, taken: 0 });
        if window.ends_at <= now {
            *window = Window { ends_at: now + length, taken: 0 };
        }
        let is_admitted = window.taken < rule.requests;
        window.taken += u32::from(is_admitted);
        Count { is_admitted, ends_at: window.ends_at, taken: window.taken.min(rule.requests) }
    }
}

fn forget_some(windows: &mut HashMap<u128, Window>, now: u64) {
    windows.retain(|_, window| window.ends_at > now);
    let spare = SHARD_CALLERS - SHARD_CALLERS / 8;
    if windows.len() > spare {
        let mut excess = windows.len() - spare;
        windows.retain(|_, _| {
            let stays = excess == 0;
            excess -= usize::from(!stays);
            stays
        });
    }
}

/// Nobody can make two callers equal: the seeds are random.
fn hash(value: impl std::hash::Hash) -> u128 {
    static SEEDS: LazyLock<[RandomState; 2]> = LazyLock::new(|| [RandomState::new(), RandomState::new()]);
    let [first, second] = &*SEEDS;
    u128::from(first.hash_one(&value)) << 64 | u128::from(second.hash_one(&value))
}

/// Milliseconds since the first call.
fn now_ms() -> u64 {
    static FIRST: LazyLock<Instant> = LazyLock::new(Instant::now);
    FIRST.elapsed().as_millis() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(requests: u32) -> Rule {
        Rule::new(compiled::Rule {
            id: "id".into(),
            requests,
            window_seconds: 10,
            by: "address".into(),
            on_failure: OnFailure::Open,
        })
    }

    #[test]
    fn a_window_admits_so_many_over_all_threads() {
        let counts = Counts::default();
        let rule = rule(1_000);
        let admitted: usize = std::thread::scope(|scope| {
            let take = || (0..500).filter(|_| counts.take(7, &rule, 5).is_admitted).count();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(admitted, 1_000);
        assert!(!counts.take(7, &rule, 10_004).is_admitted);
        assert!(counts.take(7, &rule, 10_005).is_admitted);
    }

    #[test]
    fn memory_is_bounded() {
        let counts = Counts::default();
        let rule = rule(1);
        for caller in 0..(3 * SHARD_CALLERS as u128) {
            counts.take(caller, &rule, 0);
        }
        assert!(counts.shards[0].lock().unwrap().len() <= SHARD_CALLERS);
    }
}
