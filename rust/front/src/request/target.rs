//! The target of a request: its host, and a path that no two programs resolve, truncate or decode differently. Encoded
//! slashes are part of a segment, and two slashes in a row are an empty segment; both are kept.
use std::borrow::Cow;

use super::refusal::Refusal;
use crate::routes::decode;

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// The host as received, with its port: from a target in absolute form, else from the header.
    pub authority: &'a str,
    /// It overrides the header.
    pub is_absolute: bool,
    /// Path and query.
    pub path_and_query: Cow<'a, str>,
}

impl<'a> Target<'a> {
    /// # Errors
    /// When the target or the header is not valid.
    pub fn read(method: &str, target: &'a str, host: &'a str) -> Result<Self, Refusal> {
        if !target.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Refusal::not_http());
        }
        if !is_authority(host) {
            return Err(Refusal::malformed("The Host header is not a host."));
        }
        let read = if target.starts_with('/') || target == "*" {
            Self { authority: host, is_absolute: false, path_and_query: target.into() }
        } else {
            Self::read_absolute(target)
                .ok_or(Refusal::malformed("The target of the request is not a path or a URL."))?
        };
        if read.path_and_query == "*" {
            return match method {
                "OPTIONS" => Ok(read),
                _ => Err(Refusal::malformed("The target \"*\" is for OPTIONS only.")),
            };
        }
        match path_problem(&read.path_and_query) {
            Some(problem) => Err(Refusal::malformed(problem)),
            None => Ok(read),
        }
    }

    fn read_absolute(target: &'a str) -> Option<Self> {
        let (scheme, rest) = target.split_once("://")?;
        if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
            return None;
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.is_empty() || !is_authority(authority) {
            return None;
        }
        let path_and_query = if path.starts_with('/') { path.into() } else { format!("/{path}").into() };
        Some(Self { authority, is_absolute: true, path_and_query })
    }

    pub fn path(&self) -> &str {
        self.path_and_query.split_once('?').map_or(&*self.path_and_query, |(path, _)| path)
    }
}

/// The host of an authority without its port, as routes have it.
pub fn host_name(authority: &str) -> Cow<'_, str> {
    // An IPv6 address contains colons, and is in brackets.
    let end = if authority.starts_with('[') { authority.find(']').map(|at| at + 1) } else { authority.find(':') };
    let host = &authority[..end.unwrap_or(authority.len())];
    let host = host.strip_suffix('.').unwrap_or(host);
    if host.bytes().any(|byte| byte.is_ascii_uppercase()) { host.to_ascii_lowercase().into() } else { host.into() }
}

/// A host and perhaps a port, without a user. RFC 3986, section 3.2.2, and underscores.
fn is_authority(text: &str) -> bool {
    let is_port = |port: &str| port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(rest) = text.strip_prefix('[') {
        let Some((address, rest)) = rest.split_once(']') else { return false };
        let is_address = address.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':' || byte == b'.');
        let is_rest = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
        return !address.is_empty() && is_address && is_rest;
    }
    let (name, port) = text.split_once(':').unwrap_or((text, ""));
    let is_character = |byte: u8| byte.is_ascii_alphanumeric() || b"_.~!$&'()*+;=%-".contains(&byte);
    name.bytes().all(is_character) && is_port(port)
}

/// What is wrong with a path, if anything.
fn path_problem(target: &str) -> Option<&'static str> {
    if !is_suspicious(target.as_bytes()) {
        return None;
    }
    if target.contains('#') {
        return Some("The target of the request has a fragment (\"#\").");
    }
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    if path.contains('\\') {
        return Some("The path of the request has a backslash.");
    }
    let Some(decoded) = decode(path) else {
        return Some("The path of the request is not percent-encoded UTF-8.");
    };
    if decoded.contains('\0') {
        return Some("The path of the request has a NUL character.");
    }
    let has_dots = decoded.split(['/', '\\']).any(|segment| segment == "." || segment == "..");
    has_dots.then_some("The path of the request has \".\" or \"..\" between its slashes.")
}

/// Paths without any of these are valid: `%`, a backslash, `#`, and a dot behind a slash.
fn is_suspicious(target: &[u8]) -> bool {
    let mut last = 0;
    target.iter().any(|&byte| {
        let is_suspicious = matches!(byte, b'%' | b'\\' | b'#') || (byte == b'.' && last == b'/');
        last = byte;
        is_suspicious
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_lower_case_without_port() {
        for (authority, host) in [
            ("Example.COM:80", "example.com"),
            ("example.com.", "example.com"),
            ("[2001:DB8::1]:80", "[2001:db8::1]"),
            ("", ""),
        ] {
            assert_eq!(host_name(authority), host);
        }
    }

    #[test]
    fn authorities_are_checked() {
        for text in ["", "a", "a_b.c:80", "a:", "[::1]", "[::1]:80", "[::ffff:1.2.3.4]"] {
            assert!(is_authority(text), "{text}");
        }
        for text in ["a b", "user@a", "a/b", "a:123456", "a:b", "[::1", "[::1]x", "[]", "a:1:2", "[x]"] {
            assert!(!is_authority(text), "{text}");
        }
    }

    #[test]
    fn a_target_in_absolute_form_has_its_own_host() {
        let target = Target::read("GET", "HTTP://other:80/a?b", "host").unwrap();
        assert_eq!((target.authority, &*target.path_and_query, target.path()), ("other:80", "/a?b", "/a"));
        assert!(target.is_absolute);
        for target in ["http:///a", "http://u@h/a", "ftp://h/a", "nothing", "http://h/#f", "http://h/../a"] {
            assert!(Target::read("GET", target, "host").is_err(), "{target}");
        }
    }

    #[test]
    fn paths_that_can_be_read_in_two_ways_are_refused() {
        for path in ["/a/../b", "/..", "/.", "/%2e%2E/x", "/x%2f..%2fy", "/x%5c..%5cy", "/a%00", "/100%", "/%ff", "/#"]
        {
            assert!(Target::read("GET", path, "host").is_err(), "{path}");
        }
        for path in ["/", "//a", "/a.b/.c/...", "/a%2Fb", "/?a=%&b=../..", "/%C3%BC"] {
            assert!(Target::read("GET", path, "host").is_ok(), "{path}");
        }
    }
}
