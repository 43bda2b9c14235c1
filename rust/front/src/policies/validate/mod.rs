//! The policy `validate`: parameters and bodies of requests are checked by JSON Schemas. They are made ready when a
//! request needs them, which waits for it; before that, and when others need the memory, there is only their text.
//! That, and checks of large bodies, is work for threads of their own.
mod compiled;
mod evaluate;
mod finish;
mod formats;
#[cfg(fuzzing)]
pub mod fuzzing;
mod json;
mod kept_head;
mod number;
mod parameters;
mod problems;
mod rules;
mod schema;
mod stop;
mod text;
mod times;
mod uris;

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use compiled::{Body, MediaType, Mode, Parameter, Reading, Shape};
use evaluate::{Budget, Evaluation, TooComplex};
use json::{Json, MAX_VALUES};
use kept_head::KeptHead;
use parameters::Sources;
use problems::{Place, Problems};
use schema::{Pattern, Schema};
use stop::Stop;
use text::{TextReader, form_decoded, pairs};

pub use finish::{Unchecked, finish};

use super::cache::{self, Cached};
use super::header;
use crate::http::{Head, Refusal};
use crate::workers;

const NAME: &str = "validate";
/// For so long a check that only reports may keep a request waiting.
const REPORTS_WITHIN: Duration = Duration::from_secs(1);
const TOO_COMPLEX: &str = "is too complex to be checked";
/// How often it is looked for a turn where a domain has too much to be made ready.
const RETRY: Duration = Duration::from_millis(25);

/// The policy of an endpoint.
pub struct Validator {
    text: Box<str>,
    /// Of the endpoints that have this policy: what is made of it counts for that.
    domain: Arc<str>,
    /// Known before the rest; `None` where the text cannot be read.
    mode: OnceLock<Option<Mode>>,
    /// Known once it was ready.
    checks_bodies: OnceLock<bool>,
    ready: RwLock<Option<Made>>,
    is_used: AtomicBool,
    /// Held while it is made ready.
    making: Mutex<()>,
    /// Of the requests that need it, one has it made ready. Held until it is.
    preparing: Arc<tokio::sync::Mutex<()>>,
}

/// Made of the text, or why that cannot be.
type Made = Result<Arc<Ready>, Arc<str>>;

struct Ready {
    mode: Mode,
    parameters: Vec<Parameter>,
    body: Option<Body>,
    schemas: Vec<Schema>,
    /// Of the costliest pattern, for each byte of a text.
    pattern_cost: u64,
    /// Of memory, without patterns: others may have the same.
    own_bytes: usize,
    patterns: Vec<Arc<Pattern>>,
}

/// What is known of a request before its body is there.
pub struct Begun {
    problems: Problems,
    body: BodyKind,
    /// Where its parameters are still to be checked, beside other requests; and what that may cost.
    kept: Option<(KeptHead, Budget)>,
}

impl Begun {
    /// Bytes of memory.
    fn room(&self) -> usize {
        self.kept.as_ref().map_or(0, |(head, _)| head.room())
    }
}

/// What becomes of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyKind {
    /// It is not checked.
    Any,
    /// By its place in the list of media types.
    Of(usize, Reading),
    /// Its type is not accepted.
    Unknown,
    /// It is compressed, and so cannot be checked.
    Encoded,
}

impl BodyKind {
    /// About the memory that it takes to read a body.
    fn room(self, body: &[u8]) -> usize {
        match self {
            Self::Of(_, Reading::Json) => Json::room(body),
            Self::Of(_, Reading::Form) => text::form_room(body),
            _ => 0,
        }
    }
}

