//! Responses without a request: to bytes that cannot be parsed as one, and to connections beyond the limit.
use std::io::Write;
use std::net::TcpStream;

use super::response::{Persistence, ResponseHead, reason};
use crate::request::Refusal;
use crate::thread::Thread;

/// The response to bytes that cannot be parsed as a request.
pub struct UnparsableRequestResponse {
    status: u16,
    lines: String,
    request_id: String,
    pub body: Vec<u8>,
}

impl UnparsableRequestResponse {
    /// Makes the response, and counts a request that the thread has refused.
    pub fn new(refusal: &Refusal, thread: &Thread) -> Self {
        thread.refused(refusal.status);
        Self {
            status: refusal.status,
            lines: format!("{}{}", refusal.content_type(), refusal.lines),
            request_id: thread.request_ids.next(),
            body: refusal.body(),
        }
    }

    pub fn head(&self, persistence: Persistence) -> ResponseHead<'_> {
        ResponseHead {
            status: self.status,
            lines: self.lines.as_bytes(),
            has_date: false,
            request_id: &self.request_id,
            transport_lines: "",
            persistence,
            content_length: Some(self.body.len()),
        }
    }
}

/// Answers a connection beyond the limit, and closes it without reading the request.
pub fn refuse_connection(mut connection: TcpStream, limit: usize, request_id: &str) -> u16 {
    let refusal = Refusal::too_many_connections(limit);
    let body = refusal.body();
    let head = format!(
        "HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nX-Request-Id: {request_id}\r\n{}Connection: close\r\n\
         Content-Length: {}\r\n\r\n",
        refusal.status,
        reason(refusal.status),
        refusal.lines,
        body.len()
    );
    // It fits into the socket buffer; a client that has left gets nothing.
    let _ = connection.write_all(&[head.as_bytes(), &body].concat());
    refusal.status
}
