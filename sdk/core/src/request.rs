//! [`Request`]: what a handler is asked.

pub use crate::multipart::{MultipartData, MultipartFile};

use crate::{json_bridge, HandlerError};
use serde::{de::DeserializeOwned, Deserialize, Serialize};
use std::collections::HashMap;
use std::str::FromStr;

/// An HTTP request.
///
/// ```
/// use rust_edge_gateway_sdk_core::prelude::*;
/// fn handle(req: Request) -> Result<Response, HandlerError> {
///     let id: u64 = req.require_path_param("id")?;
///     Ok(Response::ok(json!({"id": id, "verbose": req.query_param("verbose")})))
/// }
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Request {
    /// The method, as received: `GET`, `POST` ...
    pub method: String,
    /// The path as received, without the query and not percent-decoded: `/items/a%20b`.
    pub path: String,
    /// The query, decoded. Of several values of one name, the last.
    #[serde(default)]
    pub query: HashMap<String, String>,
    /// The headers, names in lower case. Repeated headers are joined with `, ` (`cookie` with `; `).
    #[serde(default)]
    pub headers: HashMap<String, String>,
    /// The body, if there is one and it is UTF-8. [`Request::body_bytes`] has every body.
    #[serde(default)]
    pub body: Option<String>,
    /// The values of the route's `{name}` segments, decoded.
    #[serde(default)]
    pub params: HashMap<String, String>,
    /// The address of the client, without a port.
    #[serde(default)]
    pub client_ip: Option<String>,
    /// Names this request in logs; the client gets it as `X-Request-Id`.
    #[serde(default)]
    pub request_id: String,
    /// A body that is not UTF-8, and therefore not in `body`.
    #[doc(hidden)]
    #[serde(skip)]
    pub binary_body: Vec<u8>,
}

