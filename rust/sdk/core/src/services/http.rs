//! [`HttpPool`]: requests to the APIs of others.

use super::call::{Arg, Call};
use super::failure::Family;
use super::reply::Reply;
use crate::{json_bridge, HandlerError};
use form_urlencoded::byte_serialize;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// An HTTP server that is bound to the endpoint.
///
/// ```no_run
/// use rust_edge_gateway_sdk_core::prelude::*;
///
/// fn handle(_: Request) -> Result<Response, HandlerError> {
///     let api = HttpPool::new("billing");
///     let invoice = HttpRequest::post("/invoices").json(&json!({"amount": 5}))?.header("Idempotency-Key", "a1");
///     let created: JsonValue = api.send(&invoice)?.error_for_status()?.json()?;
///     Ok(Response::created(created))
/// }
/// ```
///
/// Paths are below the URL of the service, which sends its own credentials with each request. A whole URL may be given
/// where the service allows its host; it gets none of them. Redirects are not followed. An answer of any status is a
/// success; see [`HttpResponse::error_for_status`].
///
/// Every call fails with [`HandlerError::HttpError`] when the service does not allow the request or the server breaks
/// off, and with the errors that all services share: [`HandlerError::PoolNotBound`],
/// [`HandlerError::ServiceInactive`], [`HandlerError::BackendUnavailable`], [`HandlerError::DeadlineExceeded`],
/// [`HandlerError::ServiceBusy`].
#[derive(Debug, Clone)]
pub struct HttpPool {
    /// The name under which the service is bound to the endpoint.
    pub pool_id: String,
}

/// A request being made.
#[derive(Debug, Clone)]
pub struct HttpRequest {
    method: String,
    path: String,
    headers: Vec<HttpHeader>,
    body: Vec<u8>,
}

/// What a server has answered.
#[derive(Debug, Clone)]
pub struct HttpResponse {
    /// 200 to 599.
    pub status: u16,
    /// The bytes as they were received: none of them is decoded or decompressed.
    pub body: Vec<u8>,
    headers: Vec<HttpHeader>,
    pool_id: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct HttpHeader {
    name: String,
    value: String,
}

#[derive(Deserialize)]
struct ResponseHead {
    status: u16,
    headers: Vec<HttpHeader>,
}

impl HttpPool {
    /// The server that is bound as `pool_id`. Connects to nothing.
    pub fn new(pool_id: impl Into<String>) -> Self {
        HttpPool { pool_id: pool_id.into() }
    }

    /// Gets what is at a path.
    ///
    /// # Errors
    /// See [`HttpPool`].
    pub fn get(&self, path: &str) -> Result<HttpResponse, HandlerError> {
        self.send(&HttpRequest::get(path))
    }

    /// Posts a value as JSON.
    ///
    /// # Errors
    /// See [`HttpPool`]; [`HandlerError::SerializationError`].
    pub fn post_json(&self, path: &str, value: &(impl Serialize + ?Sized)) -> Result<HttpResponse, HandlerError> {
        self.send(&HttpRequest::post(path).json(value)?)
    }

    /// Puts a value as JSON.
    ///
    /// # Errors
    /// See [`HttpPool`]; [`HandlerError::SerializationError`].
    pub fn put_json(&self, path: &str, value: &(impl Serialize + ?Sized)) -> Result<HttpResponse, HandlerError> {
        self.send(&HttpRequest::put(path).json(value)?)
    }

    /// Deletes what is at a path.
    ///
    /// # Errors
    /// See [`HttpPool`].
    pub fn delete(&self, path: &str) -> Result<HttpResponse, HandlerError> {
        self.send(&HttpRequest::delete(path))
    }

