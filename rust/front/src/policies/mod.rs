//! Policies: what is done with a request before a handler gets it, and with its answer. Evaluated in this order: CORS,
//! addresses, limits of rates, authentication, redirects and maintenance, headers, length of the body, its signature,
//! what parameters and body have to be; the answer is compressed at last. `docs/POLICIES.md` describes them for users.
//!
//! A policy is compiled once for all endpoints that have the same ones, and shared by all threads.
mod api_key;
mod auth;
mod basic;
mod cache;
mod clock;
mod compiled;
mod compress;
mod cors;
mod counts;
mod evaluation;
mod fixed_answers;
#[cfg(fuzzing)]
pub mod fuzzing;
mod headers;
mod hex;
mod hmac;
mod identity;
mod ip;
mod jwt;
mod key_wait;
mod known_tokens;
mod origins;
mod parts;
mod rate_headers;
mod rate_limit;
mod shared_rates;
mod validate;

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use cache::set_cache_limit;
pub use compiled::{CompiledPolicies, Sockets, Texts};
pub use compress::{Encoding, compressed, lines_for_encoding};
pub use cors::preflight;
pub use counts::{COUNTS, now_ms, set_seed, set_share};
pub use evaluation::{Evaluation, NextStep};
pub use identity::Identity;
pub use key_wait::KeyWait;
pub use origins::Origins;
pub use shared_rates::{count_for_replaced_front, give_counts};
pub use validate::{CheckSkipped, PartialCheck, Verdict};

use crate::memory::MemoryShare;
use crate::request::{Head, Refusal};
use crate::supervisor::Supervisor;
use api_key::ApiKeys;
use auth::{Auth, AuthOutcome};
use basic::Basic;
use compiled::{Maintenance, Redirect};
use compress::Compress;
use cors::Cors;
use headers::{HeaderChanges, Headers, NO_CHANGES};
use hmac::{Hmac, Signature};
use ip::Networks;
use jwt::Jwt;
use parts::{InternTable, InternedParts, PartReader};
use rate_limit::Rules;
use shared_rates::SharedRule;
pub use validate::Validator;

/// The policies of an endpoint. Most have none. What others have, too, is shared with them.
#[derive(Debug)]
pub struct Policies {
    pub cors: Option<Arc<Cors>>,
    ip: Option<Arc<Networks>>,
    rules: Option<Arc<Rules>>,
    auth: Option<Auth>,
    /// Why no request is let in.
    broken: Option<Box<str>>,
    redirect: Option<Arc<Redirect>>,
    maintenance: Option<Arc<Maintenance>>,
    headers: Option<Arc<Headers>>,
    pub body_limit: Option<usize>,
    compress: Option<Arc<Compress>>,
    validator: Option<Arc<Validator>>,
    sockets: Option<Arc<Sockets>>,
}

/// All that endpoints have.
#[derive(Default)]
struct InternedPolicies {
    whole: InternTable<Policies>,
    parts: InternedParts,
}

/// What the policies of an endpoint say of a request.
#[derive(Default)]
pub struct PolicyOutcome {
    /// Header lines for its answer, whoever gives that.
    pub lines: String,
    pub identity: Option<Arc<Identity>>,
    /// The answer of a policy, instead of that of the handler.
    pub refusal: Option<Refusal>,
    /// A signature that is to be checked when the body is there.
    signature: Option<Signature>,
    /// Rules by which all machines count the request together, or the front that replaces this one does.
    pub shared_rules: Vec<SharedRule>,
    pub encoding: Option<Encoding>,
    /// What `validate` has found in the head, or why it has not checked that.
    pub validation: Option<Result<PartialCheck, CheckSkipped>>,
    /// What is wrong with a request that it lets through.
    pub reported: OnceCell<String>,
}

