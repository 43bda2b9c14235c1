//! Rates that others count: the supervisor asks Redis, where all machines count together, or the front that replaces
//! this one.
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use ring::digest;
use tokio::sync::oneshot;

use super::Judged;
use super::counts::{COUNTS, now_ms, share_of};
use super::rate_limit::{self, Told, ToldRule};
use crate::http::Refusal;
use crate::messages::{FromFront, RateTaken, RateToTake};
use crate::supervisor::Supervisor;

/// The supervisor answers sooner, also when Redis is away.
const TIMEOUT: Duration = Duration::from_secs(2);

type Taken = Option<Vec<RateTaken>>;

/// Requests that wait for their counts.
static WAITING: LazyLock<Mutex<HashMap<u64, oneshot::Sender<Taken>>>> = LazyLock::new(Mutex::default);

/// A rule, for one caller.
pub struct SharedRule {
    /// Of both.
    pub key: String,
    pub told: ToldRule,
    pub requests: u32,
    pub window_seconds: u32,
    /// Whether requests that cannot be counted are let through.
    pub is_open: bool,
}

impl SharedRule {
    /// `caller`: with the rule, whatever it is made of; it is not told to anybody.
    pub fn key_of(caller: &[u8]) -> String {
        let hash = digest::digest(&digest::SHA256, caller);
        hash.as_ref()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Counts a request by its rules, and adds what is found to `judged`.
pub async fn take(judged: &mut Judged, supervisor: &Supervisor) {
    let rules = std::mem::take(&mut judged.shared_rules);
    let Some(counted) = ask(&rules, supervisor).await else {
        if rules.iter().any(|rule| !rule.is_open) {
            judged.refusal = Some(uncounted());
        }
        return;
    };
    let mut told = Told::default();
    for (rule, RateTaken { is_admitted, taken, ends_ms }) in rules.iter().zip(counted) {
        let seconds = ends_ms.div_ceil(1000);
        let left = share_of(rule.requests).saturating_sub(taken);
        told.add(&rule.told, left, seconds);
        if !is_admitted {
            judged.refusal = Some(rate_limit::refusal(seconds));
        }
    }
    told.write(&mut judged.lines);
}

fn uncounted() -> Refusal {
    let message = "Requests cannot be counted at the moment; try again later.";
    Refusal { lines: "Retry-After: 1\r\n".into(), ..Refusal::policy("rate_limit", 503, message) }
}

async fn ask(rules: &[SharedRule], supervisor: &Supervisor) -> Taken {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let id = LAST.fetch_add(1, Ordering::Relaxed);
    let (sender, taken) = oneshot::channel();
    WAITING.lock().unwrap_or_else(PoisonError::into_inner).insert(id, sender);
    let to_take = |rule: &SharedRule| RateToTake {
        key: rule.key.clone(),
        requests: rule.requests,
        window_ms: u64::from(rule.window_seconds) * 1000,
    };
    supervisor.send(FromFront::Take { id, rules: rules.iter().map(to_take).collect() });
    let answer = tokio::time::timeout(TIMEOUT, taken).await;
    if answer.is_err() {
        WAITING.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }
    answer.ok()?.ok()?
}

/// The supervisor has counted.
pub fn taken(id: u64, taken: Taken) {
    let waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    if let Some(waiting) = waiting {
        // A client that has left does not wait any more.
        let _ = waiting.send(taken);
    }
}

/// Counts a request for the front that this one replaces. None when it cannot.
pub fn count(rules: &[RateToTake]) -> Taken {
    let mut all = Vec::new();
    for RateToTake { key, requests, window_ms } in rules {
        let caller = u128::from_str_radix(key, 16).ok()?;
        let count = COUNTS.take(caller, share_of(*requests), *window_ms, now_ms())?;
        all.push(RateTaken { is_admitted: count.is_admitted, taken: count.taken, ends_ms: count.ends_ms });
        if !count.is_admitted {
            break;
        }
    }
    Some(all)
}
