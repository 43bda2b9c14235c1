//! The head of a request as handlers get it: JSON.
use std::borrow::Cow;
use std::fmt::Display;
use std::io::Write;
use std::net::IpAddr;

use serde::Serialize;

use crate::policies::Identity;
use crate::request::{Head, RequestSpan, session_cookie};

/// What a handler gets of a request.
pub struct HandlerHead<'a, P> {
    pub head: &'a Head<'a, 'a>,
    /// Names and values of the parameters of the path.
    pub params: P,
    pub client_ip: IpAddr,
    pub request_id: &'a str,
    /// What the gateway does for it.
    pub span: &'a RequestSpan,
    pub deadline_ms: u64,
    /// How often it was sent, if it is sent again when it fails.
    pub attempt: Option<u32>,
    /// Who sends it, as a policy has found.
    pub identity: Option<&'a Identity>,
    /// It asks for a WebSocket.
    pub asks_for_socket: bool,
}

impl<'p, P: Iterator<Item = (&'p str, &'p str)>> HandlerHead<'_, P> {
    pub fn json(self) -> Vec<u8> {
        let Self { head, span, .. } = self;
        let mut json = JsonWriter(Vec::with_capacity(1024));
        json.raw("{\"method\":");
        json.text(head.method);
        json.raw(",\"target\":");
        json.text(&head.target.path_and_query);
        json.raw(",\"headers\":[");
        for header in head.headers {
            if is_replaced(header.name, span) {
                continue;
            }
            let value = if header.name.eq_ignore_ascii_case("cookie") {
                let Some(rest) = session_cookie::without_sessions(header.value) else { continue };
                rest
            } else {
                header.value.into()
            };
            json.item();
            json.text(header.name);
            json.raw(",");
            // RFC 9112, section 3.2.2: the host of the target replaces the one of the header.
            if head.target.is_absolute && header.name.eq_ignore_ascii_case("host") {
                json.text(head.target.authority);
            } else {
                json.text(&text_of(&value));
            }
        }
        if head.target.is_absolute && !head.headers.iter().any(|header| header.name.eq_ignore_ascii_case("host")) {
            json.item();
            json.text("Host");
            json.raw(",");
            json.text(head.target.authority);
        }
        json.item();
        json.raw("\"traceparent\",\"");
        json.raw(span.own.as_str());
        json.raw("\"],\"params\":{");
        for (at, (name, value)) in self.params.enumerate() {
            json.raw(if at == 0 { "" } else { "," });
            json.text(name);
            json.raw(":");
            json.text(value);
        }
        json.raw("},\"client_ip\":\"");
        json.display(self.client_ip);
        json.raw("\",\"request_id\":\"");
        json.raw(self.request_id);
        json.raw("\",\"deadline_ms\":");
        json.raw(itoa::Buffer::new().format(self.deadline_ms));
        if let Some(attempt) = self.attempt {
            json.raw(",\"attempt\":");
            json.raw(itoa::Buffer::new().format(attempt));
        }
        if let Some(identity) = self.identity {
            // Not a header: what a client sends cannot be taken for it.
            json.raw(",\"auth\":");
            json.raw(&identity.json);
        }
        if span.is_recorded {
            // Calls of services are parts of it, too.
            json.raw(",\"spans\":true");
        }
        if self.asks_for_socket {
            json.raw(",\"websocket\":true");
        }
        json.raw("}");
        json.0
    }
}

/// The trace has another parent now; what belongs to one that is not valid is left out.
fn is_replaced(name: &str, span: &RequestSpan) -> bool {
    name.eq_ignore_ascii_case("traceparent") || span.client.is_none() && name.eq_ignore_ascii_case("tracestate")
}

/// Header values that are valid UTF-8 are taken as such, others as Latin-1, the historical default of HTTP.
fn text_of(value: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(value) {
        Ok(text) => text.into(),
        Err(_) => value.iter().map(|&byte| char::from(byte)).collect::<String>().into(),
    }
}

struct JsonWriter(Vec<u8>);

impl JsonWriter {
    fn raw(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    /// Writes what needs no quotes and no escapes.
    fn display(&mut self, value: impl Display) {
        // Writing to memory does not fail.
        let _ = write!(self.0, "{value}");
    }

    /// Begins the next item of a list.
    fn item(&mut self) {
        if self.0.last() != Some(&b'[') {
            self.0.push(b',');
        }
    }

    fn text(&mut self, text: &str) {
        // Nearly no text needs escapes.
        if text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
            self.0.push(b'"');
            self.raw(text);
            self.0.push(b'"');
        } else {
            // Writing to memory does not fail.
            let _ = text.serialize(&mut serde_json::Serializer::new(&mut self.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;
    use std::net::Ipv6Addr;

    use serde_json::{Value, json};

    use super::*;
    use crate::request::{TraceIds, read_head};

    #[test]
    fn text_is_escaped_and_decoded() {
        let bytes =
            b"GET http://seen:1/a?b=\"c HTTP/1.1\r\nhost: other\r\nX-Text: a\"\\\t\xc3\xbc\r\nX-Latin: \xfc\r\n\
              Cookie: a=b; egw_session=c\r\ncookie: egw_session=d\r\n\r\n";
        let mut space = [const { MaybeUninit::uninit() }; 100];
        let head = read_head(bytes, &mut space).unwrap();
        let params = [("id", "a\"b"), ("rest", "x")];
        let mut span = TraceIds::new().unwrap().begin(None, None);
        span.is_recorded = true;
        let of_handler = HandlerHead {
            head: &head,
            params: params.into_iter(),
            client_ip: Ipv6Addr::LOCALHOST.into(),
            request_id: "some-id",
            span: &span,
            deadline_ms: 30_000,
            attempt: Some(2),
            identity: None,
            asks_for_socket: true,
        };
        let json: Value = serde_json::from_slice(&of_handler.json()).unwrap();
        let expected = json!({
            "method": "GET",
            "target": "/a?b=\"c",
            "headers": ["host", "seen:1", "X-Text", "a\"\\\tü", "X-Latin", "ü", "Cookie", "a=b", "traceparent", span.own.as_str()],
            "params": { "id": "a\"b", "rest": "x" },
            "client_ip": "::1",
            "request_id": "some-id",
            "deadline_ms": 30_000,
            "attempt": 2,
            "spans": true,
            "websocket": true,
        });
        assert_eq!(json, expected);
    }
}
