//! Changes of the headers of requests and answers: some are removed, some replaced, some added.
use httparse::Header;

use super::compiled::{CompiledChanges, CompiledHeaders};
use crate::request::session_cookie;

/// The usual headers for pages of browsers. What a handler sets itself stays.
const SECURITY: [(&str, &str); 6] = [
    ("Strict-Transport-Security", "max-age=31536000; includeSubDomains"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
];
/// How the headers begin that the gateway sets itself where there is a policy for pages of other origins.
const CORS: &str = "access-control-";

/// The changes of endpoints without the policy.
pub static NO_CHANGES: HeaderChanges =
    HeaderChanges { removed: Vec::new(), added: Vec::new(), allowed: Vec::new(), is_secure: false };

#[derive(Debug, Default)]
pub struct HeaderChanges {
    /// Names in lower case, also of headers that are set.
    removed: Vec<String>,
    added: Vec<(String, String)>,
    /// What a handler may send although it decides about the whole host.
    allowed: Vec<String>,
    is_secure: bool,
}

/// The policy of an endpoint.
#[derive(Debug, Default)]
pub struct Headers {
    pub request: HeaderChanges,
    pub response: HeaderChanges,
}

impl Headers {
    pub fn new(compiled: CompiledHeaders) -> Self {
        let CompiledHeaders { request, response, security_headers } = compiled;
        Self {
            request: HeaderChanges::new(request.unwrap_or_default(), false),
            response: HeaderChanges::new(response.unwrap_or_default(), security_headers),
        }
    }
}

impl HeaderChanges {
    pub fn new(compiled: CompiledChanges, is_secure: bool) -> Self {
        let removed = compiled.remove.iter().chain(compiled.set.keys()).map(|name| name.to_ascii_lowercase()).collect();
        let is_session = |(name, value): &(String, String)| {
            name.eq_ignore_ascii_case("set-cookie") && session_cookie::sets_session(value.as_bytes())
        };
        let added = compiled.set.into_iter().chain(compiled.add).filter(|header| !is_session(header)).collect();
        Self { removed, added, allowed: compiled.allow, is_secure }
    }

    pub fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.added.is_empty() && !self.is_secure
    }

    fn removes(&self, name: &str) -> bool {
        self.removed.iter().any(|removed| removed.eq_ignore_ascii_case(name))
    }

    pub fn applied_to<'a>(&'a self, headers: &[Header<'a>]) -> Vec<Header<'a>> {
        let kept = headers.iter().filter(|header| !self.removes(header.name)).copied();
        let added = self.added.iter().map(|(name, value)| Header { name, value: value.as_bytes() });
        kept.chain(added).collect()
    }

    /// The lines that a handler may send although they decide about the whole host.
    pub fn allowed_lines(&self, host_lines: &[u8]) -> Vec<u8> {
        let is_allowed = |line: &&[u8]| {
            self.allowed.iter().any(|name| {
                line.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()))
                    && line.get(name.len()) == Some(&b':')
            })
        };
        host_lines.split_inclusive(|&byte| byte == b'\n').filter(is_allowed).flatten().copied().collect()
    }

    /// `without_cors`: those that only the gateway sets are left out, too.
    pub fn applied_to_lines(&self, lines: &[u8], without_cors: bool) -> Vec<u8> {
        let mut changed = Vec::with_capacity(lines.len() + 256);
        let mut names = Vec::new();
        for line in lines.split_inclusive(|&byte| byte == b'\n') {
            let end = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
            let name = std::str::from_utf8(&line[..end]).unwrap_or_default();
            let is_cors = without_cors && name.get(..CORS.len()).is_some_and(|start| start.eq_ignore_ascii_case(CORS));
            if !is_cors && !self.removes(name) {
                changed.extend_from_slice(line);
                names.push(name);
            }
        }
        for (name, value) in &self.added {
            changed.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
            names.push(name);
        }
        if self.is_secure {
            for (name, value) in SECURITY {
                if !names.iter().any(|known| known.eq_ignore_ascii_case(name)) && !self.removes(name) {
                    changed.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
                }
            }
        }
        changed
    }
}
