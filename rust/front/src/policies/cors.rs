//! Pages of other origins (Fetch standard, "CORS protocol").
use std::ops::Deref;

use super::compiled::CompiledCors;
use super::origins::Origins;
use crate::request::{Head, Refusal};

#[derive(Debug)]
pub struct Cors {
    origins: Origins,
    methods: Option<Box<[String]>>,
    /// Header lines of answers to preflights, and of other answers.
    preflight_lines: String,
    lines: String,
    /// The headers that a page may send. None: those that it asks for.
    headers: Option<String>,
}

impl Cors {
    pub fn new(compiled: CompiledCors) -> Self {
        let mut lines = String::new();
        if compiled.credentials {
            lines.push_str("Access-Control-Allow-Credentials: true\r\n");
        }
        let mut preflight_lines = lines.clone();
        if let Some(seconds) = compiled.max_age_seconds {
            preflight_lines.push_str(&format!("Access-Control-Max-Age: {seconds}\r\n"));
        }
        if let Some(expose) = compiled.expose.filter(|names| !names.is_empty()) {
            lines.push_str(&format!("Access-Control-Expose-Headers: {}\r\n", expose.join(", ")));
        }
        Self {
            origins: compiled.origins,
            methods: compiled.methods.map(Into::into),
            preflight_lines,
            lines,
            headers: compiled.headers.map(|names| names.join(", ")),
        }
    }

    /// Adds the header lines of an answer. Pages of other origins than those allowed get none, nor does a method that
    /// pages may not use: browsers send GET, HEAD and POST whatever an answer to a preflight names.
    pub fn add_lines(&self, head: &Head<'_, '_>, lines: &mut String) {
        if self.add_origin(head, self.allows_method(head.method), lines) {
            lines.push_str(&self.lines);
        }
    }

    fn add_origin(&self, head: &Head<'_, '_>, is_allowed: bool, lines: &mut String) -> bool {
        if self.origins.allows_any && is_allowed {
            lines.push_str("Access-Control-Allow-Origin: *\r\n");
            return true;
        }
        // Also without an origin: a cache must not give this answer to a page of another.
        lines.push_str("Vary: Origin\r\n");
        let origin = head.single_text_header("origin").filter(|origin| is_allowed && self.origins.allow(origin));
        let Some(origin) = origin else { return false };
        lines.push_str("Access-Control-Allow-Origin: ");
        lines.push_str(origin);
        lines.push_str("\r\n");
        true
    }

    /// HEAD is a GET whose body is not sent.
    fn allows_method(&self, method: &str) -> bool {
        let is_named = |name| self.methods.as_ref().is_none_or(|allowed| allowed.iter().any(|one| one == name));
        is_named(method) || method == "HEAD" && is_named("GET")
    }

    /// Answers a question of a browser. `methods`: those that the page may use. `is_allowed`: false when it asks for
    /// another one that there is.
    fn answer(&self, head: &Head<'_, '_>, methods: &[&'static str], is_allowed: bool) -> Refusal {
        let mut lines = String::new();
        if !self.add_origin(head, is_allowed, &mut lines) {
            let refusal = Refusal::policy("cors", 403, "Pages of this origin may not call this endpoint in this way.");
            return Refusal { lines: lines.into(), ..refusal };
        }
        lines.push_str(&self.preflight_lines);
        lines.push_str(&format!("Access-Control-Allow-Methods: {}\r\n", methods.join(", ")));
        let requested = || head.single_text_header("access-control-request-headers").filter(|names| is_list(names));
        if let Some(names) = self.headers.as_deref().or_else(requested) {
            lines.push_str(&format!("Access-Control-Allow-Headers: {names}\r\n"));
        }
        lines.push_str("Vary: Access-Control-Request-Method, Access-Control-Request-Headers\r\n");
        Refusal { lines: lines.into(), ..Refusal::policy("preflight", 204, "") }
    }

    /// Whether the policy of a method lets a page use it as `answered` says. A browser remembers all methods of an
    /// answer, with credentials and headers, and does not ask for them one by one.
    fn admits(&self, method: &str, head: &Head<'_, '_>, answered: &Self) -> bool {
        self.allows_method(method)
            && (self.origins.allows_any
                || head.single_text_header("origin").is_some_and(|origin| self.origins.allow(origin)))
            && self.preflight_lines == answered.preflight_lines
            && self.headers == answered.headers
    }
}

/// Names of headers with commas, and nothing else.
fn is_list(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_, ".contains(&byte))
}

/// The answer to a question of a browser whether a page may call an endpoint; none when this is no such question.
/// `cors_of` has the policy of a method of this path.
pub fn preflight<P: Deref<Target = Cors>>(
    head: &Head<'_, '_>,
    methods: &[&'static str],
    cors_of: impl Fn(&str) -> Option<P>,
) -> Option<Refusal> {
    if head.method != "OPTIONS" || head.single_text_header("origin").is_none() {
        return None;
    }
    let requested = head.single_text_header("access-control-request-method")?;
    // What does not exist is told by the methods that do.
    let method = if methods.contains(&requested) { requested } else { methods.first()? };
    let cors = cors_of(method)?;
    let admits = |method: &&&str| cors_of(method).is_some_and(|own| own.admits(method, head, &cors));
    let admitted: Vec<_> = methods.iter().filter(admits).copied().collect();
    Some(cors.answer(head, &admitted, requested != method || cors.allows_method(method)))
}
