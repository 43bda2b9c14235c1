//! Rates that others count: the supervisor asks Redis, where all machines count together, or the front that replaces
//! this one.
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use ring::digest;
use tokio::sync::oneshot;

use super::Judged;
use super::counts::{COUNTS, Count, now_ms, share_of};
use super::rate_limit::{self, Told, ToldRule};
use crate::http::Refusal;
use crate::messages::{FromFront, RateTaken, RateToTake};
use crate::supervisor::Supervisor;

/// The supervisor answers sooner, also when Redis is away.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Requests that wait for their counts. Those beyond are counted here: a flood must not keep the supervisor busy.
const MOST_WAITING: usize = 1_000;
/// Callers that are remembered to have no more. With more of them, all are asked about again.
const MOST_USED_UP: usize = 64 * 1024;

/// For each rule that was counted: its count, or none when this gateway has to count by itself. None: nobody can tell.
type Taken = Option<Vec<Option<RateTaken>>>;

/// Requests that wait for their counts.
static WAITING: LazyLock<Mutex<Waiting>> = LazyLock::new(Mutex::default);

type Waiting = HashMap<u64, oneshot::Sender<Taken>>;

/// Callers that have used up a rule, by their keys: of how many requests, and until when.
static USED_UP: LazyLock<Mutex<HashMap<String, (u32, u64)>>> = LazyLock::new(Mutex::default);

/// A rule, for one caller.
pub struct SharedRule {
    /// Of both.
    pub key: String,
    /// Of the rule.
    pub id: String,
    /// Of both, among the counts of this process.
    pub caller: u128,
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

    /// Counts a request as if this gateway were alone. None after its counts were handed over.
    fn count_here(&self) -> Option<RateTaken> {
        taken_of(self.caller, self.requests, u64::from(self.window_seconds) * 1000)
    }
}

/// Counts a request by its rules, and adds what is found to `judged`.
pub async fn take(judged: &mut Judged, supervisor: &Supervisor) {
    let rules = std::mem::take(&mut judged.shared_rules);
    let mut told = Told::default();
    if let Some((rule, seconds)) = used_up(&rules, now_ms()) {
        told.add(&rule.told, 0, seconds);
        told.write(&mut judged.lines);
        judged.refusal = Some(rate_limit::refusal(seconds));
        return;
    }
    let Some(counted) = ask(&rules, supervisor).await else {
        if rules.iter().any(|rule| !rule.is_open) {
            judged.refusal = Some(uncounted());
        }
        return;
    };
    for (rule, counted) in rules.iter().zip(counted) {
        let is_shared = counted.is_some();
        let Some(RateTaken { is_admitted, taken, ends_ms }) = counted.or_else(|| rule.count_here()) else {
            judged.refusal = (!rule.is_open).then(uncounted);
            break;
        };
        let seconds = ends_ms.div_ceil(1000);
        let left = share_of(rule.requests).saturating_sub(taken);
        told.add(&rule.told, left, seconds);
        if !is_admitted {
            if is_shared {
                remember(rule, now_ms() + ends_ms);
            }
            judged.refusal = Some(rate_limit::refusal(seconds));
            break;
        }
    }
    told.write(&mut judged.lines);
}

/// A rule of which the caller is known to have no more, and the seconds until its window ends. Windows do not move, so
/// nobody has to be asked.
fn used_up(rules: &[SharedRule], now: u64) -> Option<(&SharedRule, u64)> {
    let used_up = USED_UP.lock().unwrap_or_else(PoisonError::into_inner);
    rules.iter().find_map(|rule| {
        let &(requests, ends_at) = used_up.get(&rule.key)?;
        (requests == rule.requests && ends_at > now).then(|| (rule, (ends_at - now).div_ceil(1000)))
    })
}

fn remember(rule: &SharedRule, ends_at: u64) {
    let mut used_up = USED_UP.lock().unwrap_or_else(PoisonError::into_inner);
    if used_up.len() >= MOST_USED_UP {
        let now = now_ms();
        used_up.retain(|_, (_, ends_at)| *ends_at > now);
        if used_up.len() >= MOST_USED_UP {
            used_up.clear();
        }
    }
    used_up.insert(rule.key.clone(), (rule.requests, ends_at));
}

fn uncounted() -> Refusal {
    let message = "Requests cannot be counted at the moment; try again later.";
    Refusal { lines: "Retry-After: 1\r\n".into(), ..Refusal::policy("rate_limit", 503, message) }
}

async fn ask(rules: &[SharedRule], supervisor: &Supervisor) -> Taken {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let id = LAST.fetch_add(1, Ordering::Relaxed);
    let Some(taken) = wait_in(&mut WAITING.lock().unwrap_or_else(PoisonError::into_inner), id) else {
        return Some(rules.iter().map(|_| None).collect());
    };
    let to_take = |rule: &SharedRule| RateToTake {
        key: rule.key.clone(),
        rule: rule.id.clone(),
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

/// None when too many wait.
fn wait_in(waiting: &mut Waiting, id: u64) -> Option<oneshot::Receiver<Taken>> {
    if waiting.len() >= MOST_WAITING {
        return None;
    }
    let (sender, taken) = oneshot::channel();
    waiting.insert(id, sender);
    Some(taken)
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
    for RateToTake { key, requests, window_ms, .. } in rules {
        let caller = u128::from_str_radix(key, 16).ok()?;
        let taken = taken_of(caller, *requests, *window_ms)?;
        let is_admitted = taken.is_admitted;
        all.push(Some(taken));
        if !is_admitted {
            break;
        }
    }
    Some(all)
}

fn taken_of(caller: u128, requests: u32, window_ms: u64) -> Option<RateTaken> {
    let Count { is_admitted, taken, ends_ms } = COUNTS.take(caller, share_of(requests), window_ms, now_ms())?;
    Some(RateTaken { is_admitted, taken, ends_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_wait_and_no_more() {
        let mut waiting = Waiting::default();
        let all: Vec<_> = (0..).map_while(|id| wait_in(&mut waiting, id)).collect();
        assert_eq!(all.len(), MOST_WAITING);
        waiting.remove(&7);
        assert!(wait_in(&mut waiting, 7).is_some());
    }
}
