//! The head of a handler's response. Handlers may be written without the SDK, so nothing is taken on trust.
use serde_json::Value;

use crate::request::session_cookie;

/// Larger heads are more than clients accept, and cost time to parse.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Hop-by-hop headers, and those that the front sets itself.
const NOT_FORWARDED: [&str; 9] = [
    "connection",
    "content-length",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-request-id",
];

/// By these one answer decides about all of its host, in the browser that gets it: what is stored there, where later
/// requests go, who is told of them, which pages a worker of one of them sees.
const OF_THE_HOST: [&str; 11] = [
    "accept-ch",
    "alt-svc",
    "clear-site-data",
    "critical-ch",
    "nel",
    "origin-agent-cluster",
    "public-key-pins",
    "report-to",
    "secure-session-registration",
    "service-worker-allowed",
    "set-login",
];

/// A head that has been checked.
#[derive(Debug, PartialEq, Eq)]
pub struct HandlerResponseHead {
    pub status: u16,
    /// The header lines for the client.
    pub lines: Vec<u8>,
    /// Lines that decide about the whole host: only a policy lets a handler send them.
    pub host_lines: Vec<u8>,
    pub has_date: bool,
    /// The length that the handler gives its body. It matters for one that is streamed only.
    pub content_length: Option<u64>,
    /// Whether its handler can put the body into memory that it is given.
    pub takes_memory: bool,
}

impl HandlerResponseHead {
    /// # Errors
    /// What is wrong with it.
    pub fn parse(json: &[u8]) -> Result<Self, String> {
        if json.len() > MAX_HEAD_BYTES {
            return Err(format!("its response is invalid: its head is longer than {MAX_HEAD_BYTES} bytes"));
        }
        let head: Value = serde_json::from_str(&String::from_utf8_lossy(json)).map_err(invalid)?;
        let (Some(status), Some(headers)) = (head.get("status"), head.get("headers")) else {
            return Err(invalid("a response head needs status and headers"));
        };
        let Some(status) = status.as_u64().filter(|status| matches!(status, 101 | 200..=999)) else {
            return Err(invalid(format!("{status} is not a status a response can have (200 to 999)")));
        };
        let headers = headers.as_array().filter(|items| items.len() % 2 == 0 && items.iter().all(Value::is_string));
        let Some(headers) = headers else {
            return Err(invalid("headers must be a list of names and values in turn"));
        };
        let takes_memory = head.get("memory").and_then(Value::as_bool).unwrap_or(false);
        let mut parsed = Self {
            status: status as u16,
            lines: Vec::new(),
            host_lines: Vec::new(),
            has_date: false,
            content_length: None,
            takes_memory,
        };
        for pair in headers.chunks_exact(2) {
            let (name, value) = (pair[0].as_str().unwrap_or(""), pair[1].as_str().unwrap_or(""));
            if !is_name(name) || !is_value(value) {
                return Err("the handler sent headers that HTTP does not allow".to_owned());
            }
            if name.eq_ignore_ascii_case("content-length") {
                parsed.content_length = value.parse().ok();
            }
            let is_session = name.eq_ignore_ascii_case("set-cookie") && session_cookie::sets_session(value.as_bytes());
            if is_session || NOT_FORWARDED.iter().any(|one| one.eq_ignore_ascii_case(name)) {
                continue;
            }
            parsed.has_date |= name.eq_ignore_ascii_case("date");
            let is_of_host = OF_THE_HOST.iter().any(|one| one.eq_ignore_ascii_case(name));
            let lines = if is_of_host { &mut parsed.host_lines } else { &mut parsed.lines };
            for part in [name, ": ", value, "\r\n"] {
                lines.extend_from_slice(part.as_bytes());
            }
        }
        Ok(parsed)
    }
}

fn invalid(reason: impl std::fmt::Display) -> String {
    format!("its response is invalid: {reason}")
}

/// RFC 9110, section 5.1: a token.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+.^_`|~-".contains(&byte))
}

/// RFC 9110, section 5.5: without control characters.
fn is_value(value: &str) -> bool {
    value.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_the_connection_are_left_out() {
        let json = r#"{"status":201,"headers":["Content-Type","text/plain","Connection","close","X-Text","grüße"]}"#;
        let head = HandlerResponseHead::parse(json.as_bytes()).unwrap();
        assert_eq!(head.status, 201);
        assert_eq!(String::from_utf8(head.lines).unwrap(), "Content-Type: text/plain\r\nX-Text: grüße\r\n");
        assert!(!head.has_date);
        assert!(HandlerResponseHead::parse(br#"{"status":200,"headers":["date","now"]}"#).unwrap().has_date);
    }

    #[test]
    fn headers_that_decide_about_the_whole_host_are_apart() {
        let json = r#"{"status":200,"headers":["clear-site-data","\"cookies\"","X-Text","a","Alt-Svc","h3"]}"#;
        let head = HandlerResponseHead::parse(json.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(head.lines).unwrap(), "X-Text: a\r\n");
        assert_eq!(String::from_utf8(head.host_lines).unwrap(), "clear-site-data: \"cookies\"\r\nAlt-Svc: h3\r\n");
    }

    #[test]
    fn errors_of_response_heads_name_the_fault() {
        for (json, reason) in [
            ("{", "its response is invalid: "),
            ("[]", "needs status and headers"),
            (r#"{"status":100,"headers":[]}"#, "100 is not a status"),
            (r#"{"status":"200","headers":[]}"#, "\"200\" is not a status"),
            (r#"{"status":200,"headers":["a"]}"#, "names and values in turn"),
            (r#"{"status":200,"headers":["a",1]}"#, "names and values in turn"),
            (r#"{"status":200,"headers":["a b","c"]}"#, "HTTP does not allow"),
            (r#"{"status":200,"headers":["a","b\r\nc: d"]}"#, "HTTP does not allow"),
        ] {
            let error = HandlerResponseHead::parse(json.as_bytes()).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }
}
