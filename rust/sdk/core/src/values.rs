//! [`Values`]: all that a request has under one name, read as types.

use crate::error::HandlerError;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

/// Allowed values that an error names.
const NAMED_VALUES: usize = 50;

/// What values are, for errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    PathParameter,
    QueryParameter,
    Header,
    Cookie,
    Field,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Place::PathParameter => "path parameter",
            Place::QueryParameter => "query parameter",
            Place::Header => "header",
            Place::Cookie => "cookie",
            Place::Field => "field",
        })
    }
}

/// All values that a request has under one name, to be read as what they stand for.
///
/// First, how they are written, where it is not one value after the other; then, as what they are to be read:
///
/// | method | reads |
/// |---|---|
/// | [`split`](Values::split) | `1,2,3` and other lists in one text |
/// | [`split_pairs`](Values::split_pairs) | `a=1` as a key and a value, after `split` |
/// | [`label`](Values::label) | `.5` and `.a.b`, a path parameter in OpenAPI's style `label` |
/// | [`matrix`](Values::matrix), [`matrix_object`](Values::matrix_object) | `;id=5` and `;a=1;b=2`, one in the style `matrix` |
/// | [`one_of`](Values::one_of) | only these values |
/// | [`optional`](Values::optional), [`required`](Values::required) | one value |
/// | [`optional_list`](Values::optional_list), [`required_list`](Values::required_list) | all values |
/// | [`optional_object`](Values::optional_object), [`required_object`](Values::required_object) | keys and values in turn |
///
/// ```
/// use rust_edge_gateway_sdk_core::prelude::*;
/// fn handle(req: Request) -> Result<Response, HandlerError> {
///     let query = req.query_pairs();
///     let ids: Vec<u64> = query.values("ids").split(',').required_list()?;
///     let order: Option<String> = query.values("order").one_of(&["name", "age"])?.optional()?;
///     Ok(Response::ok(json!({"ids": ids, "order": order})))
/// }
/// ```
///
/// Errors are [`HandlerError::BadRequest`], and name the parameter.
#[derive(Debug, Clone)]
pub struct Values<'a> {
    place: Place,
    name: &'a str,
    texts: Vec<&'a str>,
    /// A list that was sent may be empty.
    is_sent: bool,
    refusal: Option<Refusal<'a>>,
}

/// Why values cannot be read.
#[derive(Debug, Clone)]
struct Refusal<'a> {
    text: &'a str,
    reason: String,
    /// What they can be read as all the same.
    unless: Option<Shape>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// The value that counts is allowed, only others are not.
    One,
    /// An empty one: there is one empty text.
    List,
}

impl<'a> Values<'a> {
    pub(crate) fn new(place: Place, name: &'a str, texts: Vec<&'a str>) -> Self {
        let is_sent = !texts.is_empty();
        Values { place, name, texts, is_sent, refusal: None }
    }

    /// Takes each value apart at a separator. An empty value has no items; blanks around items are dropped.
    pub fn split(self, separator: char) -> Self {
        let items = |text: &'a str| text.split(separator).map(str::trim);
        let texts = self.texts.iter().filter(|text| !text.is_empty()).flat_map(|text| items(text)).collect();
        Values { texts, ..self }
    }

    /// Takes each value apart at its first `=`, as a key and a value.
    pub fn split_pairs(self) -> Self {
        let pairs = self.texts.iter().map(|text| text.split_once('=').unwrap_or((text, "")));
        let texts = pairs.flat_map(|(key, value)| [key, value]).collect();
        Values { texts, ..self }
    }

    /// Drops the dot before a value in OpenAPI's style `label`; one without it cannot be read. A list goes on with
    /// `split('.')`, or, when it is not exploded, with [`Values::split_label`].
    pub fn label(self) -> Self {
        let wrong = self.texts.iter().find(|text| !text.starts_with('.')).copied();
        let texts = self.texts.iter().map(|text| text.strip_prefix('.').unwrap_or(text)).collect();
        Values { texts, ..self }.refused_for(wrong, || " does not begin with \".\"".to_owned())
    }

    /// Does what [`Values::label`] does, and takes the list apart: at its commas, as in RFC 6570, or else at its dots,
    /// as in OpenAPI 3.0.
    pub fn split_label(self) -> Self {
        let separator = if self.texts.iter().any(|text| text.contains(',')) { ',' } else { '.' };
        self.label().split(separator)
    }

