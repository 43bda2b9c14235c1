//! Formats of texts and numbers; `src/model/json-schema/keywords.ts` lists them.
use std::net::{Ipv4Addr, Ipv6Addr};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::number::Number;
use super::times::{is_date, is_date_time, is_duration, is_time};
use super::uris::{is_uri, is_uri_template};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    DateTime,
    Date,
    Time,
    Duration,
    Email,
    Hostname,
    Ipv4,
    Ipv6,
    Uri,
    UriReference,
    Iri,
    IriReference,
    UriTemplate,
    Uuid,
    JsonPointer,
    RelativeJsonPointer,
    Byte,
    Int32,
    Int64,
    Float,
    Double,
}

const NAMED: [(&str, Format); 21] = [
    ("date-time", Format::DateTime),
    ("date", Format::Date),
    ("time", Format::Time),
    ("duration", Format::Duration),
    ("email", Format::Email),
    ("hostname", Format::Hostname),
    ("ipv4", Format::Ipv4),
    ("ipv6", Format::Ipv6),
    ("uri", Format::Uri),
    ("uri-reference", Format::UriReference),
    ("iri", Format::Iri),
    ("iri-reference", Format::IriReference),
    ("uri-template", Format::UriTemplate),
    ("uuid", Format::Uuid),
    ("json-pointer", Format::JsonPointer),
    ("relative-json-pointer", Format::RelativeJsonPointer),
    ("byte", Format::Byte),
    ("int32", Format::Int32),
    ("int64", Format::Int64),
    ("float", Format::Float),
    ("double", Format::Double),
];

impl Format {
    /// # Errors
    /// When it is not known here: it would not be enforced.
    pub fn named(name: &str) -> Result<Self, String> {
        let found = NAMED.iter().find(|(known, _)| *known == name);
        found.map(|(_, format)| *format).ok_or_else(|| format!("the format {name} is not known"))
    }

    pub fn name(self) -> &'static str {
        NAMED.iter().find(|(_, format)| *format == self).map_or("", |(name, _)| name)
    }

    pub fn is_of_numbers(self) -> bool {
        matches!(self, Self::Int32 | Self::Int64 | Self::Float | Self::Double)
    }

    pub fn fits_number(self, value: Number) -> bool {
        let is_between = |least: i64, most: i64| match value {
            Number::Whole(value) => value >= least.into() && value <= most.into(),
            Number::Float(_) => false,
        };
        match self {
            Self::Int32 => is_between(i32::MIN.into(), i32::MAX.into()),
            Self::Int64 => is_between(i64::MIN, i64::MAX),
            Self::Float => match value {
                Number::Whole(value) => (value as f64).abs() <= f32::MAX.into(),
                Number::Float(value) => value.abs() <= f32::MAX.into(),
            },
            _ => true,
        }
    }

    pub fn fits(self, text: &str) -> bool {
        match self {
            Self::DateTime => is_date_time(text),
            Self::Date => is_date(text),
            Self::Time => is_time(text),
            Self::Duration => is_duration(text),
            Self::Email => is_email(text),
            Self::Hostname => is_hostname(text),
            Self::Ipv4 => text.parse::<Ipv4Addr>().is_ok(),
            Self::Ipv6 => text.parse::<Ipv6Addr>().is_ok(),
            Self::Uri => is_uri(text, false, true),
            Self::UriReference => is_uri(text, false, false),
            Self::Iri => is_uri(text, true, true),
            Self::IriReference => is_uri(text, true, false),
            Self::UriTemplate => is_uri_template(text),
            Self::Uuid => is_uuid(text),
            Self::JsonPointer => is_pointer(text),
            Self::RelativeJsonPointer => is_relative_pointer(text),
            Self::Byte => STANDARD.decode(text).is_ok(),
            Self::Int32 | Self::Int64 | Self::Float | Self::Double => true,
        }
    }
}

