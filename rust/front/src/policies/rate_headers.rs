//! What clients are told of limits of rates, in headers.
use crate::request::Refusal;

/// The parts of the headers that are the same for all clients of a rule.
#[derive(Clone, Debug)]
pub struct RuleHeaders {
    /// The part of the rule in `RateLimit-Policy`.
    policy: Box<str>,
    /// The beginning of its part of `RateLimit`.
    state: Box<str>,
}

impl RuleHeaders {
    pub fn new(name: &str, requests: u32, window_seconds: u32) -> Self {
        Self {
            policy: format!("\"{name}\";q={requests};w={window_seconds}").into(),
            state: format!("\"{name}\";r=").into(),
        }
    }
}

/// The headers `RateLimit-Policy` and `RateLimit` for one client, with the rules that apply to it.
#[derive(Default)]
pub struct RateHeaders {
    policies: String,
    states: String,
}

impl RateHeaders {
    /// Adds a rule. `left`: requests that this gateway still lets through.
    pub fn add(&mut self, rule: &RuleHeaders, left: u32, ends_in_seconds: u64) {
        let comma = if self.policies.is_empty() { "" } else { ", " };
        self.policies.extend([comma, &rule.policy]);
        let (mut left_digits, mut seconds_digits) = (itoa::Buffer::new(), itoa::Buffer::new());
        let (left, seconds) = (left_digits.format(left), seconds_digits.format(ends_in_seconds));
        self.states.extend([comma, &rule.state, left, ";t=", seconds]);
    }

    /// Adds the header lines, if there are rules.
    pub fn write(&self, lines: &mut String) {
        if !self.policies.is_empty() {
            for part in ["RateLimit-Policy: ", &self.policies, "\r\nRateLimit: ", &self.states, "\r\n"] {
                lines.push_str(part);
            }
        }
    }
}

/// The answer to a client that has no more requests until a window ends.
pub fn refusal(seconds: u64) -> Refusal {
    let refusal = Refusal::policy("rate_limit", 429, "Too many requests; try again later.");
    Refusal { lines: format!("Retry-After: {seconds}\r\n").into(), ..refusal }
}
