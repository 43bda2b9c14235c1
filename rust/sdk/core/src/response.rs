//! [`Response`]: what a handler answers.

use crate::runtime::records;
use base64::{engine::general_purpose::STANDARD as BASE64, Engine};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Marks a `body` that holds base64 and not the bytes themselves. Never sent to the client.
const BINARY_MARK: &str = "X-Binary-Response";
/// The mark's value, set by hand in handlers for SDK 0.1.
const BY_HAND: &str = "base64";
/// The mark's value, set by [`Response::binary`]: it goes when the body is replaced.
const BY_SDK: &str = "base64-sdk";

/// An HTTP response.
///
/// ```
/// use rust_edge_gateway_sdk_core::prelude::*;
/// let response = Response::created(json!({"id": 7})).with_header("Location", "/items/7");
/// assert_eq!(response.status, 201);
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Response {
    /// HTTP status, 200 to 999. Anything else is answered with a 500.
    pub status: u16,
    /// Header names and values; several headers of one name are one value, joined by line feeds, as
    /// [`Response::append_header`] does. `Content-Length` is set by the gateway.
    #[serde(default)]
    pub headers: HashMap<String, String>,
    /// The body: text. Bytes that are not text are here in base64 (see [`Response::binary`]); the client gets the
    /// bytes.
    #[serde(default)]
    pub body: Option<String>,
}

impl Response {
    /// A status and nothing else.
    pub fn new(status: u16) -> Self {
        Response { status, headers: HashMap::new(), body: None }
    }

    /// 200 with a JSON body.
    pub fn ok<T: Serialize>(body: T) -> Self {
        Self::json(200, body)
    }

    /// 201 with a JSON body.
    pub fn created<T: Serialize>(body: T) -> Self {
        Self::json(201, body)
    }

    /// 202 with a JSON body: the work continues after the response.
    pub fn accepted<T: Serialize>(body: T) -> Self {
        Self::json(202, body)
    }

    /// 204, no body.
    pub fn no_content() -> Self {
        Self::new(204)
    }

    /// A JSON body with a status of your choice. A body that cannot be written as JSON (a map with keys that are not
    /// strings, a `Serialize` that fails) becomes a 500 that says why.
    pub fn json<T: Serialize>(status: u16, body: T) -> Self {
        Self::json_of(status, &body)
    }

    /// Plain text, UTF-8.
    pub fn text(status: u16, body: impl Into<String>) -> Self {
        Self::with_content(status, "text/plain; charset=utf-8", body.into())
    }

    /// HTML, UTF-8.
    pub fn html(status: u16, body: impl Into<String>) -> Self {
        Self::with_content(status, "text/html; charset=utf-8", body.into())
    }

    /// Bytes with the given content type, sent exactly as they are.
    ///
    /// `body` is a string, so bytes that are not UTF-8 are held in base64 until the response leaves the process, marked
    /// with a header `X-Binary-Response` that is not sent. A response built by hand, with that header set to `base64`,
    /// works too.
    pub fn binary(status: u16, data: impl AsRef<[u8]>, content_type: impl Into<String>) -> Self {
        Self::with_bytes(status, data.as_ref(), content_type.into())
    }

    /// A redirect (301, 302, 303, 307 or 308) to `location`.
    pub fn redirect(status: u16, location: impl Into<String>) -> Self {
        Self::new(status).with_header("Location", location)
    }

    /// 400 with `{"error": message}`.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::error(400, &message.into())
    }

    /// 401 with `{"error": message}`.
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::error(401, &message.into())
    }

    /// 403 with `{"error": message}`.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::error(403, &message.into())
    }

    /// 404 with `{"error": "Not Found"}`.
    pub fn not_found() -> Self {
        Self::error(404, "Not Found")
    }

    /// 404 with `{"error": message}`.
    pub fn not_found_msg(message: impl Into<String>) -> Self {
        Self::error(404, &message.into())
    }

    /// 409 with `{"error": message}`.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::error(409, &message.into())
    }

    /// 500 with `{"error": message}`.
    pub fn internal_error(message: impl Into<String>) -> Self {
        Self::error(500, &message.into())
    }

    /// 503 with `{"error": message}`.
    pub fn service_unavailable(message: impl Into<String>) -> Self {
        Self::error(503, &message.into())
    }

    /// Sets a header, replacing the one of that name whatever its case.
    ///
    /// A name or value that HTTP does not allow (a line break, say) is found when the response is sent: the client gets
    /// a 500 that names the header.
    pub fn with_header(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.set_header(key.into(), value.into())
    }

    /// Adds a header, beside those of the same name whatever their case.
    ///
    /// ```
    /// use rust_edge_gateway_sdk_core::prelude::*;
    /// let response = Response::no_content()
    ///     .append_header("Set-Cookie", "theme=dark")
    ///     .append_header("Set-Cookie", "lang=en");
    /// assert_eq!(response.headers["Set-Cookie"], "theme=dark\nlang=en");
    /// ```
    ///
    /// A name or value that HTTP does not allow is refused as with [`Response::with_header`].
    pub fn append_header(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.push_header(key.into(), value.into())
    }

    /// Sets or replaces the body with text, whatever it was before. The content type stays as it is.
    pub fn with_body(self, body: impl Into<String>) -> Self {
        self.set_body(body.into())
    }

    /// Lets pages of `origin` (`*` for all) call this endpoint: sets the `Access-Control-Allow-*` headers, and for a
    /// single origin also `Vary: Origin`, so that a cache does not serve one origin's answer to another.
    pub fn with_cors(self, origin: impl Into<String>) -> Self {
        self.set_cors(origin.into())
    }

    /// Lets caches keep the response for `max_age_seconds` seconds; 0 forbids keeping it at all.
    pub fn with_cache(self, max_age_seconds: u32) -> Self {
        let value = match max_age_seconds {
            0 => "no-store, no-cache, must-revalidate".to_owned(),
            seconds => format!("max-age={seconds}"),
        };
        self.set_header("Cache-Control".to_owned(), value)
    }
}

