//! [`Request`]: what a handler gets.

pub use crate::multipart::{MultipartData, MultipartFile};

use crate::values::{invalid, missing, Place, Values};
use crate::{json_bridge, HandlerError, Pairs};
use serde::{de::DeserializeOwned, Deserialize, Serialize};
use std::collections::HashMap;
use std::str::FromStr;

const URLENCODED: &str = "application/x-www-form-urlencoded";
/// Most fields of one form: millions of empty fields would be an attack on memory.
const MAX_FIELDS: usize = 10_000;

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
    /// The values of the route's parameters, decoded: of `{id}`, of `{file}.{ext}`, of `{*path}`.
    #[serde(default)]
    pub params: HashMap<String, String>,
    /// The address of the client, without a port.
    #[serde(default)]
    pub client_ip: Option<String>,
    /// Names this request in logs; the client gets it as `X-Request-Id`.
    #[serde(default)]
    pub request_id: String,
    /// Public, so that `..req` works outside of this crate.
    #[doc(hidden)]
    #[serde(skip)]
    pub received: Received,
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
        let text = require(self.query_param(key), Place::QueryParameter, key)?;
        text.parse().map_err(|_| invalid(Place::QueryParameter, key, text, ""))
    }

    /// All values of a query parameter, in the order of the query.
    pub fn query_all(&self, name: &str) -> Vec<String> {
        self.query_pairs().into_iter().filter(|(key, _)| key == name).map(|(_, value)| value).collect()
    }

    /// The whole query, decoded: all names and values in their order.
    pub fn query_pairs(&self) -> Pairs {
        let received: Vec<_> = form_urlencoded::parse(self.raw_query().as_bytes()).into_owned().collect();
        let last: HashMap<&String, &String> = received.iter().map(|(name, value)| (name, value)).collect();
        let is_last = |(name, value)| last.get(name) == Some(&value);
        // A handler may have changed the map, or made the request itself.
        let is_unchanged = last.len() == self.query.len() && self.query.iter().all(is_last);
        Pairs::new(Place::QueryParameter, if is_unchanged { received } else { sorted(&self.query) })
    }

    /// Who sends the request, as the `auth` policy of the gateway has found: the `sub` of a token, or the name of a
    /// user. Nothing that a client sends itself, such as a header, can change it.
    ///
    /// ```
    /// # use rust_edge_gateway_sdk_core::prelude::*;
    /// fn handle(req: Request) -> Response {
    ///     match req.subject() {
    ///         Some(subject) => Response::ok(json!({"hello": subject})),
    ///         None => Response::json(403, json!({"error": "who are you?"})),
    ///     }
    /// }
    /// ```
    pub fn subject(&self) -> Option<&str> {
        self.received.caller.as_ref()?.subject.as_deref()
    }

    /// The claims of the token with which the request came; the gateway has verified it.
    pub fn claims(&self) -> Option<&serde_json::Value> {
        self.received.caller.as_ref()?.claims.as_ref()
    }

    /// The label of the API key with which the request came; the gateway has verified it.
    pub fn key_label(&self) -> Option<&str> {
        self.received.caller.as_ref()?.key_label.as_deref()
    }

    /// The query as received: what follows the `?`, not decoded; empty if there is none.
    pub fn raw_query(&self) -> &str {
        &self.received.raw_query
    }

    /// The value of the route's parameter `{key}`.
    pub fn path_param(&self, key: &str) -> Option<&String> {
        self.params.get(key)
    }

    /// The value of the route's parameter `{key}` as another type; `None` if there is none or it does not parse.
    pub fn path_param_as<T: FromStr>(&self, key: &str) -> Option<T> {
        self.path_param(key)?.parse().ok()
    }

    /// The value of the route's parameter `{key}`, which must be there.
    ///
    /// # Errors
    /// [`HandlerError::BadRequest`] if the route has no such parameter or its value does not parse.
    pub fn require_path_param<T: FromStr>(&self, key: &str) -> Result<T, HandlerError> {
        let text = require(self.path_param(key), Place::PathParameter, key)?;
        text.parse().map_err(|_| invalid(Place::PathParameter, key, text, ""))
    }

    /// The value of the route's parameter `{name}`, to be read as a list or in another way.
    pub fn path_values<'a>(&'a self, name: &'a str) -> Values<'a> {
        Values::new(Place::PathParameter, name, self.path_param(name).map(String::as_str).into_iter().collect())
    }

    /// How often this request was sent, this time included: 1 unless it was queued (`enqueue`, schedules) and an
    /// earlier attempt failed, or its outcome was lost.
    pub fn attempt(&self) -> u32 {
        self.received.attempt.unwrap_or(1)
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
        require(self.header(key), Place::Header, key)
    }

    /// The values of all headers with this name in any case, one for each time it was sent.
    pub fn header_all(&self, name: &str) -> Vec<&str> {
        let Some(joined) = self.header(name) else { return Vec::new() };
        let name = name.to_ascii_lowercase();
        match self.received.repeated_headers.get(&name) {
            // What was received counts only while the map still says the same.
            Some(values) if values.join(header_separator(&name)) == *joined => {
                values.iter().map(String::as_str).collect()
            }
            _ => vec![joined],
        }
    }

    /// The same, to be read as a list or in another way.
    pub fn header_values<'a>(&'a self, name: &'a str) -> Values<'a> {
        Values::new(Place::Header, name, self.header_all(name))
    }

    /// A cookie, as it was sent; of several with one name the first, which is the one with the longest path.
    pub fn cookie(&self, name: &str) -> Option<&str> {
        self.cookies().find_map(|(key, value)| (key == name).then_some(value))
    }

    /// All cookies, in their order.
    pub fn cookie_pairs(&self) -> Pairs {
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Pairs::new(Place::Cookie, self.cookies().map(owned).collect())
    }

    fn cookies(&self) -> impl Iterator<Item = (&str, &str)> {
        let header = self.header("cookie").map_or("", String::as_str);
        header.split(';').filter_map(|cookie| cookie.trim().split_once('='))
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

    /// The body read as a form of type `application/x-www-form-urlencoded`, as browsers send it: all names and values.
    ///
    /// # Errors
    /// [`HandlerError::BadRequest`] if the content type is another, or there are more than 10 000 fields.
    pub fn form(&self) -> Result<Pairs, HandlerError> {
        if self.media_type() != URLENCODED {
            return Err(HandlerError::BadRequest(format!("Expected a body with Content-Type: {URLENCODED}")));
        }
        let fields: Vec<_> = form_urlencoded::parse(self.bytes()).take(MAX_FIELDS + 1).collect();
        if fields.len() > MAX_FIELDS {
            return Err(HandlerError::BadRequest(format!("The form has more than {MAX_FIELDS} fields")));
        }
        let owned = fields.into_iter().map(|(name, value)| (name.into_owned(), value.into_owned()));
        Ok(Pairs::new(Place::Field, owned.collect()))
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
            None => &self.received.binary_body,
        }
    }

    /// Takes the body out of it.
    pub(crate) fn take_body(&mut self) -> Vec<u8> {
        match self.body.take() {
            Some(text) => text.into_bytes(),
            None => std::mem::take(&mut self.received.binary_body),
        }
    }

    /// Puts received bytes where they belong: text into `body`, other bytes beside it, nothing nowhere.
    pub(crate) fn set_body_bytes(&mut self, bytes: &[u8]) {
        match std::str::from_utf8(bytes) {
            Ok("") => {}
            Ok(text) => self.body = Some(text.to_owned()),
            Err(_) => self.received.binary_body = bytes.to_vec(),
        }
    }
}

