//! What is made of the text of a policy: checks requests by it.
use std::borrow::Cow;
use std::sync::Arc;

use super::compiled::{BodyFormat, CompiledBody, CompiledValidate, MediaType, Mode, Parameter, Shape};
use super::evaluate::{Budget, SchemaEvaluation, TooComplex};
use super::json::{Json, MAX_VALUES};
use super::kept_head::KeptHead;
use super::parameters::Sources;
use super::problems::{Place, Problems};
use super::schema::{Pattern, Schema};
use super::stop::StopFlag;
use super::text::{self, TextReader, form_decoded, pairs};
use super::verdict::{NAME, Verdict};
use crate::request::{Head, Refusal};

pub const TOO_COMPLEX: &str = "is too complex to be checked";

pub struct Ready {
    mode: Mode,
    parameters: Vec<Parameter>,
    pub(super) body: Option<CompiledBody>,
    pub(super) schemas: Vec<Schema>,
    /// The cost of the costliest pattern for each byte of a text.
    pattern_cost: u64,
    /// What it takes of memory, without patterns: others may have the same.
    own_bytes: usize,
    patterns: Vec<Arc<Pattern>>,
}

/// A check of a request whose head has been looked at: what is known before its body is there.
pub struct PartialCheck {
    pub(super) problems: Problems,
    pub(super) body: BodyKind,
    /// Where its parameters are still to be checked, beside other requests; and what that may cost.
    pub(super) kept: Option<(KeptHead, Budget)>,
}

impl PartialCheck {
    /// Bytes of memory.
    pub(super) fn room(&self) -> usize {
        self.kept.as_ref().map_or(0, |(head, _)| head.room())
    }
}

/// What becomes of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyKind {
    /// It is not checked.
    Any,
    /// It is checked as a media type, which has this place in the list of all.
    Of(usize, BodyFormat),
    /// Its type is not accepted.
    Unknown,
    /// It is compressed, and so cannot be checked.
    Encoded,
}

impl BodyKind {
    /// About the memory that it takes to read a body.
    pub(super) fn room(self, body: &[u8]) -> usize {
        match self {
            Self::Of(_, BodyFormat::Json) => Json::room(body),
            Self::Of(_, BodyFormat::Form) => text::form_room(body),
            _ => 0,
        }
    }
}

impl Ready {
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let CompiledValidate { mode, parameters, body, schemas } =
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

    /// What it takes of memory, roughly. Of patterns that others have, too, each counts its part.
    pub(super) fn bytes(&self) -> usize {
        // Each is here twice: in its schema, and in the list.
        let part = |pattern: &Arc<Pattern>| 2 * pattern.bytes() / Arc::strong_count(pattern).max(2);
        self.own_bytes + self.patterns.iter().map(part).sum::<usize>()
    }

    pub(super) fn begin(&self, head: &Head<'_, '_>, params: &[(&str, &str)]) -> PartialCheck {
        let body = self.body_kind(head);
        let path_and_query = &*head.target.path_and_query;
        let mut problems = Problems::default();
        let sources = Sources::new(path_and_query, head.headers, params, &mut problems);
        if self.check_parameters(&sources, Budget::LEAST, StopFlag::default(), &mut problems).is_ok() {
            return PartialCheck { problems, body, kept: None };
        }
        let kept = KeptHead::of(path_and_query, head.headers, params);
        let budget = self.budget(kept.bytes());
        PartialCheck { problems: Problems::default(), body, kept: Some((kept, budget)) }
    }

    /// Checks what is left of the head, and the body. What it says once it was stopped is of no use.
    pub(super) fn finish(&self, mut partial: PartialCheck, body: &[u8], stop: &StopFlag) -> Verdict {
        if let Some((head, budget)) = partial.kept {
            let problems = &mut partial.problems;
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
            match partial.body {
                _ if body.is_empty() => {
                    if described.required {
                        partial.problems.add(&place, "is required");
                    }
                }
                BodyKind::Any => {}
                BodyKind::Of(at, _) => {
                    if self.check_body(&described.types[at], body, &mut partial.problems, stop).is_err() {
                        partial.problems.add(&place, TOO_COMPLEX);
                    }
                }
                BodyKind::Unknown => {
                    status = 415;
                    let names: Vec<&str> = described.types.iter().map(|media| &*media.name).collect();
                    partial.problems.add(&place, format!("must have the Content-Type {}", names.join(" or ")));
                }
                BodyKind::Encoded => {
                    status = 415;
                    partial.problems.add(&place, "must not have a Content-Encoding: it is checked here");
                }
            }
        }
        let problems = partial.problems;
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

    pub(super) fn budget(&self, bytes: usize) -> Budget {
        Budget::of(bytes, self.pattern_cost)
    }

    pub(super) fn evaluation(&self, budget: Budget, stop: StopFlag) -> SchemaEvaluation<'_> {
        SchemaEvaluation::new(&self.schemas, budget, stop)
    }

    /// # Errors
    /// The parameter at which it takes too much work.
    fn check_parameters(
        &self,
        sources: &Sources<'_>,
        budget: Budget,
        stop: StopFlag,
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
        let value = head.single_header("content-type").map(String::from_utf8_lossy).unwrap_or_default();
        let name = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let group = name.split_once('/').map(|(group, _)| format!("{group}/*")).unwrap_or_default();
        let find = |name: &str| body.types.iter().position(|media| &*media.name == name && !name.is_empty());
        match find(&name).or_else(|| find(&group)).or_else(|| find("*/*")) {
            Some(at) if body.types[at].read == BodyFormat::Nothing => BodyKind::Any,
            Some(_) if is_encoded => BodyKind::Encoded,
            Some(at) => BodyKind::Of(at, body.types[at].read),
            None => BodyKind::Unknown,
        }
    }

    pub(super) fn check_body(
        &self,
        media: &MediaType,
        body: &[u8],
        problems: &mut Problems,
        stop: &StopFlag,
    ) -> Result<(), TooComplex> {
        let Some(shape) = &media.shape else { return Ok(()) };
        let place = Place::root("body");
        let mut evaluation = self.evaluation(self.budget(body.len()), stop.clone());
        let mut reader = TextReader { evaluation: &mut evaluation };
        if media.read == BodyFormat::Json {
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
        if media.read == BodyFormat::Text {
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
