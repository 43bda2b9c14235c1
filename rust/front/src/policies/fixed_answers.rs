//! Answers that need neither a body nor a handler: redirects, and maintenance.
use super::compiled::{Maintenance, Redirect};
use crate::request::{Head, Refusal};

impl Redirect {
    pub fn answer(&self, head: &Head<'_, '_>) -> Refusal {
        let path = if self.keep_path { &*head.target.path_and_query } else { "" };
        let to = if self.keep_path { self.to.trim_end_matches('/') } else { &self.to };
        let to = visible(to);
        let lines = format!("Location: {to}{path}\r\n").into();
        Refusal { lines, ..Refusal::policy("redirect", self.status.unwrap_or(307), "") }
    }
}

/// What can stand in a header line, and in the URL that it is: the management API once took others, too.
fn visible(url: &str) -> String {
    let mut text = String::with_capacity(url.len());
    for byte in url.bytes() {
        if byte.is_ascii_graphic() {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

impl Maintenance {
    pub fn answer(&self) -> Refusal {
        let mut refusal = Refusal::policy("maintenance", 503, "This endpoint is under maintenance.");
        if let Some(message) = &self.message {
            refusal.message = message.clone().into();
        }
        if let Some(seconds) = self.retry_after_seconds {
            refusal.lines = format!("Retry-After: {seconds}\r\n").into();
        }
        refusal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_is_one_header_line() {
        assert_eq!(visible("https://a.test/x?y=%20#z"), "https://a.test/x?y=%20#z");
        assert_eq!(visible("https://a.test/\r\nX: 1\u{e4}"), "https://a.test/%0D%0AX:%201%C3%A4");
    }
}
