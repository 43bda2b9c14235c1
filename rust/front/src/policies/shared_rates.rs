//! Rates that others count: the supervisor asks Redis, where all machines count together, or the front that replaces
//! this one.
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ring::digest;
use tokio::sync::oneshot;

use super::counts::{COUNTS, Count, now_ms, share_of};
use super::rate_headers::{RateHeaders, RuleHeaders, refusal};
use crate::messages::{FromFront, RateDescriptor, RateStatus};
use crate::request::Refusal;
use crate::supervisor::Supervisor;

/// The supervisor answers sooner, also when Redis is away.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Requests that wait for Redis, by one rule and in all: a flood must not keep the supervisor busy.
const MOST_OF_RULE: u32 = 500;
const MOST_WAITING: usize = 5_000;
/// Callers that are remembered to have no more. With more of them, all are asked about again.
const MOST_USED_UP: usize = 64 * 1024;

/// The count of each rule, or none when this gateway has to count by itself. `None`: nobody can count now.
type SharedCounts = Option<Vec<Option<RateStatus>>>;

/// Whether the supervisor could not count the last request.
static IS_AWAY: AtomicBool = AtomicBool::new(false);

static WAITING: LazyLock<Mutex<WaitingRequests>> = LazyLock::new(Mutex::default);

/// Callers that have used up a rule, by their keys: how many requests it has, and when its window ends.
static USED_UP: LazyLock<Mutex<HashMap<String, (u32, u64)>>> = LazyLock::new(Mutex::default);

/// A rule by which others count one caller.
pub struct SharedRule {
    /// The name of the rule and the caller together.
    pub key: String,
    /// The name of the rule.
    pub id: String,
    /// The number of the rule and the caller together among the counts of this process, where that may count instead of
    /// Redis.
    pub caller: Option<u128>,
    pub headers: RuleHeaders,
    pub requests: u32,
    pub window_seconds: u32,
    /// Whether requests that cannot be counted are let through.
    pub is_open: bool,
}

impl SharedRule {
    /// The key of a `caller` and a rule, whatever that is made of. The key does not reveal it.
    pub fn key_of(caller: &[u8]) -> String {
        let hash = digest::digest(&digest::SHA256, caller);
        hash.as_ref()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Counts a request as if this gateway were alone. None where it may not, and after its counts were handed over.
    fn count_here(&self) -> Option<RateStatus> {
        count_in_process(self.caller?, self.requests, u64::from(self.window_seconds) * 1000)
    }
}

/// Counts a request by its rules, and adds header lines for its answer. Returns the answer to one that is refused.
pub async fn count_shared_rates(rules: &[SharedRule], lines: &mut String, supervisor: &Supervisor) -> Option<Refusal> {
    let mut headers = RateHeaders::default();
    let now = now_ms();
    if let Some((rule, seconds)) = used_up(rules, now) {
        headers.add(&rule.headers, 0, seconds);
        headers.write(lines);
        return Some(refusal(seconds));
    }
    let waiting = WaitingRequest::add(&WAITING, rules);
    let is_crowded = matches!(waiting, Err(NoRoom::All));
    let counted = match waiting {
        Ok((waiting, counts)) => ask_supervisor(&waiting, counts, rules, supervisor).await,
        Err(_) if IS_AWAY.load(Ordering::Relaxed) => None,
        Err(NoRoom::Caller) => return Some(refusal(1)),
        Err(NoRoom::All) => rules.iter().all(|rule| rule.is_open).then(|| rules.iter().map(|_| None).collect()),
    };
    let Some(counted) = counted else {
        return rules.iter().any(|rule| !rule.is_open).then(cannot_be_counted);
    };
    let mut refused = None;
    for (rule, counted) in rules.iter().zip(counted) {
        let Some(RateStatus { is_admitted, taken, ends_ms }) = counted.or_else(|| rule.count_here()) else {
            if rule.is_open {
                continue;
            }
            refused = Some(cannot_be_counted());
            break;
        };
        let seconds = ends_ms.div_ceil(1000);
        let left = share_of(rule.requests).saturating_sub(taken);
        headers.add(&rule.headers, left, seconds);
        if !is_admitted {
            if !is_crowded {
                remember(rule, now + ends_ms);
            }
            refused = Some(refusal(seconds));
            break;
        }
    }
    headers.write(lines);
    refused
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
        if used_up.len() > MOST_USED_UP / 8 * 7 {
            used_up.clear();
        }
    }
    used_up.insert(rule.key.clone(), (rule.requests, ends_at));
}

fn cannot_be_counted() -> Refusal {
    let message = "Requests cannot be counted at the moment; try again later.";
    Refusal { lines: "Retry-After: 1\r\n".into(), ..Refusal::policy("rate_limit", 503, message) }
}

/// Has the supervisor count, and waits for that.
async fn ask_supervisor(
    waiting: &WaitingRequest<'_>,
    counts: oneshot::Receiver<SharedCounts>,
    rules: &[SharedRule],
    supervisor: &Supervisor,
) -> SharedCounts {
    let to_take = |rule: &SharedRule| RateDescriptor {
        key: rule.key.clone(),
        rule: rule.id.clone(),
        requests: rule.requests,
        window_ms: u64::from(rule.window_seconds) * 1000,
    };
    supervisor.send(FromFront::Take { id: waiting.id, rules: rules.iter().map(to_take).collect() });
    tokio::time::timeout(TIMEOUT, counts).await.ok()?.ok()?
}

