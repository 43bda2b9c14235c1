//! The policy `validate` of an endpoint, which is made ready when a request needs it.
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use super::super::cache::{self, Cached};
use super::compiled::{Mode, ModeOnly};
use super::ready::{PartialCheck, Ready};
use super::stop::StopFlag;
use super::verdict::{NAME, Verdict};
use crate::request::{Head, Refusal};
use crate::workers;

/// How long a check that only reports may keep a request waiting.
pub(super) const REPORTS_WITHIN: Duration = Duration::from_secs(1);
/// How often it is looked for a turn where a domain has too much to be made ready.
const RETRY: Duration = Duration::from_millis(25);

/// The policy of an endpoint.
pub struct Validator {
    text: Box<str>,
    /// The domain of the endpoints that have this policy: what is made of the policy counts for that.
    domain: Arc<str>,
    /// Known before the rest; `None` where the text cannot be read.
    mode: OnceLock<Option<Mode>>,
    /// Known once it was ready.
    checks_bodies: OnceLock<bool>,
    ready: RwLock<Option<ReadyResult>>,
    is_used: AtomicBool,
    /// Held while it is made ready.
    making: Mutex<()>,
    /// Of the requests that need it, one has it made ready. Held until it is.
    preparing: Arc<tokio::sync::Mutex<()>>,
}

/// Made of the text, or why that cannot be.
type ReadyResult = Result<Arc<Ready>, Arc<str>>;

impl fmt::Debug for Validator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Validator")
    }
}

impl Cached for Validator {
    fn bytes(&self) -> usize {
        let ready = self.ready.read().unwrap_or_else(PoisonError::into_inner);
        ready.as_ref().and_then(|ready| ready.as_ref().ok()).map_or(0, |ready| ready.bytes())
    }

    fn take_used(&self) -> bool {
        self.is_used.swap(false, Ordering::Relaxed)
    }

    fn forget(&self) {
        self.set_ready(None);
    }
}

impl Validator {
    pub fn new(text: Box<str>, domain: Arc<str>) -> Self {
        Self {
            text,
            domain,
            mode: OnceLock::new(),
            checks_bodies: OnceLock::new(),
            ready: RwLock::default(),
            is_used: AtomicBool::new(false),
            making: Mutex::default(),
            preparing: Arc::default(),
        }
    }

    /// Whether its schemas are prepared. Otherwise `prepare` is to be waited for.
    pub fn is_ready(&self) -> bool {
        self.ready.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Makes it ready, without keeping other requests waiting: domains take turns. It is done once for all threads,
    /// also when nobody waits for it any more. False when the system has no thread.
    pub async fn prepare(self: &Arc<Self>) -> bool {
        let making = self.preparing.clone().lock_owned().await;
        if self.is_ready() {
            return true;
        }
        let turn = loop {
            match workers::wait_for_turn_to_prepare(&self.domain).await {
                Some(turn) => break turn,
                None => tokio::time::sleep(RETRY).await,
            }
        };
        let validator = self.clone();
        let made = turn.run(move || {
            let _ = validator.made();
            drop(making);
        });
        made.await.is_some()
    }

    /// It is made ready here where it is not: that takes time.
    pub(super) fn made(self: &Arc<Self>) -> ReadyResult {
        if let Some(ready) = self.ready() {
            return ready;
        }
        let making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ready) = self.ready() {
            return ready;
        }
        let ready = Ready::read(&self.text).map(Arc::new).map_err(Arc::from);
        self.checks_bodies.get_or_init(|| ready.as_ref().is_ok_and(|ready| ready.body.is_some()));
        self.set_ready(Some(ready.clone()));
        drop(making);
        cache::keep(&(self.clone() as Arc<dyn Cached>), &self.domain);
        ready
    }

    fn set_ready(&self, ready: Option<ReadyResult>) {
        let before = std::mem::replace(&mut *self.ready.write().unwrap_or_else(PoisonError::into_inner), ready);
        // Not while the lock is held: much may have to be freed.
        drop(before);
    }

    fn mode(&self) -> Option<Mode> {
        *self.mode.get_or_init(|| Some(serde_json::from_str::<ModeOnly>(&self.text).ok()?.mode))
    }

    /// How long checks may keep a request waiting that has so much time.
    pub fn check_time(&self, timeout: Duration) -> Duration {
        if self.only_reports() { timeout.min(REPORTS_WITHIN) } else { timeout }
    }

    /// Nothing is refused: what is wrong is only counted and logged.
    pub fn only_reports(&self) -> bool {
        self.mode() == Some(Mode::Report)
    }

    /// `None`: it is not ready.
    fn ready(&self) -> Option<ReadyResult> {
        if !self.is_used.load(Ordering::Relaxed) {
            self.is_used.store(true, Ordering::Relaxed);
        }
        self.ready.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where a check of a body of so many bytes keeps nobody waiting.
    pub(super) fn ready_for(&self, bytes: usize) -> Option<Arc<Ready>> {
        self.ready()?.ok().filter(|ready| !ready.budget(bytes).is_large())
    }

    /// Whether it has to see bodies.
    pub fn checks_bodies(&self) -> bool {
        self.checks_bodies.get().is_some_and(|checks| *checks)
    }

    /// Checks the head of a request; its parameters only if that costs little. `params`: names and values of the path.
    /// `None`: it is not ready.
    ///
    /// # Errors
    /// When the policy cannot be enforced.
    pub fn begin(&self, head: &Head<'_, '_>, params: &[(&str, &str)]) -> Option<Result<PartialCheck, Refusal>> {
        let partial = self.ready()?.map(|ready| ready.begin(head, params));
        Some(partial.map_err(|problem| broken(&problem)))
    }

    /// Does what `Ready::finish` does, also where it has to be made ready again: that takes time.
    pub(super) fn finish(self: &Arc<Self>, partial: PartialCheck, body: &[u8], stop: &StopFlag) -> Verdict {
        match self.made() {
            Ok(ready) => ready.finish(partial, body, stop),
            Err(problem) => Verdict::Refused(broken(&problem)),
        }
    }
}

/// The policy is of a version that knows more, or the management API has let something through.
fn broken(problem: &str) -> Refusal {
    let refusal = Refusal::policy(NAME, 503, "The policies of this endpoint cannot be enforced at the moment.");
    Refusal { reason: Some(problem.into()), ..refusal }
}
