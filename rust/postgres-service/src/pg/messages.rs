//! Messages of the protocol: https://www.postgresql.org/docs/current/protocol-message-formats.html
use super::failure::{Failure, ServerError};
use crate::sql::Param;

/// Type and length of a message, which counts itself but not the type.
const HEADER_BYTES: usize = 5;

/// Splits the first message off.
///
/// # Errors
///
/// Its length cannot be.
pub fn split(bytes: &[u8], limit: usize) -> Result<Split<'_>, Failure> {
    let &[tag, a, b, c, d, ..] = bytes else { return Ok(Split::Incomplete { bytes: HEADER_BYTES }) };
    let length = 1 + i64::from(i32::from_be_bytes([a, b, c, d]));
    let whole = match usize::try_from(length) {
        Ok(whole) if whole >= HEADER_BYTES => whole,
        _ => return Err(Failure::Other(format!("it sent a frame of {length} bytes, which cannot be"))),
    };
    if whole > limit {
        return Ok(Split::TooLong { bytes: whole });
    }
    Ok(match bytes.get(HEADER_BYTES..whole) {
        Some(body) => Split::Message { tag, body, bytes: whole },
        None => Split::Incomplete { bytes: whole },
    })
}

pub enum Split<'a> {
    /// The message, or its header, has this many bytes.
    Incomplete {
        bytes: usize,
    },
    /// It has more than `limit` bytes, as its header tells before it is received.
    TooLong {
        bytes: usize,
    },
    Message {
        tag: u8,
        body: &'a [u8],
        bytes: usize,
    },
}

/// The error of a message that is longer than an answer may be.
pub fn too_long(bytes: usize, limit: usize) -> Failure {
    let [mib, setting] = [limit as f64, limit as f64 / 2.5].map(|bytes| bytes / (1024.0 * 1024.0));
    Failure::Other(format!(
        "a frame that it sent has {bytes} bytes, and one may have {mib} MiB (2.5 times SERVICE_ANSWER_MB, {setting})"
    ))
}

/// Reads the members of a message. `None`: it is shorter than it says.
#[derive(Clone, Copy)]
pub struct Members<'a>(pub &'a [u8]);

impl<'a> Members<'a> {
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub fn i16(&mut self) -> Option<i16> {
        let &[a, b] = self.bytes(2)? else { return None };
        Some(i16::from_be_bytes([a, b]))
    }

    pub fn i32(&mut self) -> Option<i32> {
        let &[a, b, c, d] = self.bytes(4)? else { return None };
        Some(i32::from_be_bytes([a, b, c, d]))
    }

    pub fn u32(&mut self) -> Option<u32> {
        let &[a, b, c, d] = self.bytes(4)? else { return None };
        Some(u32::from_be_bytes([a, b, c, d]))
    }

    /// A text, which ends with a zero.
    pub fn text(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|&byte| byte == 0)?;
        let text = self.bytes(end);
        self.bytes(1)?;
        text
    }
}

pub fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// An ErrorResponse.
pub fn server_error(body: &[u8]) -> Failure {
    let mut members = Members(body);
    let mut error = Box::<ServerError>::default();
    loop {
        let field = match members.bytes(1) {
            Some(&[0]) => return Failure::Server(error),
            Some(&[field]) => field,
            _ => return Failure::Garbled,
        };
        let Some(text) = members.text() else { return Failure::Garbled };
        match field {
            b'S' => error.severity = lossy(text),
            b'C' => error.code = lossy(text),
            b'M' => error.message = lossy(text),
            b'D' => error.detail = lossy(text),
            b'H' => error.hint = lossy(text),
            _ => {}
        }
    }
}

/// The error of a message at a time when it cannot come; `None` for those that can come at any time.
pub fn unexpected(tag: u8, body: &[u8]) -> Option<Failure> {
    let name = match tag {
        b'S' | b'N' | b'A' | b'K' | b'2' | b'3' | b'n' | b't' | b'H' | b'c' | b'W' | b'v' => return None,
        b'E' => return Some(server_error(body)),
        b'T' => "rowDescription",
        b'D' => "dataRow",
        b's' => "portalSuspended",
        b'I' => "emptyQuery",
        b'C' => "commandComplete",
        b'1' => "parseComplete",
        b'G' => "copyInResponse",
        b'd' => "copyData",
        b'R' => return Some(unknown_authentication(Members(body).i32())),
        b'Z' => return Some(Failure::Garbled),
        _ => return Some(Failure::Other(format!("received invalid response: {tag:x}"))),
    };
    Some(Failure::Other(format!("Received unexpected {name} message from backend.")))
}