// The work behind the generic constructors. Compiled once, here, and not in every handler.
impl Response {
    #[inline(never)]
    fn json_of(status: u16, body: &dyn erased_serde::Serialize) -> Self {
        let mut text = Vec::with_capacity(128);
        match serde_json::to_writer(&mut text, body) {
            Ok(()) => Self::json_text(status, text),
            Err(error) => {
                records::error(&format!("a response body cannot be written as JSON: {error}"), serde_json::Map::new());
                Self::error(500, &format!("The response cannot be written as JSON: {error}"))
            }
        }
    }

    /// The JSON error that all helpers and [`crate::HandlerError`]s answer with.
    pub(crate) fn error(status: u16, message: &str) -> Self {
        let mut body = b"{\"error\":".to_vec();
        serde_json::to_writer(&mut body, message).expect("a string is always JSON");
        body.push(b'}');
        Self::json_text(status, body)
    }

    /// A response from finished JSON.
    fn json_text(status: u16, json: Vec<u8>) -> Self {
        let body = String::from_utf8(json).expect("JSON written from strings is UTF-8");
        Self::with_content(status, "application/json", body)
    }

    #[inline(never)]
    fn with_content(status: u16, content_type: &str, body: String) -> Self {
        let headers = HashMap::from([("Content-Type".to_owned(), content_type.to_owned())]);
        Response { status, headers, body: Some(body) }
    }

    #[inline(never)]
    fn with_bytes(status: u16, data: &[u8], content_type: String) -> Self {
        match std::str::from_utf8(data) {
            Ok(text) => Self::with_content(status, &content_type, text.to_owned()),
            Err(_) => Self::with_content(status, &content_type, BASE64.encode(data))
                .set_header(BINARY_MARK.to_owned(), BY_SDK.to_owned()),
        }
    }

    #[inline(never)]
    fn set_header(mut self, key: String, value: String) -> Self {
        self.headers.retain(|name, _| !name.eq_ignore_ascii_case(&key));
        self.headers.insert(key, one_value(value));
        self
    }

    #[inline(never)]
    fn push_header(mut self, key: String, value: String) -> Self {
        match self.headers.iter_mut().find(|(name, _)| name.eq_ignore_ascii_case(&key)) {
            Some((_, values)) => {
                values.push('\n');
                values.push_str(&one_value(value));
            }
            None => {
                self.headers.insert(key, one_value(value));
            }
        }
        self
    }

    #[inline(never)]
    fn set_body(mut self, body: String) -> Self {
        self.headers.retain(|name, value| !(is_binary_mark(name, value) && value == BY_SDK));
        self.body = Some(body);
        self
    }

    #[inline(never)]
    fn set_cors(self, origin: String) -> Self {
        let response = if origin == "*" { self } else { self.add_vary_origin() };
        response
            .set_header("Access-Control-Allow-Origin".to_owned(), origin)
            .set_header("Access-Control-Allow-Methods".to_owned(), "GET, POST, PUT, PATCH, DELETE, OPTIONS".to_owned())
            .set_header("Access-Control-Allow-Headers".to_owned(), "Content-Type, Authorization".to_owned())
    }

    fn add_vary_origin(self) -> Self {
        let vary = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("vary"));
        let value = match vary {
            None => "Origin".to_owned(),
            Some((_, value)) => format!("{value}, Origin"),
        };
        self.set_header("Vary".to_owned(), value)
    }
}

// What the wire needs.
impl Response {
    /// Whether this header is not sent: a mark of the SDK, or the content type that a constructor set and a handler
    /// replaced by putting one of another spelling into the map.
    pub(crate) fn is_internal(&self, name: &str, value: &str) -> bool {
        is_binary_mark(name, value)
            || name == "Content-Type" && self.headers.keys().filter(|key| key.eq_ignore_ascii_case(name)).count() > 1
    }

    /// The body as it is sent.
    ///
    /// # Errors
    /// A sentence, if the body is marked as base64 and is not.
    pub(crate) fn into_body_bytes(self) -> Result<Vec<u8>, String> {
        let body = self.body.unwrap_or_default();
        if !self.headers.iter().any(|(name, value)| is_binary_mark(name, value)) {
            return Ok(body.into_bytes());
        }
        BASE64.decode(&body).map_err(|error| format!("its body is marked {BINARY_MARK} and is not base64: {error}"))
    }
}

/// A value given as one stays one: its line feeds would make several of it in the map, and let whoever has a say in it
/// add headers of this name. With a carriage return it is refused when it is sent.
fn one_value(value: String) -> String {
    match value.contains('\n') {
        true => value.replace('\n', "\r\n"),
        false => value,
    }
}

fn is_binary_mark(name: &str, value: &str) -> bool {
    name.eq_ignore_ascii_case(BINARY_MARK) && (value == BY_SDK || value.eq_ignore_ascii_case(BY_HAND))
}

impl Default for Response {
    /// 200 without a body.
    fn default() -> Self {
        Self::new(200)
    }
}