    /// Sends a request.
    ///
    /// # Errors
    /// See [`HttpPool`].
    pub fn send(&self, request: &HttpRequest) -> Result<HttpResponse, HandlerError> {
        let headers = serde_json::to_string(&request.headers)?;
        let args = [
            ("method", Arg::Text(&request.method)),
            ("path", Arg::Text(&request.path)),
            ("headers", Arg::Json(&headers)),
        ];
        let call = Call::new(Family::Http, &self.pool_id, "request", &args, &request.body);
        call.read(|reply: Reply<'_, ResponseHead>| {
            let ResponseHead { status, headers } = reply.result.ok_or("it has no result")?;
            Ok(HttpResponse { status, headers, body: reply.body.into_vec(), pool_id: self.pool_id.clone() })
        })
    }
}

impl HttpRequest {
    /// A request with any method.
    pub fn new(method: impl Into<String>, path: impl Into<String>) -> Self {
        HttpRequest { method: method.into(), path: path.into(), headers: Vec::new(), body: Vec::new() }
    }

    /// A GET.
    pub fn get(path: impl Into<String>) -> Self {
        HttpRequest::new("GET", path)
    }

    /// A POST.
    pub fn post(path: impl Into<String>) -> Self {
        HttpRequest::new("POST", path)
    }

    /// A PUT.
    pub fn put(path: impl Into<String>) -> Self {
        HttpRequest::new("PUT", path)
    }

    /// A PATCH.
    pub fn patch(path: impl Into<String>) -> Self {
        HttpRequest::new("PATCH", path)
    }

    /// A DELETE.
    pub fn delete(path: impl Into<String>) -> Self {
        HttpRequest::new("DELETE", path)
    }

    /// Adds a header; there may be others of this name.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push(HttpHeader { name: name.into(), value: value.into() });
        self
    }

    /// Adds a parameter to the query of the path, escaped.
    #[must_use]
    pub fn query(mut self, name: &str, value: impl AsRef<str>) -> Self {
        self.path.push(if self.path.contains('?') { '&' } else { '?' });
        self.path.extend(byte_serialize(name.as_bytes()));
        self.path.push('=');
        self.path.extend(byte_serialize(value.as_ref().as_bytes()));
        self
    }

    /// The body, as bytes. Its `Content-Type` is a header.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// A value as JSON, and its `Content-Type`.
    ///
    /// # Errors
    /// [`HandlerError::SerializationError`].
    pub fn json(self, value: &(impl Serialize + ?Sized)) -> Result<Self, HandlerError> {
        Ok(self.header("Content-Type", "application/json").body(json_bridge::write::to_json(value)?))
    }

    /// A form, and its `Content-Type`.
    #[must_use]
    pub fn form(self, pairs: &[(&str, &str)]) -> Self {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(pairs);
        self.header("Content-Type", "application/x-www-form-urlencoded").body(form.finish())
    }
}

impl HttpResponse {
    /// Whether the status is 200 to 299.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The first header of this name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.header_all(name).into_iter().next()
    }

    /// All headers of this name, in any case.
    pub fn header_all(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name)).map(|h| h.value.as_str()).collect()
    }

    /// This response, unless its status is 400 or more.
    ///
    /// # Errors
    /// [`HandlerError::HttpError`] with the status.
    pub fn error_for_status(self) -> Result<Self, HandlerError> {
        if self.status < 400 {
            return Ok(self);
        }
        Err(Family::Http.error(&self.pool_id, "backend", &format!("the server answered with status {}", self.status)))
    }

    /// The body as text.
    ///
    /// # Errors
    /// [`HandlerError::HttpError`] when it is not UTF-8.
    pub fn text(&self) -> Result<&str, HandlerError> {
        std::str::from_utf8(&self.body).map_err(|error| self.not_read("text in UTF-8", &error))
    }

    /// The body, which is JSON, as a value.
    ///
    /// # Errors
    /// [`HandlerError::HttpError`] when it is not JSON of this type.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, HandlerError> {
        json_bridge::from_bytes(&self.body).map_err(|error| self.not_read("the JSON that is wanted", &error))
    }

    #[cold]
    fn not_read(&self, what: &str, error: &dyn std::fmt::Display) -> HandlerError {
        let message = format!("the answer with status {} is not {what}: {error}", self.status);
        Family::Http.error(&self.pool_id, "backend", &message)
    }
}
