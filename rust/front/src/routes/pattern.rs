//! Route patterns: `/items/{id}`, `/reports/{id}.json`, `/files/{*path}`. The management API validates them
//! (`src/model/route-pattern.ts`); here they are read, and refused only if they cannot be matched. Static text is
//! compared percent-decoded, and one trailing slash means nothing.
use std::borrow::Cow;
use std::fmt;

/// One part of a route between two slashes. Percent-encoding in texts is already undone: they may hold a slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Matches this text.
    Static(Box<str>),
    /// Parameters and literal text: `{id}.json` has the texts `""` and `".json"` around its parameter.
    Mixed { texts: Box<[Box<str>]>, names: Box<[Box<str>]> },
    /// Matches any one segment that is not empty.
    Param(Box<str>),
    /// Matches the rest of a path, if that is not empty. Only the last segment can be one.
    CatchAll(Box<str>),
}

impl Segment {
    /// The names of its parameters, in their order. Letters, digits, `_`, `-` and `.` are all they hold.
    pub fn names(&self) -> &[Box<str>] {
        match self {
            Segment::Static(_) => &[],
            Segment::Mixed { names, .. } => names,
            Segment::Param(name) | Segment::CatchAll(name) => std::slice::from_ref(name),
        }
    }
}

/// Why a text cannot be a route, to follow its name in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteError(String);

impl RouteError {
    pub fn method(method: &str) -> Self {
        Self(format!("has the method \"{method}\", which no endpoint has"))
    }
}

impl fmt::Display for RouteError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for RouteError {}

/// Reads a route into its segments. The root route `/` has none.
pub fn read_route(route: &str) -> Result<Vec<Segment>, RouteError> {
    let Some(path) = route.strip_prefix('/') else { return refuse("must start with \"/\"") };
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.is_empty() {
        return Ok(Vec::new());
    }
    let segments = path.split('/').map(read_segment).collect::<Result<Vec<_>, _>>()?;
    if segments.iter().rev().skip(1).any(|segment| matches!(segment, Segment::CatchAll(_))) {
        return refuse("has text after {*…}, which matches all the rest of a path");
    }
    Ok(segments)
}

fn read_segment(source: &str) -> Result<Segment, RouteError> {
    if source.is_empty() {
        return refuse("has an empty segment (\"//\")");
    }
    let mut texts = Vec::new();
    let mut names = Vec::new();
    let mut rest = source;
    while let Some((text, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else { return refuse(unmatched_braces(source)) };
        texts.push(read_text(text, source)?);
        names.push(name);
        rest = after;
    }
    texts.push(read_text(rest, source)?);
    if names.is_empty() {
        return Ok(Segment::Static(texts.remove(0)));
    }
    if let ([name], true) = (&names[..], texts.iter().all(|text| text.is_empty())) {
        return Ok(match name.strip_prefix('*') {
            Some(name) => Segment::CatchAll(read_name(name)?),
            None => Segment::Param(read_name(name)?),
        });
    }
    if texts[1..texts.len() - 1].iter().any(|text| text.is_empty()) {
        return refuse(format!("has the segment \"{source}\"; there must be text between two parameters"));
    }
    let names = names.into_iter().map(read_name).collect::<Result<_, _>>()?;
    Ok(Segment::Mixed { texts: texts.into(), names })
}

fn read_text(text: &str, segment: &str) -> Result<Box<str>, RouteError> {
    if text.contains('}') {
        return refuse(unmatched_braces(segment));
    }
    match decode(text) {
        Some(text) => Ok(text.into()),
        None => refuse(format!("has the segment \"{segment}\", which is not valid percent-encoding")),
    }
}

fn read_name(name: &str) -> Result<Box<str>, RouteError> {
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    if begins && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)) {
        return Ok(name.into());
    }
    refuse(format!("has a parameter named \"{name}\""))
}

fn unmatched_braces(segment: &str) -> String {
    format!("has the segment \"{segment}\", whose braces do not match")
}

fn refuse<T>(reason: impl Into<String>) -> Result<T, RouteError> {
    Err(RouteError(reason.into()))
}

