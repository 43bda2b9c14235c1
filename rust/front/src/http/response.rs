//! Writes the heads of responses.
use http::StatusCode;
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, HeaderName, HeaderValue, UPGRADE};

use crate::dates::Dates;

/// The text of a status.
pub fn reason(status: u16) -> &'static str {
    http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("unknown")
}

/// Lines of our own that are about a connection of HTTP/1.
const OF_CONNECTION: [HeaderName; 2] = [CONNECTION, UPGRADE];

/// What a connection is told about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// It stays open, as it does by default.
    Default,
    /// It stays open, as the client has asked for.
    KeepAlive,
    Close,
}

/// A response without its body.
pub struct ResponseHead<'a> {
    pub status: u16,
    /// Header lines.
    pub lines: &'a [u8],
    pub has_date: bool,
    pub request_id: &'a str,
    /// Further header lines, which are about the connection.
    pub transport_lines: &'a str,
    pub persistence: Persistence,
    /// `None` for a status without a body.
    pub content_length: Option<usize>,
}

impl ResponseHead<'_> {
    /// The head for HTTP/2, which has nothing to say about the connection.
    pub fn response(&self, dates: &Dates) -> http::Response<()> {
        let mut response = http::Response::new(());
        // Those of handlers and policies are from 200 to 999.
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        let lines = self.lines.split(|&byte| byte == b'\n');
        for line in lines.chain(self.transport_lines.as_bytes().split(|&byte| byte == b'\n')) {
            let Some(colon) = memchr::memchr(b':', line) else { continue };
            let name = HeaderName::from_bytes(&line[..colon]);
            let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
            // They have been checked.
            if let (Ok(name), Ok(value)) = (name, value)
                && !OF_CONNECTION.contains(&name)
            {
                headers.append(name, value);
            }
        }
        if let Ok(id) = HeaderValue::from_str(self.request_id) {
            headers.insert("x-request-id", id);
        }
        if !self.has_date {
            dates.with_now(&mut |text| {
                if let Ok(date) = HeaderValue::from_bytes(text) {
                    headers.insert(DATE, date);
                }
            });
        }
        if let Some(length) = self.content_length {
            headers.insert(CONTENT_LENGTH, length.into());
        }
        response
    }

    /// The bytes of the head, with room for so many more.
    pub fn bytes(&self, dates: &Dates, room: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(256 + self.lines.len() + room);
        let mut add = |part: &[u8]| bytes.extend_from_slice(part);
        let mut number = itoa::Buffer::new();
        add(b"HTTP/1.1 ");
        add(number.format(self.status).as_bytes());
        add(b" ");
        add(reason(self.status).as_bytes());
        add(b"\r\n");
        add(self.lines);
        add(self.transport_lines.as_bytes());
        add(b"X-Request-Id: ");
        add(self.request_id.as_bytes());
        if !self.has_date {
            add(b"\r\nDate: ");
            dates.with_now(&mut add);
        }
        add(match self.persistence {
            Persistence::Default => b"".as_slice(),
            Persistence::KeepAlive => b"\r\nConnection: keep-alive",
            Persistence::Close => b"\r\nConnection: close",
        });
        if let Some(length) = self.content_length {
            add(b"\r\nContent-Length: ");
            add(number.format(length).as_bytes());
        }
        add(b"\r\n\r\n");
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_complete() {
        let head = ResponseHead {
            status: 299,
            lines: b"Date: today\r\n",
            has_date: true,
            request_id: "id",
            transport_lines: "Over: TLS\r\n",
            persistence: Persistence::Close,
            content_length: Some(3),
        };
        let text = String::from_utf8(head.bytes(&Dates::default(), 0)).unwrap();
        let expected = "HTTP/1.1 299 unknown\r\nDate: today\r\nOver: TLS\r\nX-Request-Id: id\r\nConnection: close\r\nContent-Length: 3";
        assert_eq!(text, format!("{expected}\r\n\r\n"));
    }

    #[test]
    fn responses_have_a_date() {
        let head = ResponseHead {
            status: 204,
            lines: b"",
            has_date: false,
            request_id: "id",
            transport_lines: "",
            persistence: Persistence::Default,
            content_length: None,
        };
        let text = String::from_utf8(head.bytes(&Dates::default(), 0)).unwrap();
        assert!(text.starts_with("HTTP/1.1 204 No Content\r\nX-Request-Id: id\r\nDate: "), "{text}");
        assert!(text.ends_with(" GMT\r\n\r\n"), "{text}");
    }
}
