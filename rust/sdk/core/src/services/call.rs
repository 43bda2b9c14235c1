//! A call as it is sent: see `docs/SERVICE-PROTOCOL.md`. `connection_pool.rs` makes it.

use super::answer_reader::AnswerBody;
use super::deadline;
use super::failure::Family;
use super::reply::{Head, Reply};
use crate::error::HandlerError;
use crate::wire::frame::{self, Kind, HEADER_BYTES, MAX_BODY_BYTES, MAX_HEAD_BYTES};
use serde::de::DeserializeOwned;
use std::time::Duration;

/// One call.
pub struct Call<'a> {
    pub family: Family,
    pub pool: &'a str,
    pub operation: &'static str,
    pub args: &'a [(&'static str, Arg<'a>)],
    /// Exact bytes or JSON text, as the operation wants it.
    pub payload: &'a [u8],
    /// Whether it runs inside the connection's transaction.
    pub in_transaction: bool,
    pub deadline: Option<Duration>,
}

/// A value in `args`.
#[derive(Clone, Copy)]
pub enum Arg<'a> {
    Text(&'a str),
    Number(u64),
    /// A value that is JSON already.
    Json(&'a str),
    /// Left out.
    None,
}

impl<'a> From<Option<u64>> for Arg<'a> {
    fn from(number: Option<u64>) -> Self {
        number.map_or(Arg::None, Arg::Number)
    }
}

impl<'a> From<Option<&'a str>> for Arg<'a> {
    fn from(text: Option<&'a str>) -> Self {
        text.map_or(Arg::None, Arg::Text)
    }
}

impl<'a> Call<'a> {
    /// A call outside of transactions.
    pub fn new(
        family: Family,
        pool: &'a str,
        operation: &'static str,
        args: &'a [(&'static str, Arg<'a>)],
        payload: &'a [u8],
    ) -> Self {
        Call { family, pool, operation, args, payload, in_transaction: false, deadline: deadline::current() }
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// The failure it reports.
    pub fn understand<T: DeserializeOwned, R>(
        &self,
        head: &[u8],
        body: AnswerBody<'_>,
        read: impl FnOnce(Reply<'_, T>) -> Result<R, String>,
    ) -> Result<R, HandlerError> {
        let head: Head<T> = serde_json::from_slice(head).map_err(|error| self.not_understood(&error.to_string()))?;
        if !head.ok {
            return Err(self.family.error(self.pool, &head.kind, &head.message));
        }
        read(Reply { result: head.result, body }).map_err(|why| self.not_understood(&why))
    }

    #[cold]
    fn not_understood(&self, why: &str) -> HandlerError {
        let message = format!("the answer to {} cannot be understood: {why}", self.operation);
        self.family.error(self.pool, "backend", &message)
    }

    /// Makes sure that the call fits into a frame.
    ///
    /// # Errors
    /// An error of the call's family.
    pub fn check_size(&self) -> Result<(), HandlerError> {
        // A byte of text takes at most six in JSON.
        let args = self.args.iter().map(|(_, arg)| match arg {
            Arg::Text(text) => 6 * text.len(),
            Arg::Json(json) => json.len(),
            Arg::Number(_) | Arg::None => 0,
        });
        let head_bytes = 6 * self.pool.len() + args.sum::<usize>();
        let message = if self.payload.len() > MAX_BODY_BYTES {
            format!("{} bytes are too many for one call, the limit is {MAX_BODY_BYTES}", self.payload.len())
        } else if head_bytes > MAX_HEAD_BYTES - 1024 {
            format!("the arguments of {} are too long", self.operation)
        } else {
            return Ok(());
        };
        Err(self.family.invalid(self.pool, &message))
    }

    /// Appends the call's frame but for its payload. The size has been checked.
    pub fn write_head(&self, number: u32, out: &mut Vec<u8>) {
        let frame_at = out.len();
        out.extend_from_slice(&[0; HEADER_BYTES]);
        out.extend_from_slice(b"{\"pool\":");
        write_text(out, self.pool);
        out.extend_from_slice(b",\"op\":\"");
        out.extend_from_slice(self.operation.as_bytes());
        out.push(b'"');
        self.write_args(out);
        if let Some(deadline) = self.deadline {
            out.extend_from_slice(b",\"deadline_ms\":");
            write_number(out, deadline.as_millis() as u64);
        }
        if self.in_transaction {
            out.extend_from_slice(b",\"tx\":true");
        }
        out.push(b'}');
        let head_len = out.len() - frame_at - HEADER_BYTES;
        let header = frame::header(Kind::Request, number, head_len, self.payload.len());
        out[frame_at..frame_at + HEADER_BYTES].copy_from_slice(&header);
    }

    fn write_args(&self, out: &mut Vec<u8>) {
        if self.args.is_empty() {
            return;
        }
        out.extend_from_slice(b",\"args\":{");
        let mut separator: &[u8] = b"\"";
        for (name, value) in self.args {
            if matches!(value, Arg::None) {
                continue;
            }
            out.extend_from_slice(separator);
            separator = b",\"";
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b"\":");
            match value {
                Arg::Text(text) => write_text(out, text),
                Arg::Json(json) => out.extend_from_slice(json.as_bytes()),
                Arg::Number(number) => write_number(out, *number),
                Arg::None => {}
            }
        }
        out.push(b'}');
    }
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("a string is always JSON");
}

fn write_number(out: &mut Vec<u8>, number: u64) {
    serde_json::to_writer(out, &number).expect("a number is always JSON");
}