impl Request {
    /// The body read as JSON.
    ///
    /// ```
    /// # use rust_edge_gateway_sdk_core::prelude::*;
    /// #[derive(Deserialize)]
    /// struct NewUser { name: String }
    /// fn handle(req: Request) -> Result<Response, HandlerError> {
    ///     let user: NewUser = req.json()?;
    ///     Ok(Response::created(json!({"name": user.name})))
    /// }
    /// ```
    ///
    /// # Errors
    /// [`HandlerError::BadRequest`], saying what is wrong and where. An empty body reads as `null`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, HandlerError> {
        json_bridge::from_bytes(self.bytes())
    }

    /// A query parameter.
    pub fn query_param(&self, key: &str) -> Option<&String> {
        self.query.get(key)
    }

    /// A query parameter as another type; `None` if it is missing or does not parse.
    pub fn query_param_as<T: FromStr>(&self, key: &str) -> Option<T> {
        self.query_param(key)?.parse().ok()
    }

    /// A query parameter that must be there.
    ///
    /// # Errors
    /// [`HandlerError::BadRequest`] if it is missing or does not parse.
    pub fn require_query_param<T: FromStr>(&self, key: &str) -> Result<T, HandlerError> {
        let text = require(self.query_param(key), "query parameter", key)?;
        text.parse().map_err(|_| invalid("query parameter", key, text))
    }

    /// The value of the route's segment `{key}`.
    pub fn path_param(&self, key: &str) -> Option<&String> {
        self.params.get(key)
    }

    /// The value of the route's segment `{key}` as another type; `None` if there is none or it does not parse.
    pub fn path_param_as<T: FromStr>(&self, key: &str) -> Option<T> {
        self.path_param(key)?.parse().ok()
    }

    /// The value of the route's segment `{key}`, which must be there.
    ///
    /// # Errors
    /// [`HandlerError::BadRequest`] if the route has no such segment or its value does not parse.
    pub fn require_path_param<T: FromStr>(&self, key: &str) -> Result<T, HandlerError> {
        let text = require(self.path_param(key), "path parameter", key)?;
        text.parse().map_err(|_| invalid("path parameter", key, text))
    }

    /// A header, by its name in any case.
    pub fn header(&self, key: &str) -> Option<&String> {
        // Names arrive in lower case; a handler's own test may have built the map otherwise.
        self.headers.get(&key.to_ascii_lowercase()).or_else(|| {
            let mut all = self.headers.iter();
            all.find_map(|(name, value)| name.eq_ignore_ascii_case(key).then_some(value))
        })
    }

    /// A header that must be there.
    ///
    /// # Errors
    /// [`HandlerError::BadRequest`] if it is missing.
    pub fn require_header(&self, key: &str) -> Result<&String, HandlerError> {
        require(self.header(key), "header", key)
    }

    /// Whether the method is this one, in any case.
    pub fn is_method(&self, method: &str) -> bool {
        self.method.eq_ignore_ascii_case(method)
    }

    /// The body, byte for byte, whether it is text or not; empty if there is none.
    pub fn body_bytes(&self) -> Vec<u8> {
        self.bytes().to_vec()
    }

    /// The `Content-Type` header.
    pub fn content_type(&self) -> Option<&String> {
        self.header("content-type")
    }

    /// Whether the content type is JSON: `application/json`, or one that ends in `+json` (RFC 6839).
    pub fn is_json(&self) -> bool {
        let media_type = self.media_type();
        media_type == "application/json" || media_type.ends_with("+json")
    }

    /// Whether the content type is `multipart/form-data`.
    pub fn is_multipart(&self) -> bool {
        self.media_type() == "multipart/form-data"
    }

    /// The body read as a multipart form (RFC 7578): text fields and files, files byte for byte.
    ///
    /// # Errors
    /// [`HandlerError::BadRequest`] if the content type is another or names no boundary, or the body is not well
    /// formed.
    pub fn multipart(&self) -> Result<MultipartData, HandlerError> {
        let Some(content_type) = self.content_type().filter(|_| self.is_multipart()) else {
            return Err(HandlerError::BadRequest("Expected a body with Content-Type: multipart/form-data".into()));
        };
        MultipartData::parse_bytes(self.bytes(), content_type)
    }

    /// The content type without its parameters, in lower case; empty if there is none.
    fn media_type(&self) -> String {
        let value = self.content_type().map_or("", |value| value.as_str());
        let media_type = value.split(';').next().unwrap_or("");
        media_type.trim().to_ascii_lowercase()
    }

    fn bytes(&self) -> &[u8] {
        match &self.body {
            Some(text) => text.as_bytes(),
            None => &self.binary_body,
        }
    }

    /// Puts received bytes where they belong: text into `body`, other bytes beside it, nothing nowhere.
    pub(crate) fn set_body_bytes(&mut self, bytes: &[u8]) {
        match std::str::from_utf8(bytes) {
            Ok("") => {}
            Ok(text) => self.body = Some(text.to_owned()),
            Err(_) => self.binary_body = bytes.to_vec(),
        }
    }
}

// Not generic, so that handlers do not compile the sentences again for every type they parse.
#[inline(never)]
fn require<'a>(value: Option<&'a String>, what: &str, key: &str) -> Result<&'a String, HandlerError> {
    value.ok_or_else(|| HandlerError::BadRequest(format!("Missing required {what}: {key}")))
}

#[inline(never)]
fn invalid(what: &str, key: &str, text: &str) -> HandlerError {
    HandlerError::BadRequest(format!("Invalid value for {what} {key}: {text:?}"))
}

impl Default for Request {
    /// `GET /` with nothing else: a start for the requests of your tests.
    fn default() -> Self {
        Request {
            method: "GET".to_owned(),
            path: "/".to_owned(),
            query: HashMap::new(),
            headers: HashMap::new(),
            body: None,
            params: HashMap::new(),
            client_ip: None,
            request_id: String::new(),
            binary_body: Vec::new(),
        }
    }
}