/// RFC 5321, section 4.1.2.
fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let is_atom = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte))
    };
    let is_quoted = || {
        let inner = local.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        inner.is_some_and(|inner| {
            let mut bytes = inner.bytes();
            while let Some(byte) = bytes.next() {
                let fits = match byte {
                    b'\\' => bytes.next().is_some_and(|byte| (b' '..=b'~').contains(&byte)),
                    b'"' => false,
                    byte => (b' '..=b'~').contains(&byte),
                };
                if !fits {
                    return false;
                }
            }
            true
        })
    };
    let is_literal = || {
        let inner = domain.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        inner.is_some_and(|inner| match inner.get(..5).filter(|tag| tag.eq_ignore_ascii_case("ipv6:")) {
            Some(_) => inner[5..].parse::<Ipv6Addr>().is_ok(),
            None => inner.parse::<Ipv4Addr>().is_ok(),
        })
    };
    text.len() <= 254
        && local.len() <= 64
        && (local.split('.').all(is_atom) || is_quoted())
        && (is_hostname(domain) || is_literal())
}

/// RFC 1123, section 2.1. Labels of other scripts, `xn--...`, are not decoded.
fn is_hostname(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
            // Reserved (RFC 5891, section 4.2.3.1).
            && (label.as_bytes().get(2..4) != Some(b"--") || label[..2].eq_ignore_ascii_case("xn"))
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

fn is_uuid(text: &str) -> bool {
    let lengths = text.split('-').map(|part| part.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(part.len()));
    lengths.eq([8, 4, 4, 4, 12].map(Some))
}

/// RFC 6901.
fn is_pointer(text: &str) -> bool {
    let escapes_fit = text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    (text.is_empty() || text.starts_with('/')) && escapes_fit
}

fn is_relative_pointer(text: &str) -> bool {
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let is_number = !digits.is_empty() && (digits == "0" || !digits.starts_with('0'));
    is_number && (rest == "#" || is_pointer(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(format: &str, fitting: &[&str], others: &[&str]) {
        let format = Format::named(format).unwrap();
        let of = |texts: &[&str], fits: bool| texts.iter().filter(|text| format.fits(text) != fits).count();
        assert_eq!((of(fitting, true), of(others, false)), (0, 0), "{}", format.name());
    }

    #[test]
    fn texts_fit_their_formats() {
        check(
            "email",
            &["ada@example.com", "a.b+c@x", "\"a b\"@example.com", "a@[127.0.0.1]", "a@[IPv6:::1]"],
            &["", "@", "a@", ".a@x", "a..b@x", "a@-x", "a b@x", "a@x y", "\"a\"b@x", "a@[127.0.0.300]"],
        );
        check(
            "hostname",
            &["a", "a-b.example", "1.2", "xn--4ca.x"],
            &["", "-a", "ab--c", "a-", "a..b", "a_b", "a.", &"a".repeat(64)],
        );
        check("ipv4", &["127.0.0.1"], &["127.0.0", "256.0.0.1", "01.0.0.1", "1.1.1.1 ", "0x7f.0.0.1"]);
        check("ipv6", &["::1", "::ffff:1.2.3.4"], &["::1%eth0", "12345::", "1:2:3:4:5:6:7:8:9", "[::1]"]);
        check(
            "uuid",
            &["2EB8AA08-aa98-11ea-b4aa-73b441d16380"],
            &["2eb8aa08aa9811eab4aa73b441d16380", "2eb8aa08-aa98-"],
        );
        check("json-pointer", &["", "/a/~0~1"], &["a", "/~", "/~2"]);
        check("relative-json-pointer", &["0", "1#", "12/a"], &["", "01", "-1/a", "1a", "/a"]);
        check("byte", &["", "YQ==", "YWJj"], &["YQ", "YQ=", "Y Q=", "YQ==="]);
    }

    #[test]
    fn numbers_fit_their_formats() {
        let fits = |format: &str, value: f64| Format::named(format).unwrap().fits_number(value.into());
        assert!(fits("int32", 2147483647.0) && !fits("int32", 2147483648.0) && !fits("int32", 1.5));
        assert!(fits("int64", -9223372036854775808.0) && !fits("int64", 9223372036854775808.0));
        assert!(fits("float", 1.5) && !fits("float", 1e39) && fits("double", 1e39));
        assert!(Format::named("regex").is_err());
    }
}