/// Undoes percent-encoding; `None` for a `%` without two digits, or bytes that are not UTF-8.
pub fn decode(text: &str) -> Option<Cow<'_, str>> {
    let Some(first) = text.find('%') else { return Some(Cow::Borrowed(text)) };
    let mut bytes = Vec::with_capacity(text.len());
    let (plain, mut rest) = text.as_bytes().split_at(first);
    bytes.extend_from_slice(plain);
    while let [byte, after @ ..] = rest {
        rest = if *byte == b'%' {
            let [high, low, after @ ..] = after else { return None };
            bytes.push(hex(*high)? << 4 | hex(*low)?);
            after
        } else {
            bytes.push(*byte);
            after
        };
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(value: &str) -> Segment {
        Segment::Static(value.into())
    }

    fn param(name: &str) -> Segment {
        Segment::Param(name.into())
    }

    fn mixed(texts: &[&str], names: &[&str]) -> Segment {
        let boxed = |list: &[&str]| list.iter().map(|&one| one.into()).collect();
        Segment::Mixed { texts: boxed(texts), names: boxed(names) }
    }

    #[test]
    fn routes_are_read_into_static_segments_and_parameters() {
        assert_eq!(read_route("/"), Ok(vec![]));
        let expected = vec![text("a"), param("id"), text("b/c"), param("x-y.z")];
        assert_eq!(read_route("/a/{id}/b%2Fc/{x-y.z}/"), Ok(expected));
        let expected = vec![text("items:batch"), text("{id}"), text("*"), text("a+b"), text("grüße")];
        assert_eq!(read_route("/items:batch/%7Bid%7D/%2A/a+b/gr%C3%BC%c3%9fe"), Ok(expected));
    }

    #[test]
    fn routes_can_mix_text_and_parameters_and_end_with_a_catch_all() {
        let expected = vec![
            text("r"),
            mixed(&["", ".json"], &["id"]),
            mixed(&["v", ".", ""], &["major", "minor"]),
            mixed(&["{", ":go"], &["x"]),
            Segment::CatchAll("rest".into()),
        ];
        assert_eq!(read_route("/r/{id}.json/v{major}.{minor}/%7B{x}:go/{*rest}"), Ok(expected));
    }

    #[test]
    fn routes_are_refused_when_they_cannot_be_matched() {
        for (route, reason) in [
            ("a", "must start with"),
            ("", "must start with"),
            ("///", "an empty segment"),
            ("/a//b", "an empty segment"),
            ("/{a}{b}", "must be text between two parameters"),
            ("/x{a}{b}.{c}", "must be text between two parameters"),
            ("/{*a}/b", "text after {*…}"),
            ("/{*a}/{*b}", "text after {*…}"),
            ("/a{*b}", "a parameter named \"*b\""),
            ("/{*}", "a parameter named \"\""),
            ("/{}.json", "a parameter named \"\""),
            ("/{é}", "a parameter named"),
            ("/{a\"}", "a parameter named"),
            ("/{a", "braces do not match"),
            ("/a}.{b}", "braces do not match"),
            ("/{{a}}", "braces do not match"),
            ("/a%", "not valid percent-encoding"),
            ("/a%2", "not valid percent-encoding"),
            ("/a%zz", "not valid percent-encoding"),
            ("/{a}.%ff", "not valid percent-encoding"),
        ] {
            let problem = read_route(route).expect_err(route).to_string();
            assert!(problem.contains(reason), "{route}: {problem}");
        }
    }

    proptest! {
        #[test]
        fn text_is_decoded_to_what_was_encoded(value in ".*") {
            let lower = value.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
            for encoded in [lower.to_uppercase(), lower, value.replace('%', "%25")] {
                prop_assert_eq!(decode(&encoded), Some(Cow::Borrowed(&*value)));
            }
        }

        #[test]
        fn any_text_is_read_or_refused(route in "[/{}%.*:a-c2fé]{0,20}") {
            if let Ok(segments) = read_route(&route) {
                prop_assert!(route.starts_with('/'));
                prop_assert!(segments.len() <= route.len() / 2);
            }
        }
    }
}
