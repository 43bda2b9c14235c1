//! How many requests a caller may send in a window of time. A window begins with the first request of a caller.
use std::net::IpAddr;

use super::compiled::{CompiledRule, OnFailure};
use super::counts::{COUNTS, hash, now_ms, share_of};
use super::identity::Identity;
use super::rate_headers::{RateHeaders, RuleHeaders, refusal};
use super::shared_rates::SharedRule;
use crate::request::{Head, Refusal};

#[derive(Debug)]
pub struct Rule {
    id: String,
    requests: u32,
    window_seconds: u32,
    by: CountedBy,
    headers: RuleHeaders,
    on_failure: OnFailure,
}

/// The rules of an endpoint.
#[derive(Debug, Default)]
pub struct Rules {
    /// Rules that count by what is known before the caller is.
    pub early: Box<[Rule]>,
    /// Rules that count by who calls.
    pub late: Box<[Rule]>,
}

impl Rules {
    pub fn new(compiled: Vec<CompiledRule>) -> Self {
        let (late, early): (Vec<_>, Vec<_>) = compiled.into_iter().map(Rule::new).partition(Rule::is_late);
        Self { early: early.into(), late: late.into() }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum CountedBy {
    Address,
    Key,
    Subject,
    Header(String),
}

impl Rule {
    pub fn new(CompiledRule { id, requests, window_seconds, by, on_failure }: CompiledRule) -> Self {
        let name = format!("{}-{window_seconds}s", by.replace(|c: char| !c.is_ascii_alphanumeric(), "-"));
        let by = match &*by {
            "key" => CountedBy::Key,
            "subject" => CountedBy::Subject,
            by => by.strip_prefix("header:").map_or(CountedBy::Address, |name| CountedBy::Header(name.to_owned())),
        };
        let headers = RuleHeaders::new(&name, requests, window_seconds);
        Self { id, requests, window_seconds, by, headers, on_failure }
    }

    /// Whether the caller has to be known.
    pub fn is_late(&self) -> bool {
        matches!(self.by, CountedBy::Key | CountedBy::Subject)
    }

    /// The rule for one caller, to be counted by all machines together: the caller has the same name on each.
    pub fn shared(&self, head: &Head<'_, '_>, address: IpAddr, identity: Option<&Identity>) -> SharedRule {
        let caller = self.value(head, identity);
        let network = network_of(address).to_be_bytes();
        let (kind, value): (&[u8], &[u8]) = caller.map_or((b" address ", &network), |value| (b" ", value));
        let key = SharedRule::key_of(&[self.id.as_bytes(), kind, value].concat());
        self.counted_elsewhere(key, Some(self.caller(head, address, identity)))
    }

    fn counted_elsewhere(&self, key: String, caller: Option<u128>) -> SharedRule {
        SharedRule {
            key,
            id: self.id.clone(),
            caller,
            headers: self.headers.clone(),
            requests: self.requests,
            window_seconds: self.window_seconds,
            is_open: self.on_failure == OnFailure::Open,
        }
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
            CountedBy::Key => identity.and_then(|identity| identity.key_id.as_deref()).map(str::as_bytes),
            CountedBy::Subject => identity.and_then(|identity| identity.subject.as_deref()).map(str::as_bytes),
            CountedBy::Header(name) => head.single_header(name),
            CountedBy::Address => None,
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

/// Counts a request by all rules, and adds header lines. Refused when one of them has no more. Rules by which the front
/// counts that replaces this one are added to `elsewhere`.
pub fn check(
    rules: &[Rule],
    head: &Head<'_, '_>,
    address: IpAddr,
    identity: Option<&Identity>,
    lines: &mut String,
    elsewhere: &mut Vec<SharedRule>,
) -> Option<Refusal> {
    if rules.is_empty() {
        return None;
    }
    let now = now_ms();
    let mut refused = None;
    let mut headers = RateHeaders::default();
    for rule in rules {
        let caller = rule.caller(head, address, identity);
        let share = share_of(rule.requests);
        let Some(count) = COUNTS.count(caller, share, u64::from(rule.window_seconds) * 1000, now) else {
            elsewhere.push(rule.counted_elsewhere(format!("{caller:032x}"), None));
            continue;
        };
        let seconds = count.ends_ms.div_ceil(1000);
        headers.add(&rule.headers, share.saturating_sub(count.used), seconds);
        if !count.is_admitted {
            refused = Some(seconds);
            break;
        }
    }
    headers.write(lines);
    Some(refusal(refused?))
}