/// Gives the counts that the supervisor has sent to the request that waits for them.
pub fn give_counts(id: u64, counts: SharedCounts) {
    IS_AWAY.store(counts.is_none(), Ordering::Relaxed);
    let waiting = lock(&WAITING).senders.remove(&id);
    if let Some(waiting) = waiting {
        // A client that has left does not wait any more.
        let _ = waiting.send(counts);
    }
}

/// Requests that wait for their counts.
#[derive(Default)]
struct WaitingRequests {
    last_id: u64,
    senders: HashMap<u64, oneshot::Sender<SharedCounts>>,
    /// How many wait for Redis, by the ids of rules and by the keys of callers.
    counts: HashMap<String, u32>,
}

impl WaitingRequests {
    fn count(&self, name: &str) -> u32 {
        self.counts.get(name).copied().unwrap_or(0)
    }
}

/// Why a request does not wait.
#[derive(Debug)]
enum NoRoom {
    /// So many of its caller wait that there is none left for it.
    Caller,
    /// So many of all callers wait.
    All,
}

/// A request that waits for its counts, until this is dropped.
struct WaitingRequest<'a> {
    waiting: &'a Mutex<WaitingRequests>,
    id: u64,
    names: Vec<String>,
}

impl<'a> WaitingRequest<'a> {
    fn add(
        waiting: &'a Mutex<WaitingRequests>,
        rules: &[SharedRule],
    ) -> Result<(Self, oneshot::Receiver<SharedCounts>), NoRoom> {
        let mut all = lock(waiting);
        // The front that replaces this one is asked for no more than what it replaces.
        let by_redis = || rules.iter().filter(|rule| rule.caller.is_some());
        if by_redis().any(|rule| all.count(&rule.key) >= rule.requests) {
            return Err(NoRoom::Caller);
        }
        let is_full = all.senders.len() >= MOST_WAITING;
        if by_redis().any(|rule| is_full || all.count(&rule.id) >= MOST_OF_RULE) {
            return Err(NoRoom::All);
        }
        let names: Vec<_> = by_redis().flat_map(|rule| [rule.key.clone(), rule.id.clone()]).collect();
        for name in &names {
            *all.counts.entry(name.clone()).or_default() += 1;
        }
        let (sender, counts) = oneshot::channel();
        all.last_id += 1;
        let id = all.last_id;
        all.senders.insert(id, sender);
        Ok((Self { waiting, id, names }, counts))
    }
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        let mut all = lock(self.waiting);
        all.senders.remove(&self.id);
        for name in &self.names {
            let left = all.count(name).saturating_sub(1);
            if left == 0 {
                all.counts.remove(name);
            } else {
                all.counts.insert(name.clone(), left);
            }
        }
    }
}

fn lock(waiting: &Mutex<WaitingRequests>) -> MutexGuard<'_, WaitingRequests> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts a request for the front that this one replaces. None when it cannot.
pub fn count_for_replaced_front(rules: &[RateDescriptor]) -> SharedCounts {
    let mut all = Vec::new();
    for RateDescriptor { key, requests, window_ms, .. } in rules {
        let caller = u128::from_str_radix(key, 16).ok()?;
        let count = count_in_process(caller, *requests, *window_ms)?;
        let is_admitted = count.is_admitted;
        all.push(Some(count));
        if !is_admitted {
            break;
        }
    }
    Some(all)
}

/// Counts a request among those of this process.
fn count_in_process(caller: u128, requests: u32, window_ms: u64) -> Option<RateStatus> {
    let Count { is_admitted, used, ends_ms } = COUNTS.count(caller, share_of(requests), window_ms, now_ms())?;
    Some(RateStatus { is_admitted, taken: used, ends_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(id: &str, key: &str, requests: u32, caller: Option<u128>) -> SharedRule {
        let headers = RuleHeaders::new("address-60s", requests, 60);
        let (key, id) = (key.to_owned(), id.to_owned());
        SharedRule { key, id, caller, headers, requests, window_seconds: 60, is_open: true }
    }

    #[test]
    fn no_more_requests_of_a_caller_wait_than_it_may_send() {
        let waiting = Mutex::default();
        let place = |key| WaitingRequest::add(&waiting, &[rule("one", key, 2, Some(1))]);
        let held = [place("ada"), place("ada")].map(Result::unwrap);
        assert!(matches!(place("ada"), Err(NoRoom::Caller)));
        assert!(place("eve").is_ok());
        drop(held);
        assert!(place("ada").is_ok());
        assert!(lock(&waiting).counts.is_empty() && lock(&waiting).senders.is_empty());
    }

    #[test]
    fn a_flood_by_one_rule_leaves_the_places_of_others() {
        let waiting = Mutex::default();
        let place = |id: &str, number: u32| {
            let key = format!("{id} {number}");
            WaitingRequest::add(&waiting, &[rule(id, &key, 2, Some(1))])
        };
        let held: Vec<_> = (0..MOST_OF_RULE).map(|number| place("flooded", number).unwrap()).collect();
        assert!(matches!(place("flooded", MOST_OF_RULE), Err(NoRoom::All)));
        assert!(place("other", 0).is_ok());
        drop(held);
        assert!(place("flooded", 0).is_ok());
    }

    #[test]
    fn the_front_that_replaces_another_counts_all_that_that_one_has_left() {
        let waiting = Mutex::default();
        let place = || WaitingRequest::add(&waiting, &[rule("one", "ada", 2, None)]);
        let held: Vec<_> = (0..=MOST_WAITING).map(|_| place().unwrap()).collect();
        assert_eq!(held.len(), MOST_WAITING + 1);
    }
}