    /// The values in a text in OpenAPI's style `matrix`: `;id=1;id=2`. A text without any cannot be read.
    pub fn matrix(self) -> Self {
        let own = |(key, value)| (key == self.name).then_some(value);
        let texts: Vec<_> = self.texts.iter().flat_map(|text| matrix_pairs(text)).filter_map(own).collect();
        let is_wrong = |text: &&str| !text.starts_with(';') || matrix_pairs(text).all(|(key, _)| key != self.name);
        let wrong = self.texts.iter().copied().find(is_wrong);
        Values { texts, ..self }.refused_for(wrong, || format!(" does not begin with \";{}=\"", self.name))
    }

    /// The keys and values of an object in OpenAPI's style `matrix`, exploded: `;a=1;b=2`. A text that does not begin
    /// with a semicolon cannot be read.
    pub fn matrix_object(self) -> Self {
        let wrong = self.texts.iter().find(|text| !text.starts_with(';')).copied();
        let pairs = self.texts.iter().flat_map(|text| matrix_pairs(text));
        let texts = pairs.flat_map(|(key, value)| [key, value]).collect();
        Values { texts, ..self }.refused_for(wrong, || " does not begin with \";\"".to_owned())
    }

    fn refused_for(self, wrong: Option<&'a str>, reason: impl FnOnce() -> String) -> Self {
        let refusal = wrong.map(|text| Refusal { text, reason: reason(), unless: None });
        Values { refusal, ..self }
    }

    /// Makes sure that each value is one of these, or, when one value is read, the one that counts. A single empty text
    /// that is not is an empty list, and refused when it is to be read as one value.
    ///
    /// # Errors
    /// [`HandlerError::BadRequest`] that names the allowed values.
    pub fn one_of(self, allowed: &[&str]) -> Result<Self, HandlerError> {
        if self.refusal.is_some() {
            return Ok(self);
        }
        let Some(text) = self.texts.iter().copied().find(|text| !allowed.contains(text)) else { return Ok(self) };
        let reason = format!(" is not {}", one_of_names(allowed));
        let unless = match one(self.place, &self.texts) {
            Some(counts) if allowed.contains(&counts) => Shape::One,
            _ if self.is_empty_text() => Shape::List,
            _ => return Err(self.invalid(text, &reason)),
        };
        Ok(Values { refusal: Some(Refusal { text, reason, unless: Some(unless) }), ..self })
    }

    /// The value, if there is one; of several the last, of cookies the first.
    ///
    /// # Errors
    /// [`HandlerError::BadRequest`] if it does not parse.
    pub fn optional<T: FromStr>(&self) -> Result<Option<T>, HandlerError> {
        match self.one()? {
            None => Ok(None),
            Some(text) => self.parse(text).map(Some),
        }
    }

    /// The value; of several the last, of cookies the first.
    ///
    /// # Errors
    /// [`HandlerError::BadRequest`] if it is missing or does not parse.
    pub fn required<T: FromStr>(&self) -> Result<T, HandlerError> {
        match self.one()? {
            None => Err(self.missing()),
            Some(text) => self.parse(text),
        }
    }

    /// All values, if there are any. A single empty text that does not parse, as in `?ids=`, is an empty list.
    ///
    /// # Errors
    /// [`HandlerError::BadRequest`] if one of them does not parse.
    pub fn optional_list<T: FromStr>(&self) -> Result<Option<Vec<T>>, HandlerError> {
        match self.is_sent {
            true => self.required_list().map(Some),
            false => Ok(None),
        }
    }

    /// All values. A single empty text that does not parse, as in `?ids=`, is an empty list.
    ///
    /// # Errors
    /// [`HandlerError::BadRequest`] if there are none, or one of them does not parse.
    pub fn required_list<T: FromStr>(&self) -> Result<Vec<T>, HandlerError> {
        if !self.is_sent {
            return Err(self.missing());
        }
        match &self.refusal {
            Some(refusal) if refusal.unless == Some(Shape::List) => return Ok(Vec::new()),
            Some(refusal) => return Err(self.refused(refusal)),
            None => {}
        }
        let items: Result<Vec<T>, _> = self.texts.iter().map(|text| self.parse(text)).collect();
        match items {
            Err(_) if self.is_empty_text() => Ok(Vec::new()),
            items => items,
        }
    }

