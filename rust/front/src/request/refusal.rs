//! Answers of the front itself: to a request that no handler gets, or whose handler does not answer.
use std::borrow::Cow;

use serde_json::json;

/// Why a request gets an error, and which.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: u16,
    pub message: Cow<'static, str>,
    /// Further header lines.
    pub lines: Cow<'static, str>,
    /// What the log says beyond the message.
    pub reason: Option<Box<str>>,
    /// A list for the body, as JSON.
    pub problems: Option<Box<str>>,
    /// The policy that answers.
    pub policy: Option<&'static str>,
    /// The body is the message as it is, and no JSON.
    pub is_text: bool,
}

const RETRY_AFTER: Cow<'static, str> = Cow::Borrowed("Retry-After: 1\r\n");
/// They name the only version of WebSockets that the front speaks.
const SOCKET_LINES: Cow<'static, str> =
    Cow::Borrowed("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n");
const METHODS: &str = "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT";

impl Refusal {
    fn new(status: u16, message: Cow<'static, str>) -> Self {
        Self { status, message, lines: Cow::Borrowed(""), reason: None, problems: None, policy: None, is_text: false }
    }

    /// An answer of a policy; one with an empty message has no body.
    pub fn policy(name: &'static str, status: u16, message: &'static str) -> Self {
        Self { policy: Some(name), ..Self::new(status, Cow::Borrowed(message)) }
    }

    /// What an ACME server expects, octet by octet.
    pub fn challenge(answer: String) -> Self {
        Self { is_text: true, ..Self::new(200, answer.into()) }
    }

    /// The request is not HTTP, or ambiguous.
    pub fn malformed(message: &'static str) -> Self {
        Self::new(400, Cow::Borrowed(message))
    }

    pub fn not_http() -> Self {
        Self::malformed("The request is not valid HTTP.")
    }

    pub fn too_slow() -> Self {
        Self::new(408, Cow::Borrowed("The request did not arrive in time."))
    }

    pub fn head_too_large(limit: usize) -> Self {
        Self::new(431, format!("The headers are larger than the {limit} bytes accepted here.").into())
    }

    pub fn too_many_headers(limit: usize) -> Self {
        Self::new(431, format!("The request has more than {limit} headers.").into())
    }

    pub fn unmet_expectation() -> Self {
        Self::new(417, Cow::Borrowed("The only supported expectation is \"100-continue\"."))
    }

    pub fn connect_unsupported() -> Self {
        let message = "CONNECT is not supported: this is not a forward proxy.";
        Self { lines: format!("Allow: {METHODS}\r\n").into(), ..Self::new(405, message.into()) }
    }

    /// The same address is served over TLS.
    pub fn redirect_to_tls(host: &str, port: u16, target: &str) -> Self {
        let port = if port == 443 { String::new() } else { format!(":{port}") };
        let lines = format!("Location: https://{host}{port}{target}\r\n").into();
        Self { lines, ..Self::new(308, Cow::Borrowed("This address is served over TLS.")) }
    }

    pub fn no_endpoint() -> Self {
        Self::new(404, Cow::Borrowed("There is no endpoint at this address."))
    }

    /// A request of the gateway itself, which names its endpoint.
    pub fn route_mismatch() -> Self {
        Self::new(404, Cow::Borrowed("The path does not match the route of the endpoint."))
    }

    pub fn wrong_method(method: &str, allow: &[impl AsRef<str>]) -> Self {
        let allow: Vec<&str> = allow.iter().map(AsRef::as_ref).collect();
        let lines = format!("Allow: {}\r\n", allow.join(", ")).into();
        Self { lines, ..Self::new(405, format!("This address does not answer {method}.").into()) }
    }

    pub fn body_too_large(limit: usize) -> Self {
        Self::new(413, format!("The body is larger than the {limit} bytes this gateway accepts.").into())
    }

    pub fn request_too_large(problem: String) -> Self {
        Self::new(413, problem.into())
    }

    pub fn overloaded(limit: u32) -> Self {
        let message = format!("This endpoint has reached its limit of {limit} concurrent requests.");
        Self { lines: RETRY_AFTER, ..Self::new(429, message.into()) }
    }

    pub fn aborted(reason: &str) -> Self {
        let message = Cow::Borrowed("The handler of this endpoint aborted the request.");
        Self { reason: Some(reason.into()), ..Self::new(502, message) }
    }

    pub fn unavailable() -> Self {
        Self { lines: RETRY_AFTER, ..Self::new(503, Cow::Borrowed("The handler of this endpoint is not running.")) }
    }

    pub fn out_of_memory() -> Self {
        let message = "The gateway has no memory left for this body; try again in a moment.";
        Self { lines: RETRY_AFTER, ..Self::new(503, Cow::Borrowed(message)) }
    }

    /// A policy has too much to do.
    pub fn busy(name: &'static str, message: &'static str) -> Self {
        Self { lines: RETRY_AFTER, ..Self::policy(name, 503, message) }
    }

    pub fn expired(limit_ms: u64) -> Self {
        Self::new(504, format!("The handler did not answer within {limit_ms} ms.").into())
    }

    pub fn too_many_connections(limit: usize) -> Self {
        Self { lines: RETRY_AFTER, ..Self::new(503, format!("All {limit} connections are in use.").into()) }
    }

    /// The handler takes WebSockets, and nothing else.
    pub fn websocket_only() -> Self {
        Self { lines: SOCKET_LINES, ..Self::new(426, Cow::Borrowed("This endpoint takes WebSockets only (HTTP/1.1).")) }
    }

    pub fn websocket_version() -> Self {
        Self { lines: SOCKET_LINES, ..Self::new(426, Cow::Borrowed("The only version of WebSockets here is 13.")) }
    }

    /// A page of another host asks for a WebSocket.
    pub fn foreign_origin() -> Self {
        Self::policy("websocket", 403, "Pages of this origin may not open a WebSocket of this endpoint.")
    }

    /// What the log says.
    pub fn logged(&self) -> Cow<'_, str> {
        match &self.reason {
            Some(reason) => format!("{}: {reason}", self.message.trim_end_matches('.')).into(),
            None => (&*self.message).into(),
        }
    }

    /// A header line.
    pub fn content_type(&self) -> &'static str {
        match &*self.message {
            "" => "",
            _ if self.is_text => "Content-Type: application/octet-stream\r\n",
            _ => "Content-Type: application/json\r\n",
        }
    }

    /// The body of the response.
    pub fn body(&self) -> Vec<u8> {
        if self.message.is_empty() || self.is_text {
            return self.message.as_bytes().to_vec();
        }
        let mut body = json!({ "error": self.message }).to_string();
        if let Some(problems) = &self.problems {
            body.truncate(body.len() - 1);
            body = format!("{body},\"problems\":{problems}}}");
        }
        body.into_bytes()
    }
}