impl PolicyOutcome {
    /// Counts the request by the rules that others count, and refuses it when one of them has no more.
    pub async fn count_shared_rates(&mut self, supervisor: &Supervisor) {
        let rules = std::mem::take(&mut self.shared_rules);
        if let Some(refusal) = shared_rates::count_shared_rates(&rules, &mut self.lines, supervisor).await {
            self.refusal = Some(refusal);
        }
    }
}

impl Policies {
    /// Those that were compiled before for the same domain, if they still exist: what they remember, such as tokens, is
    /// kept. What is made of them counts for the domain. `texts`: of their parts, as far as no endpoint has them.
    pub fn interned(compiled: CompiledPolicies, texts: &Texts, domain: &Arc<str>) -> Arc<Self> {
        thread_local! {
            static KNOWN: RefCell<InternedPolicies> = RefCell::default();
        }
        KNOWN.with_borrow_mut(|InternedPolicies { whole, parts }| {
            if let Some(policies) = whole.get(domain, &compiled.digest) {
                return policies;
            }
            let digest = compiled.digest.clone();
            let (policies, problem) = Self::new(compiled, texts, domain, parts);
            if let Some(problem) = problem {
                // Not kept for others: it may come with all its parts the next time.
                return Arc::new(Self { broken: Some(problem.into()), ..policies });
            }
            let policies = Arc::new(policies);
            whole.add(domain, digest, &policies);
            policies
        })
    }

    /// Also says why a policy cannot be enforced: it is of a version that knows others, or its text is missing.
    fn new(
        compiled: CompiledPolicies,
        texts: &Texts,
        domain: &Arc<str>,
        known: &mut InternedParts,
    ) -> (Self, Option<String>) {
        let CompiledPolicies { parts: digests, broken, body_limit, whole, .. } = compiled;
        let names_auth = ["api_key", "basic", "hmac", "jwt"].iter().any(|name| digests.contains_key(*name));
        let has_auth = names_auth || whole.auth.is_some();
        let auth = whole.auth.unwrap_or_default();
        let mut read = PartReader { texts, domain, digests, problem: None };
        let validate = |text: &str| Ok(Validator::new(text.into(), domain.clone()));
        let api_keys = read.json("api_key", &mut known.api_key, auth.api_key, |keys| Ok(ApiKeys::new(keys)));
        let basic = read.json("basic", &mut known.basic, auth.basic, |basic| Ok(Basic::new(basic)));
        let hmac = read.json("hmac", &mut known.hmac, auth.hmac, |hmac| Ok(Hmac::new(hmac)));
        let jwt = read.json("jwt", &mut known.jwt, auth.jwt, |jwt| Ok(Jwt::new(jwt, domain)));
        let policies = Self {
            cors: read.json("cors", &mut known.cors, whole.cors, |cors| Ok(Cors::new(cors))),
            ip: read.json("ip", &mut known.ip, whole.ip, Networks::new),
            rules: read.json("rate_limits", &mut known.rate_limits, whole.rate_limits, |rules| Ok(Rules::new(rules))),
            auth: has_auth.then(|| Auth::new(api_keys, basic, hmac, jwt)),
            broken,
            redirect: read.json("redirect", &mut known.redirect, whole.redirect, Ok),
            maintenance: read.json("maintenance", &mut known.maintenance, whole.maintenance, Ok),
            headers: read.json("headers", &mut known.headers, whole.headers, |headers| Ok(Headers::new(headers))),
            body_limit,
            compress: read.json("compress", &mut known.compress, whole.compress, |one| Ok(Compress::new(one))),
            validator: match whole.validate {
                Some(text) => Some(Arc::new(Validator::new(text, domain.clone()))),
                None => read.text("validate", &mut known.validate, validate),
            },
            sockets: read.json("websocket", &mut known.websocket, whole.websocket, Ok),
        };
        (policies, read.finish())
    }