    /// An object whose keys and values alternate, if there is one. Of several values of one key, the last.
    ///
    /// # Errors
    /// [`HandlerError::BadRequest`] if the last key has no value.
    pub fn optional_object(&self) -> Result<Option<HashMap<String, String>>, HandlerError> {
        match self.is_sent {
            true => self.required_object().map(Some),
            false => Ok(None),
        }
    }

    /// An object whose keys and values alternate.
    ///
    /// # Errors
    /// [`HandlerError::BadRequest`] if there is none, or its last key has no value.
    pub fn required_object(&self) -> Result<HashMap<String, String>, HandlerError> {
        if !self.is_sent {
            return Err(self.missing());
        }
        if let Some(refusal) = &self.refusal {
            return Err(self.refused(refusal));
        }
        let pairs = self.texts.chunks(2).map(|pair| match *pair {
            [key, value] => Ok((key.to_owned(), value.to_owned())),
            _ => Err(self.invalid(pair[0], " is a key without a value")),
        });
        pairs.collect()
    }

    fn one(&self) -> Result<Option<&'a str>, HandlerError> {
        match &self.refusal {
            Some(refusal) if refusal.unless != Some(Shape::One) => Err(self.refused(refusal)),
            _ => Ok(one(self.place, &self.texts)),
        }
    }

    fn is_empty_text(&self) -> bool {
        self.texts == [""]
    }

    fn parse<T: FromStr>(&self, text: &str) -> Result<T, HandlerError> {
        text.parse().map_err(|_| self.invalid(text, ""))
    }

    // Not generic, so that handlers do not compile the sentences again for every type they parse.
    #[cold]
    fn missing(&self) -> HandlerError {
        missing(self.place, self.name)
    }

    #[cold]
    fn refused(&self, refusal: &Refusal<'_>) -> HandlerError {
        self.invalid(refusal.text, &refusal.reason)
    }

    #[cold]
    fn invalid(&self, text: &str, reason: &str) -> HandlerError {
        invalid(self.place, self.name, text, reason)
    }
}

/// The one of several values that counts.
pub(crate) fn one<'a>(place: Place, texts: &[&'a str]) -> Option<&'a str> {
    match place {
        // A browser sends the one with the longest path first (RFC 6265 5.4).
        Place::Cookie => texts.first().copied(),
        _ => texts.last().copied(),
    }
}

fn matrix_pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let pieces = text.split(';').filter(|piece| !piece.is_empty());
    pieces.map(|piece| piece.split_once('=').unwrap_or((piece, "")))
}

#[cold]
pub(crate) fn missing(place: Place, name: &str) -> HandlerError {
    HandlerError::BadRequest(format!("Missing required {place}: {name}"))
}

#[cold]
pub(crate) fn invalid(place: Place, name: &str, text: &str, reason: &str) -> HandlerError {
    HandlerError::BadRequest(format!("Invalid value for {place} {name}: {text:?}{reason}"))
}

/// The text if it is one of these, else a sentence that names them: for a `TryFrom<String>` of a type of yours.
///
/// ```
/// use rust_edge_gateway_sdk_core::{one_of, prelude::*};
///
/// #[derive(Debug, Deserialize)]
/// #[serde(try_from = "String")]
/// struct Currency(String);
///
/// impl TryFrom<String> for Currency {
///     type Error = String;
///
///     fn try_from(text: String) -> Result<Self, String> {
///         one_of(text, &["EUR", "USD"]).map(Self)
///     }
/// }
///
/// let request = Request { body: Some("\"DM\"".into()), ..Request::default() };
/// let error = request.json::<Currency>().unwrap_err().to_string();
/// assert_eq!(error, "Bad request: Invalid body: \"DM\" is not one of \"EUR\", \"USD\"");
/// ```
///
/// # Errors
/// The sentence.
pub fn one_of(text: String, allowed: &[&str]) -> Result<String, String> {
    match allowed.contains(&text.as_str()) {
        true => Ok(text),
        false => Err(format!("{text:?} is not {}", one_of_names(allowed))),
    }
}

/// `one of "a", "b"`, for errors.
pub(crate) fn one_of_names(names: &[&str]) -> String {
    let named: Vec<String> = names.iter().take(NAMED_VALUES).map(|name| format!("{name:?}")).collect();
    match (&named[..], names.len().saturating_sub(NAMED_VALUES)) {
        ([one], _) => one.clone(),
        (_, 0) => format!("one of {}", named.join(", ")),
        (_, more) => format!("one of {} and {more} more", named.join(", ")),
    }
}
