//! The parameters of a request: where they are, and how their values are written (OpenAPI: style and explode).
use std::borrow::Cow;

use super::compiled::{Parameter, ParameterStyle, Source, Types};
use super::evaluate::TooComplex;
use super::json::Json;
use super::problems::{Place, Problems};
use super::text::{TextReader, form_decoded, members, pairs};

/// Where the parameters of a request are.
pub struct Sources<'r> {
    /// Names and decoded values.
    path: &'r [(&'r str, &'r str)],
    /// Decoded names, by which they are sorted, and values as they were sent.
    query: Vec<(Cow<'r, str>, &'r str)>,
    headers: &'r [httparse::Header<'r>],
}

/// The texts of a parameter.
enum ParameterTexts<'r> {
    None,
    /// Texts of the same name, to be decoded.
    Encoded(Vec<&'r str>),
    Plain(Vec<Cow<'r, str>>),
    /// Members of an object, which have parameters of their own, to be decoded.
    Members(Vec<(Cow<'r, str>, &'r str)>),
}

impl<'r> Sources<'r> {
    pub fn new(
        path_and_query: &'r str,
        headers: &'r [httparse::Header<'r>],
        path: &'r [(&'r str, &'r str)],
        problems: &mut Problems,
    ) -> Self {
        let query = path_and_query.split_once('?').map_or("", |(_, query)| query);
        let mut known = Vec::new();
        for (name, value) in pairs(query) {
            match name {
                Some(name) => known.push((name, value)),
                None => problems.add(&Place::root("query"), "is not percent-encoded UTF-8"),
            }
        }
        // There may be thousands. Those of a name stay in their order.
        known.sort_by(|(one, _), (other, _)| one.cmp(other));
        Self { path, query: known, headers }
    }

    /// Steps that it takes to find a parameter.
    fn steps(&self, parameter: &Parameter) -> u64 {
        1 + match parameter.source {
            Source::Path => self.path.len() as u64 / 2,
            Source::Query if is_found_by_name(parameter) => 0,
            Source::Query => self.query.len() as u64 / 2,
            Source::Header => self.headers.len() as u64 / 2,
            Source::Cookie => {
                let bytes: usize = self.header_lines("cookie").map(<[u8]>::len).sum();
                (self.headers.len() + bytes / 4) as u64 / 2
            }
        }
    }

    fn texts(&self, parameter: &Parameter) -> ParameterTexts<'r> {
        let name = &*parameter.name;
        match parameter.source {
            Source::Path => {
                let found = self.path.iter().find(|(known, _)| *known == name);
                found.map_or(ParameterTexts::None, |(_, value)| ParameterTexts::Plain(vec![Cow::Borrowed(*value)]))
            }
            Source::Query => self.query_texts(parameter),
            Source::Header => plain(self.header_lines(name).map(text_of).collect()),
            Source::Cookie => {
                let pairs = self.header_lines("cookie").flat_map(|line| line.split(|&byte| byte == b';'));
                let values = pairs.filter_map(|pair| {
                    let pair = pair.trim_ascii();
                    let equals = pair.iter().position(|&byte| byte == b'=')?;
                    (&pair[..equals] == name.as_bytes()).then(|| text_of(&pair[equals + 1..]))
                });
                plain(values.collect())
            }
        }
    }

    fn header_lines(&self, name: &str) -> impl Iterator<Item = &'r [u8]> {
        self.headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value)
    }

    fn query_texts(&self, parameter: &Parameter) -> ParameterTexts<'r> {
        let name = &*parameter.name;
        let shape = &parameter.shape;
        let members: Vec<_> = if parameter.style == ParameterStyle::DeepObject {
            let within = |known: &str| {
                let rest = known.strip_prefix(name)?.strip_prefix('[')?.strip_suffix(']')?;
                Some(Cow::Owned(rest.to_owned()))
            };
            self.query.iter().filter_map(|(known, value)| Some((within(known)?, *value))).collect()
        } else if !is_found_by_name(parameter) {
            let is_member = |known: &str| shape.members.contains_key(known);
            self.query.iter().filter(|(known, _)| is_member(known)).cloned().collect()
        } else {
            let first = self.query.partition_point(|(known, _)| **known < *name);
            let same = self.query[first..].iter().take_while(|(known, _)| known == name);
            let values: Vec<_> = same.map(|(_, value)| *value).collect();
            return if values.is_empty() { ParameterTexts::None } else { ParameterTexts::Encoded(values) };
        };
        if members.is_empty() { ParameterTexts::None } else { ParameterTexts::Members(members) }
    }
}