    /// Evaluates all that the head of a request decides, or as much as can be before the next step, which `evaluation`
    /// has then. `params`: names and values of its path. `shares_rates`: all rules are added to the outcome, to be
    /// counted by others.
    pub fn evaluate(
        &self,
        head: &Head<'_, '_>,
        params: &[(&str, &str)],
        client_ip: IpAddr,
        evaluation: &mut Evaluation,
        shares_rates: bool,
    ) -> PolicyOutcome {
        let mut outcome = PolicyOutcome::default();
        // This comes before anything is counted: policies are evaluated again.
        if let Some(validator) = self.validator.as_ref().filter(|one| !evaluation.gave_up_schema && !one.is_ready()) {
            evaluation.next = NextStep::PrepareSchema(validator.clone());
            return outcome;
        }
        if let Some(cors) = &self.cors {
            cors.add_lines(head, &mut outcome.lines);
        }
        outcome.refusal = self.refusal(head, client_ip, evaluation, shares_rates, &mut outcome);
        if matches!(evaluation.next, NextStep::CountRates) {
            return outcome;
        }
        if let (Some(validator), None) = (&self.validator, &outcome.refusal) {
            match validator.begin(head, params) {
                Some(Ok(check)) => outcome.validation = Some(Ok(check)),
                Some(Err(refusal)) => outcome.refusal = Some(refusal),
                None => outcome.validation = Some(Err(CheckSkipped::Expired)),
            }
        }
        if outcome.refusal.is_none() {
            outcome.encoding = self.compress.as_ref().and_then(|compress| compress.encoding_for(head));
        }
        outcome
    }

    fn refusal(
        &self,
        head: &Head<'_, '_>,
        client_ip: IpAddr,
        evaluation: &mut Evaluation,
        shares_rates: bool,
        outcome: &mut PolicyOutcome,
    ) -> Option<Refusal> {
        if self.ip.as_ref().is_some_and(|networks| !networks.admit(client_ip)) {
            return Some(Refusal::policy("ip", 403, "This address may not call this endpoint."));
        }
        // A request whose policies are evaluated again was counted.
        let mut refused = None;
        if !std::mem::replace(&mut evaluation.are_rates_counted, true) {
            let rules = self.rules.as_deref().map_or(&[][..], |rules| &rules.early);
            let shared = &mut outcome.shared_rules;
            if shares_rates {
                shared.extend(rules.iter().map(|rule| rule.shared(head, client_ip, None)));
            } else {
                refused = rate_limit::check(rules, head, client_ip, None, &mut evaluation.rate_lines, shared);
            }
            // Who has no more costs no check of credentials.
            if refused.is_none() && self.auth.is_some() && !shared.is_empty() {
                evaluation.next = NextStep::CountRates;
            }
        }
        outcome.lines.push_str(&evaluation.rate_lines);
        if refused.is_some() || matches!(evaluation.next, NextStep::CountRates) {
            return refused;
        }
        if let Some(reason) = &self.broken {
            let refusal =
                Refusal::policy("auth", 503, "The policies of this endpoint cannot be enforced at the moment.");
            return Some(Refusal { reason: Some(reason.clone()), ..refusal });
        }
        if let Some(auth) = &self.auth {
            match auth.check(head, evaluation) {
                AuthOutcome::Admitted(identity) => outcome.identity = Some(identity),
                AuthOutcome::Signed(signature) => outcome.signature = Some(signature),
                AuthOutcome::Refused(refusal) => return Some(refusal),
            }
        }
        let PolicyOutcome { identity, lines, shared_rules, .. } = outcome;
        let identity = identity.as_deref();
        let rules = self.rules.as_deref().map_or(&[][..], |rules| &rules.late);
        let refused = if shares_rates {
            shared_rules.extend(rules.iter().map(|rule| rule.shared(head, client_ip, identity)));
            None
        } else {
            rate_limit::check(rules, head, client_ip, identity, lines, shared_rules)
        };
        refused
            .or_else(|| Some(self.redirect.as_ref()?.answer(head)))
            .or_else(|| Some(self.maintenance.as_ref()?.answer()))
    }

    /// Whether the body of a request is to be there before a handler gets anything of it.
    pub fn needs_body(&self, outcome: &PolicyOutcome) -> bool {
        outcome.signature.is_some() || self.validator.as_ref().is_some_and(|validator| validator.checks_bodies())
    }

