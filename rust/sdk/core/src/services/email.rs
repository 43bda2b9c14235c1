//! [`EmailPool`]: mail over SMTP.

use super::call::Call;
use super::failure::Family;
use crate::error::HandlerError;
use base64::{engine::general_purpose::STANDARD as BASE64, Engine};
use serde::{Deserialize, Serialize};

/// A mail server that is bound to the endpoint.
///
/// ```no_run
/// use rust_edge_gateway_sdk_core::prelude::*;
///
/// fn handle(_: Request) -> Result<Response, HandlerError> {
///     let mail = EmailPool::new("mail");
///     mail.send("ada@example.com", "Welcome", "Hello Ada!")?;
///     let invoice = EmailMessage::new("Your invoice")
///         .to("ada@example.com")
///         .bcc("books@example.com")
///         .text("See the attachment.")
///         .attach("invoice.csv", "text/csv", "tea;5\n");
///     let sent = mail.send_message(&invoice)?;
///     Ok(Response::ok(json!({"id": sent.message_id})))
/// }
/// ```
///
/// A call that succeeds means that the server has taken the mail, not that it has arrived. Every call fails with
/// [`HandlerError::EmailError`] when the server refuses it, and with the errors that all services share:
/// [`HandlerError::PoolNotBound`], [`HandlerError::ServiceInactive`], [`HandlerError::BackendUnavailable`],
/// [`HandlerError::DeadlineExceeded`], [`HandlerError::ServiceBusy`].
#[derive(Debug, Clone)]
pub struct EmailPool {
    /// The name under which the service is bound to the endpoint.
    pub pool_id: String,
}

/// What the server said of a mail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SentEmail {
    /// The mail's `Message-ID`.
    pub message_id: String,
    /// Recipients the server has taken it for.
    #[serde(default)]
    pub accepted: Vec<String>,
    /// Recipients the server has refused.
    #[serde(default)]
    pub rejected: Vec<String>,
}

/// A mail being written. It needs a recipient, and a text or HTML.
#[derive(Debug, Clone, Default, Serialize)]
pub struct EmailMessage {
    to: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cc: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    bcc: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<Sender>,
    subject: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    html: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<Attachment>,
}

#[derive(Debug, Clone, Serialize)]
struct Sender {
    address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
struct Attachment {
    filename: String,
    content_type: String,
    base64: String,
}

impl EmailPool {
    /// The mail server that is bound as `pool_id`. Connects to nothing.
    pub fn new(pool_id: impl Into<String>) -> Self {
        EmailPool { pool_id: pool_id.into() }
    }

    /// Sends a text, from the service's own address.
    ///
    /// # Errors
    /// See [`EmailPool`].
    pub fn send(&self, to: &str, subject: &str, text: &str) -> Result<SentEmail, HandlerError> {
        self.send_message(&EmailMessage::new(subject).to(to).text(text))
    }

    /// Sends HTML, from the service's own address.
    ///
    /// # Errors
    /// See [`EmailPool`].
    pub fn send_html(&self, to: &str, subject: &str, html: &str) -> Result<SentEmail, HandlerError> {
        self.send_message(&EmailMessage::new(subject).to(to).html(html))
    }

    /// Sends a text from another address, if the server lets it.
    ///
    /// # Errors
    /// See [`EmailPool`].
    pub fn send_from(&self, from: &str, to: &str, subject: &str, text: &str) -> Result<SentEmail, HandlerError> {
        self.send_message(&EmailMessage::new(subject).from(from).to(to).text(text))
    }

    /// Sends a mail with more to it.
    ///
    /// # Errors
    /// See [`EmailPool`].
    pub fn send_message(&self, message: &EmailMessage) -> Result<SentEmail, HandlerError> {
        let payload = serde_json::to_vec(message)?;
        Call::new(Family::Email, &self.pool_id, "send", &[], &payload).result()
    }
}

impl EmailMessage {
    /// A mail with a subject and nothing else yet.
    pub fn new(subject: impl Into<String>) -> Self {
        EmailMessage { subject: subject.into(), ..Self::default() }
    }

    /// Adds a recipient.
    #[must_use]
    pub fn to(mut self, address: impl Into<String>) -> Self {
        self.to.push(address.into());
        self
    }

    /// Adds a recipient of a copy.
    #[must_use]
    pub fn cc(mut self, address: impl Into<String>) -> Self {
        self.cc.push(address.into());
        self
    }

    /// Adds a recipient of a blind copy.
    #[must_use]
    pub fn bcc(mut self, address: impl Into<String>) -> Self {
        self.bcc.push(address.into());
        self
    }

    /// The address for replies.
    #[must_use]
    pub fn reply_to(mut self, address: impl Into<String>) -> Self {
        self.reply_to = Some(address.into());
        self
    }

    /// Whom it is from; otherwise the service's own address.
    #[must_use]
    pub fn from(mut self, address: impl Into<String>) -> Self {
        self.from = Some(Sender { address: address.into(), name: None });
        self
    }

    /// Whom it is from, with a name for people.
    #[must_use]
    pub fn from_named(mut self, name: impl Into<String>, address: impl Into<String>) -> Self {
        self.from = Some(Sender { address: address.into(), name: Some(name.into()) });
        self
    }

    /// The text. With HTML as well, it is what programs show that do not show HTML.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// The HTML.
    #[must_use]
    pub fn html(mut self, html: impl Into<String>) -> Self {
        self.html = Some(html.into());
        self
    }

    /// Adds a file.
    #[must_use]
    pub fn attach(
        self,
        filename: impl Into<String>,
        content_type: impl Into<String>,
        content: impl AsRef<[u8]>,
    ) -> Self {
        self.attach_bytes(filename.into(), content_type.into(), content.as_ref())
    }

    #[inline(never)]
    fn attach_bytes(mut self, filename: String, content_type: String, content: &[u8]) -> Self {
        self.attachments.push(Attachment { filename, content_type, base64: BASE64.encode(content) });
        self
    }
}