/// A parameter of the query; otherwise its members have names of their own.
fn is_found_by_name(Parameter { style, explode, is_json, shape, .. }: &Parameter) -> bool {
    let is_spread = *style == ParameterStyle::Form && *explode && !is_json && shape.types == Types::OBJECT;
    *style != ParameterStyle::DeepObject && !is_spread
}

fn plain(values: Vec<Cow<'_, str>>) -> ParameterTexts<'_> {
    if values.is_empty() { ParameterTexts::None } else { ParameterTexts::Plain(values) }
}

/// A header value as the handler gets it.
fn text_of(value: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(value) {
        Ok(text) => text.into(),
        Err(_) => value.iter().map(|&byte| char::from(byte)).collect::<String>().into(),
    }
}

impl TextReader<'_, '_> {
    /// Checks a parameter of a request.
    ///
    /// # Errors
    /// When it takes too much work.
    pub fn parameter(
        &mut self,
        parameter: &Parameter,
        sources: &Sources<'_>,
        problems: &mut Problems,
    ) -> Result<(), TooComplex> {
        let root = Place::root(parameter.source.name());
        let place = root.member(&parameter.name);
        self.evaluation.spend(sources.steps(parameter))?;
        let texts = sources.texts(parameter);
        let is_empty = match &texts {
            ParameterTexts::None => true,
            ParameterTexts::Encoded(values) => parameter.allow_empty && values == &[""],
            ParameterTexts::Plain(values) => parameter.allow_empty && values.len() == 1 && values[0].is_empty(),
            ParameterTexts::Members(_) => false,
        };
        if is_empty {
            if parameter.required && matches!(texts, ParameterTexts::None) {
                problems.add(&place, "is required");
            }
            return Ok(());
        }
        let Some(value) = self.value(parameter, texts, &place, problems)? else { return Ok(()) };
        self.check(&parameter.shape, &value, &place, problems)
    }

    /// `None` when it cannot be read, which is noted.
    fn value<'r>(
        &mut self,
        parameter: &Parameter,
        texts: ParameterTexts<'r>,
        place: &Place<'_>,
        problems: &mut Problems,
    ) -> Result<Option<Json<'r>>, TooComplex> {
        let Parameter { shape, style, explode, .. } = parameter;
        let mut is_encoded = true;
        let mut decoded = |text: &'r str| {
            form_decoded(text).unwrap_or_else(|| {
                is_encoded = false;
                Cow::Borrowed("")
            })
        };
        let value = match texts {
            ParameterTexts::None => return Ok(None),
            ParameterTexts::Members(texts) => {
                let texts = texts.into_iter().map(|(name, value)| (name, decoded(value))).collect();
                self.object(shape, texts, place, problems)?
            }
            _ if parameter.is_json => {
                let values: Vec<_> = match texts {
                    ParameterTexts::Encoded(values) => values.into_iter().map(decoded).collect(),
                    ParameterTexts::Plain(values) => values,
                    _ => Vec::new(),
                };
                if values.len() > 1 {
                    problems.add(place, "is given more than once");
                }
                let text = values.into_iter().next().unwrap_or_default();
                match Json::read_owned(text.as_bytes()) {
                    Ok(value) => value,
                    Err(problem) => {
                        problems.add(place, problem);
                        return Ok(None);
                    }
                }
            }
            ParameterTexts::Encoded(values) => {
                let separator = match style {
                    ParameterStyle::SpaceDelimited => Some(" "),
                    ParameterStyle::PipeDelimited => Some("|"),
                    _ => (!explode).then_some(","),
                };
                match separator.filter(|_| !explode && values.len() == 1) {
                    // What is encoded does not separate, but for spaces, which are not sent otherwise.
                    Some(separator) => {
                        let text =
                            if separator == "," { values[0].to_owned() } else { decoded(values[0]).into_owned() };
                        // A text of nothing has no parts.
                        let parts = text.split(separator).filter(|_| !text.is_empty()).map(|part| {
                            let part = if separator == "," { form_decoded(part) } else { Some(part.into()) };
                            part.map_or_else(String::new, Cow::into_owned).into()
                        });
                        self.separated(parameter, decoded(values[0]), parts.collect(), place, problems)?
                    }
                    None => self.repeated(Some(shape), values.into_iter().map(decoded).collect(), place, problems)?,
                }
            }
            ParameterTexts::Plain(values) => self.plain(parameter, values, place, problems)?,
        };
        if !is_encoded {
            problems.add(place, "is not percent-encoded UTF-8");
            return Ok(None);
        }
        Ok(Some(value))
    }

    /// A value of the path, a header or a cookie.
    fn plain<'r>(
        &mut self,
        parameter: &Parameter,
        mut values: Vec<Cow<'r, str>>,
        place: &Place<'_>,
        problems: &mut Problems,
    ) -> Result<Json<'r>, TooComplex> {
        let Parameter { shape, style, explode, source, .. } = parameter;
        let is_list = shape.types.has(Types::LIST) || shape.types.has(Types::OBJECT);
        // RFC 9110, section 5.3.
        if *source == Source::Header && is_list && values.len() > 1 {
            values = vec![values.join(",").into()];
        }
        if values.len() > 1 || *source == Source::Cookie && *explode {
            return self.repeated(Some(shape), values, place, problems);
        }
        let text = values.pop().unwrap_or_default();
        let (body, separator): (&str, &str) = match style {
            ParameterStyle::Label => (text.strip_prefix('.').unwrap_or(&text), if *explode { "." } else { "," }),
            ParameterStyle::Matrix => {
                let own = text.strip_prefix(';').unwrap_or(&text);
                (own, if *explode { ";" } else { "," })
            }
            _ => (&text, ","),
        };
        let is_matrix = *style == ParameterStyle::Matrix;
        let prefix = format!("{}=", parameter.name);
        // Each item of a list is named again, and members have their own names.
        let body = if is_matrix { body.strip_prefix(&prefix).unwrap_or(body) } else { body };
        let strip = |part: &str| {
            let own = if is_matrix && *explode { part.strip_prefix(&prefix).unwrap_or(part) } else { part };
            Cow::Owned(own.trim().to_owned())
        };
        let parts = if body.is_empty() { Vec::new() } else { body.split(separator).map(strip).collect() };
        self.separated(parameter, Cow::Owned(body.to_owned()), parts, place, problems)
    }

    /// A text that is a list or an object of parts, if it may be one.
    fn separated<'r>(
        &mut self,
        parameter: &Parameter,
        whole: Cow<'r, str>,
        parts: Vec<Cow<'r, str>>,
        place: &Place<'_>,
        problems: &mut Problems,
    ) -> Result<Json<'r>, TooComplex> {
        let shape = &parameter.shape;
        if shape.types.has(Types::OBJECT) {
            let members = members(parts.into_iter(), parameter.explode);
            return self.object(shape, members, place, problems);
        }
        let may_be_one = shape.types.is_empty() || shape.types.are_scalar();
        let is_list = shape.types.has(Types::LIST);
        if is_list && !(may_be_one && parts.len() < 2) {
            return self.list(shape, parts.into_iter());
        }
        let value = self.scalar(shape, whole)?;
        if is_list && parts.is_empty() { self.or_empty_list(shape, value) } else { Ok(value) }
    }
}