    /// Checks a signature of the body, if the head has one and nothing else lets the caller in.
    pub fn refuse_body(&self, outcome: &PolicyOutcome, body: &[u8]) -> Option<Refusal> {
        let signature = outcome.signature.as_ref()?;
        self.auth.as_ref()?.refuse_body(signature, body)
    }

    /// Completes what `validate` checks of a request, with its body. `memory` is for that, `owner` is its endpoint.
    ///
    /// # Errors
    /// When it cannot be checked.
    pub async fn validate<B: AsRef<[u8]> + Send + Sync + 'static>(
        &self,
        check: PartialCheck,
        body: Arc<B>,
        memory: MemoryShare,
        owner: &Arc<str>,
        deadline: Instant,
    ) -> Result<Verdict, CheckSkipped> {
        match &self.validator {
            Some(validator) => validate::finish(validator, check, body, memory, owner, deadline).await,
            None => Ok(Verdict::Fits),
        }
    }

    /// How long `validate` may keep a request waiting that has so much time.
    pub fn check_time(&self, timeout: Duration) -> Duration {
        self.validator.as_ref().map_or(timeout, |validator| validator.check_time(timeout))
    }

    /// Whether `validate` lets every request through.
    pub fn only_reports(&self) -> bool {
        self.validator.as_ref().is_some_and(|validator| validator.only_reports())
    }

    fn response_changes(&self) -> &HeaderChanges {
        self.headers.as_deref().map_or(&NO_CHANGES, |headers| &headers.response)
    }

    /// Whether the head of a request has to be changed for the handler.
    pub fn changes_request(&self) -> bool {
        self.headers.as_deref().is_some_and(|headers| !headers.request.is_empty())
    }

    /// The headers of a request, for the handler.
    pub fn request_headers<'a>(&'a self, headers: &[httparse::Header<'a>]) -> Vec<httparse::Header<'a>> {
        let changes = self.headers.as_deref().map_or(&NO_CHANGES, |headers| &headers.request);
        changes.applied_to(headers)
    }

    /// The header lines of an answer of the handler. `host_lines`: what it has said of the whole host.
    pub fn response_lines<'a>(
        &self,
        outcome: &PolicyOutcome,
        lines: Cow<'a, [u8]>,
        host_lines: &[u8],
    ) -> Cow<'a, [u8]> {
        let mut lines = lines;
        if !host_lines.is_empty() {
            lines.to_mut().extend_from_slice(&self.response_changes().allowed_lines(host_lines));
        }
        if !outcome.lines.is_empty() || !self.response_changes().is_empty() || self.cors.is_some() {
            let mut changed = self.response_changes().applied_to_lines(&lines, self.cors.is_some());
            changed.extend_from_slice(outcome.lines.as_bytes());
            lines = changed.into();
        }
        if self.compress.is_some() {
            // Answers differ by what clients accept, also those that are sent as they are.
            lines.to_mut().extend_from_slice(b"Vary: Accept-Encoding\r\n");
        }
        lines
    }

    /// The header lines of an answer of the gateway itself.
    pub fn own_lines(&self, outcome: &PolicyOutcome, lines: &str) -> String {
        let mut changed = self.response_changes().applied_to_lines(lines.as_bytes(), false);
        changed.extend_from_slice(outcome.lines.as_bytes());
        String::from_utf8_lossy(&changed).into_owned()
    }

    /// The encoding for an answer of the handler; none when it is sent as it is.
    pub fn encoding(&self, outcome: &PolicyOutcome, status: u16, lines: &[u8], length: usize) -> Option<Encoding> {
        let encoding = outcome.encoding?;
        self.compress.as_ref()?.suits(status, lines, length).then_some(encoding)
    }

    /// What the policy `websocket` says.
    pub fn sockets(&self) -> Option<&Sockets> {
        self.sockets.as_deref()
    }
}