pub fn unknown_authentication(code: Option<i32>) -> Failure {
    match code {
        None | Some(0 | 3 | 5 | 10 | 11 | 12) => Failure::Garbled,
        Some(code) => Failure::Other(format!("Unknown authenticationOk message type {code}")),
    }
}

/// Describe of the unnamed portal.
const DESCRIBE: &[u8] = b"D\0\0\0\x06P\0";
/// Execute of the unnamed portal without row limit; Sync.
const EXECUTE_SYNC: &[u8] = b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04";
pub const TERMINATE: &[u8] = b"X\0\0\0\x04";

/// Adds a message.
pub fn message(out: &mut Vec<u8>, tag: u8, parts: &[&[u8]]) {
    let length = 4 + parts.iter().map(|part| part.len()).sum::<usize>();
    out.push(tag);
    out.extend_from_slice(&(length as u32).to_be_bytes());
    for part in parts {
        out.extend_from_slice(part);
    }
}

/// Adds Close of a prepared statement.
pub fn close(out: &mut Vec<u8>, name: &str) {
    message(out, b'C', &[b"S", name.as_bytes(), b"\0"]);
}

/// Adds Parse; the server infers the types of parameters.
pub fn parse(out: &mut Vec<u8>, name: &str, sql: &str) {
    message(out, b'P', &[name.as_bytes(), b"\0", sql.as_bytes(), b"\0\0\0"]);
}

/// Adds Bind, optionally Describe, Execute and Sync. There are 65,535 parameters at most.
pub fn execute(out: &mut Vec<u8>, name: &str, params: &[Param], describes: bool) {
    let begin = out.len();
    out.extend_from_slice(b"B\0\0\0\0\0");
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    let count = (params.len() as u16).to_be_bytes();
    if params.iter().any(|param| matches!(param, Param::Bytes(_))) {
        out.extend_from_slice(&count);
        for param in params {
            out.extend_from_slice(&[0, u8::from(matches!(param, Param::Bytes(_)))]);
        }
    } else {
        out.extend_from_slice(&[0, 0]);
    }
    out.extend_from_slice(&count);
    for param in params {
        let value = match param {
            Param::Null => {
                out.extend_from_slice(&(-1_i32).to_be_bytes());
                continue;
            }
            Param::Text(text) => text.as_bytes(),
            Param::Bytes(bytes) => bytes,
        };
        out.extend_from_slice(&(value.len() as u32).to_be_bytes());
        out.extend_from_slice(value);
    }
    // Results in text format.
    out.extend_from_slice(&[0, 0]);
    let length = (out.len() - begin - 1) as u32;
    out[begin + 1..begin + 5].copy_from_slice(&length.to_be_bytes());
    if describes {
        out.extend_from_slice(DESCRIBE);
    }
    out.extend_from_slice(EXECUTE_SYNC);
}

/// A cancel request with the key that the server has given at the start of the connection.
pub fn cancel(key: &[u8]) -> Vec<u8> {
    let length = (8 + key.len()) as u32;
    [&length.to_be_bytes()[..], &80_877_102_u32.to_be_bytes(), key].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_a_length_when_the_header_is_there() {
        assert!(matches!(split(b"D\0\0", 100), Ok(Split::Incomplete { bytes: 5 })));
        assert!(matches!(split(b"D\0\0\0\x08", 100), Ok(Split::Incomplete { bytes: 9 })));
        assert!(matches!(split(b"D\0\0\0\x04rest", 100), Ok(Split::Message { tag: b'D', body: [], bytes: 5 })));
        assert!(matches!(split(b"D\0\0\0\x03", 100), Err(Failure::Other(_))));
        assert!(matches!(split(b"D\xff\xff\xff\xff", 100), Err(Failure::Other(_))));
        assert!(matches!(split(b"D\x7f\xff\xff\xff", 100), Ok(Split::TooLong { bytes: 0x8000_0000 })));
    }

    #[test]
    fn reads_errors_and_refuses_those_without_an_end() {
        let Failure::Server(error) = server_error(b"SERROR\0C42601\0Mno\0Hhint\0\0") else { panic!("garbled") };
        assert_eq!(error.describe(), "no (42601) Hint: hint");
        assert!(matches!(server_error(b"SERROR"), Failure::Garbled));
        assert!(matches!(server_error(b"SERROR\0"), Failure::Garbled));
    }

    #[test]
    fn writes_parameters_in_their_format() {
        let mut out = Vec::new();
        execute(&mut out, "s1", &[Param::Null, Param::Text("a".into()), Param::Bytes(vec![1])], false);
        let bind = b"B\0\0\0\x22\0s1\0\0\x03\0\0\0\0\0\x01\0\x03\xff\xff\xff\xff\0\0\0\x01a\0\0\0\x01\x01\0\0";
        assert_eq!(out, [&bind[..], EXECUTE_SYNC].concat());
    }
}