/// The members of a map that was not received but made, in an order that is always the same.
fn sorted(map: &HashMap<String, String>) -> Vec<(String, String)> {
    let mut pairs: Vec<_> = map.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    pairs.sort_unstable();
    pairs
}

/// How values of headers with one name are joined: RFC 9110 5.3 has a comma, RFC 6265 5.4 makes cookies the exception.
pub(crate) fn header_separator(lower_case_name: &str) -> &'static str {
    match lower_case_name {
        "cookie" => "; ",
        _ => ", ",
    }
}

// Not generic, so that handlers do not compile it again for every type they parse.
#[inline(never)]
fn require<'a>(value: Option<&'a String>, place: Place, key: &str) -> Result<&'a String, HandlerError> {
    value.ok_or_else(|| missing(place, key))
}

/// What a frame brings besides the fields of SDK 0.1. Empty in a request that was made in another way.
#[doc(hidden)]
#[derive(Debug, Clone, Default)]
pub struct Received {
    /// A body that is not UTF-8, and therefore not in `body`.
    pub(crate) binary_body: Vec<u8>,
    /// The query, as received.
    pub(crate) raw_query: String,
    /// The values of headers that came several times, by their names in lower case.
    pub(crate) repeated_headers: HashMap<String, Vec<String>>,
    /// How often the request was sent, if it is sent again when it fails.
    pub(crate) attempt: Option<u32>,
    /// Whether the gateway wants to know of each call of a service that it makes.
    pub(crate) spans: bool,
    /// Who sends it, where a policy of the gateway has found that out.
    pub(crate) caller: Option<Caller>,
}

/// Who sends a request, as the gateway has found out.
#[doc(hidden)]
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Caller {
    #[serde(default)]
    subject: Option<String>,
    #[serde(default)]
    claims: Option<serde_json::Value>,
    #[serde(default)]
    key_label: Option<String>,
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
            received: Received::default(),
        }
    }
}