/// What is to be done about a request.
pub enum Verdict {
    Fits,
    /// What is wrong, for the log.
    Reported(String),
    Refused(Refusal),
}

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

    /// Otherwise `prepare` is to be waited for.
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
            match workers::turn_to_prepare(&self.domain).await {
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
    fn made(self: &Arc<Self>) -> Made {
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

    fn set_ready(&self, ready: Option<Made>) {
        let before = std::mem::replace(&mut *self.ready.write().unwrap_or_else(PoisonError::into_inner), ready);
        // Not while the lock is held: much may have to be freed.
        drop(before);
    }

    fn mode(&self) -> Option<Mode> {
        *self.mode.get_or_init(|| Some(serde_json::from_str::<compiled::OfMode>(&self.text).ok()?.mode))
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
    fn ready(&self) -> Option<Made> {
        if !self.is_used.load(Ordering::Relaxed) {
            self.is_used.store(true, Ordering::Relaxed);
        }
        self.ready.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where a check of a body of so many bytes keeps nobody waiting.
    fn ready_for(&self, bytes: usize) -> Option<Arc<Ready>> {
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
    pub fn begin(&self, head: &Head<'_, '_>, params: &[(&str, &str)]) -> Option<Result<Begun, Refusal>> {
        let begun = self.ready()?.map(|ready| ready.begin(head, params));
        Some(begun.map_err(|problem| broken(&problem)))
    }

    /// As `Ready::finish`, also where it has to be made ready again: that takes time.
    fn finish(self: &Arc<Self>, begun: Begun, body: &[u8], stop: &Stop) -> Verdict {
        match self.made() {
            Ok(ready) => ready.finish(begun, body, stop),
            Err(problem) => Verdict::Refused(broken(&problem)),
        }
    }
}

/// The policy is of a version that knows more, or the management API has let something through.
fn broken(problem: &str) -> Refusal {
    let refusal = Refusal::policy(NAME, 503, "The policies of this endpoint cannot be enforced at the moment.");
    Refusal { reason: Some(problem.into()), ..refusal }
}

impl Ready {
    fn read(text: &str) -> Result<Self, String> {
        let compiled::Validate { mode, parameters, body, schemas } =
            serde_json::from_str(text).map_err(|error| error.to_string())?;
        let schemas = schemas.into_iter().map(Schema::new).collect::<Result<Vec<_>, _>>()?;
        let patterns: Vec<_> = schemas.iter().flat_map(Schema::patterns).cloned().collect();
        let pattern_cost = patterns.iter().map(|pattern| pattern.cost).max().unwrap_or(0);
        let shapes = parameters.iter().map(|parameter| size_of::<Parameter>() + parameter.shape.bytes());
        let of_body = body.iter().flat_map(|body| &body.types).filter_map(|media| media.shape.as_ref());
        let own_bytes = schemas.iter().map(Schema::bytes).sum::<usize>()
            + shapes.sum::<usize>()
            + of_body.map(Shape::bytes).sum::<usize>();
        Ok(Self { mode, parameters, body, schemas, pattern_cost, own_bytes, patterns })
    }

    /// Of memory, roughly. Of patterns that others have, too, each counts its part.
    fn bytes(&self) -> usize {
        // Each is here twice: in its schema, and in the list.
        let part = |pattern: &Arc<Pattern>| 2 * pattern.bytes() / Arc::strong_count(pattern).max(2);
        self.own_bytes + self.patterns.iter().map(part).sum::<usize>()
    }

    fn begin(&self, head: &Head<'_, '_>, params: &[(&str, &str)]) -> Begun {
        let body = self.body_kind(head);
        let path_and_query = &*head.target.path_and_query;
        let mut problems = Problems::default();
        let sources = Sources::new(path_and_query, head.headers, params, &mut problems);
        if self.check_parameters(&sources, Budget::LEAST, Stop::default(), &mut problems).is_ok() {
            return Begun { problems, body, kept: None };
        }
        let kept = KeptHead::of(path_and_query, head.headers, params);
        let budget = self.budget(kept.bytes());
        Begun { problems: Problems::default(), body, kept: Some((kept, budget)) }
    }

    /// Checks what is left of the head, and the body. What it says once it was stopped is of no use.
    fn finish(&self, mut begun: Begun, body: &[u8], stop: &Stop) -> Verdict {
        if let Some((head, budget)) = begun.kept {
            let problems = &mut begun.problems;
            head.with_sources(problems, |sources, problems| {
                if let Err(parameter) = self.check_parameters(sources, budget, stop.clone(), problems) {
                    let root = Place::root(parameter.source.name());
                    problems.add(&root.member(&parameter.name), TOO_COMPLEX);
                }
            });
        }
        let mut status = 400;
        let place = Place::root("body");
        if let Some(described) = &self.body {
            match begun.body {
                _ if body.is_empty() => {
                    if described.required {
                        begun.problems.add(&place, "is required");
                    }
                }
                BodyKind::Any => {}
                BodyKind::Of(at, _) => {
                    if self.check_body(&described.types[at], body, &mut begun.problems, stop).is_err() {
                        begun.problems.add(&place, TOO_COMPLEX);
                    }
                }
                BodyKind::Unknown => {
                    status = 415;
                    let names: Vec<&str> = described.types.iter().map(|media| &*media.name).collect();
                    begun.problems.add(&place, format!("must have the Content-Type {}", names.join(" or ")));
                }
                BodyKind::Encoded => {
                    status = 415;
                    begun.problems.add(&place, "must not have a Content-Encoding: it is checked here");
                }
            }
        }
        let problems = begun.problems;
        if problems.is_empty() {
            return Verdict::Fits;
        }
        if self.mode == Mode::Report {
            return Verdict::Reported(problems.summary());
        }
        let refusal = Refusal::policy(NAME, status, "");
        Verdict::Refused(Refusal {
            message: problems.summary().into(),
            problems: Some(problems.body().into()),
            ..refusal
        })
    }

    fn budget(&self, bytes: usize) -> Budget {
        Budget::of(bytes, self.pattern_cost)
    }

    fn evaluation(&self, budget: Budget, stop: Stop) -> Evaluation<'_> {
        Evaluation::new(&self.schemas, budget, stop)
    }

    /// # Errors
    /// The parameter at which it takes too much work.
    fn check_parameters(
        &self,
        sources: &Sources<'_>,
        budget: Budget,
        stop: Stop,
        problems: &mut Problems,
    ) -> Result<(), &Parameter> {
        let mut evaluation = self.evaluation(budget, stop);
        let mut reader = TextReader { evaluation: &mut evaluation };
        self.parameters
            .iter()
            .try_for_each(|parameter| reader.parameter(parameter, sources, problems).map_err(|TooComplex| parameter))
    }

    fn body_kind(&self, head: &Head<'_, '_>) -> BodyKind {
        let Some(body) = &self.body else { return BodyKind::Any };
        let is_plain = |value: &[u8]| value.trim_ascii().eq_ignore_ascii_case(b"identity") || value.is_empty();
        let encodings = head.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("content-encoding"));
        let is_encoded = !encodings.into_iter().all(|header| is_plain(header.value));
        let value = header(head, "content-type").map(String::from_utf8_lossy).unwrap_or_default();
        let name = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let group = name.split_once('/').map(|(group, _)| format!("{group}/*")).unwrap_or_default();
        let find = |wanted: &str| body.types.iter().position(|media| &*media.name == wanted && !wanted.is_empty());
        match find(&name).or_else(|| find(&group)).or_else(|| find("*/*")) {
            Some(at) if body.types[at].read == Reading::Nothing => BodyKind::Any,
            Some(_) if is_encoded => BodyKind::Encoded,
            Some(at) => BodyKind::Of(at, body.types[at].read),
            None => BodyKind::Unknown,
        }
    }

    fn check_body(
        &self,
        media: &MediaType,
        body: &[u8],
        problems: &mut Problems,
        stop: &Stop,
    ) -> Result<(), TooComplex> {
        let Some(shape) = &media.shape else { return Ok(()) };
        let place = Place::root("body");
        let mut evaluation = self.evaluation(self.budget(body.len()), stop.clone());
        let mut reader = TextReader { evaluation: &mut evaluation };
        if media.read == Reading::Json {
            return match Json::read(body, stop) {
                Ok(value) => reader.check(shape, &value, &place, problems),
                Err(problem) => {
                    problems.add(&place, problem);
                    Ok(())
                }
            };
        }
        let Ok(text) = std::str::from_utf8(body) else {
            problems.add(&place, "is not UTF-8");
            return Ok(());
        };
        if media.read == Reading::Text {
            let value = reader.scalar(shape, Cow::Borrowed(text))?;
            return reader.check(shape, &value, &place, problems);
        }
        let mut fields = Vec::new();
        for (name, value) in pairs(text) {
            reader.evaluation.spend(1)?;
            let (Some(name), Some(value)) = (name, form_decoded(value)) else {
                problems.add(&place, "is not percent-encoded UTF-8");
                return Ok(());
            };
            if fields.len() == MAX_VALUES {
                problems.add(&place, format!("has more than {MAX_VALUES} members"));
                return Ok(());
            }
            fields.push((name, value));
        }
        let value = reader.object(shape, fields, &place, problems)?;
        reader.check(shape, &value, &place, problems)
    }
}

#[cfg(test)]
mod tests;
