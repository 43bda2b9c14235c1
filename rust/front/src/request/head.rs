//! The head of a request. httparse checks its grammar. It takes some lines that two servers in a row could read in
//! different ways (request smuggling), so there is a strict look before and after it.
use std::mem::MaybeUninit;

use httparse::{Header, Status};
use memchr::memchr_iter;

use super::refusal::Refusal;
use super::request_id;
use super::target::Target;
use super::trace::TraceParent;

pub const MAX_HEAD_BYTES: usize = 16 * 1024;
pub const MAX_HEADERS: usize = 100;

/// The methods of HTTP and its extensions that are registered with IANA, and those that are in use.
const METHODS: [&str; 35] = [
    "GET",
    "POST",
    "PUT",
    "DELETE",
    "PATCH",
    "HEAD",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "QUERY",
    "ACL",
    "BIND",
    "CHECKOUT",
    "COPY",
    "LINK",
    "LOCK",
    "M-SEARCH",
    "MERGE",
    "MKACTIVITY",
    "MKCALENDAR",
    "MKCOL",
    "MOVE",
    "NOTIFY",
    "PROPFIND",
    "PROPPATCH",
    "PURGE",
    "REBIND",
    "REPORT",
    "SEARCH",
    "SOURCE",
    "SUBSCRIBE",
    "UNBIND",
    "UNLINK",
    "UNLOCK",
    "UNSUBSCRIBE",
];

/// Headers while they are parsed.
pub type HeaderSpace<'a> = [MaybeUninit<Header<'a>>; MAX_HEADERS];

/// How the length of a body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    None,
    Length(u64),
    Chunked,
}

#[derive(Debug)]
pub struct Head<'h, 'b> {
    pub method: &'static str,
    pub target: Target<'b>,
    pub headers: &'h [Header<'b>],
    pub framing: Framing,
    /// HTTP/1.0.
    pub is_old: bool,
    /// Whether the client sends more requests on this connection.
    pub keep_alive: bool,
    /// It waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
    /// Its `X-Request-Id`, if it is safe to pass on and log.
    pub request_id: Option<&'b str>,
    /// Its `traceparent`, if there is one and it is valid.
    pub trace: Option<TraceParent>,
    /// It asks to go on as a WebSocket: GET of HTTP/1.1 with `Connection: upgrade` and `Upgrade: websocket`.
    pub asks_for_socket: bool,
}

impl<'b> Head<'_, 'b> {
    /// The same head with other headers.
    pub fn with_headers<'n>(&self, headers: &'n [Header<'b>]) -> Head<'n, 'b> {
        let Self { method, framing, is_old, keep_alive, expects_continue, request_id, asks_for_socket, .. } = *self;
        let (target, trace) = (self.target.clone(), self.trace);
        Head {
            method,
            target,
            headers,
            framing,
            is_old,
            keep_alive,
            expects_continue,
            request_id,
            trace,
            asks_for_socket,
        }
    }

    /// The value of a header, if the request has exactly one of this name.
    pub fn single_header(&self, name: &str) -> Option<&'b [u8]> {
        let mut values = self.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
        let value = values.next()?.value;
        values.next().is_none().then_some(value)
    }

    /// The same, if it is UTF-8.
    pub fn single_text_header(&self, name: &str) -> Option<&'b str> {
        std::str::from_utf8(self.single_header(name)?).ok()
    }
}

/// Finds the end of a head. Each line has to end with CR and LF: others would take a bare LF as an end, or not.
#[derive(Default)]
pub struct HeadEnd {
    /// Where the search goes on, and where the line begins that has no end yet.
    searched: usize,
    line: usize,
}

impl HeadEnd {
    /// The length of the head, if all of it is there.
    ///
    /// # Errors
    /// When a line ends with a bare LF.
    pub fn find(&mut self, bytes: &[u8]) -> Result<Option<usize>, Refusal> {
        for at in memchr_iter(b'\n', &bytes[self.searched..]).map(|at| at + self.searched) {
            if at == self.line || bytes[at - 1] != b'\r' {
                return Err(Refusal::not_http());
            }
            if at == self.line + 1 {
                return Ok(Some(at + 1));
            }
            self.line = at + 1;
        }
        self.searched = bytes.len();
        Ok(None)
    }
}

/// Refuses the beginning of a head as soon as it is wrong: more of it need not be waited for.
pub fn check_beginning(bytes: &[u8]) -> Result<(), Refusal> {
    if bytes.len() > MAX_HEAD_BYTES {
        return Err(Refusal::head_too_large(MAX_HEAD_BYTES));
    }
    let mut space = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut []);
    request.parse_with_uninit_headers(bytes, &mut space).map_err(refusal_of)?;
    Ok(())
}

/// Reads a head that has its end.
///
/// # Errors
/// When it is not HTTP, or ambiguous, or too large.
pub fn read<'h, 'b>(bytes: &'b [u8], space: &'h mut HeaderSpace<'b>) -> Result<Head<'h, 'b>, Refusal> {
    if bytes.len() > MAX_HEAD_BYTES {
        return Err(Refusal::head_too_large(MAX_HEAD_BYTES));
    }
    let mut request = httparse::Request::new(&mut []);
    match request.parse_with_uninit_headers(bytes, space).map_err(refusal_of)? {
        Status::Complete(length) if length == bytes.len() => {}
        // The two looks do not agree where it ends.
        _ => return Err(Refusal::not_http()),
    }
    let (Some(method), Some(path), Some(minor)) = (request.method, request.path, request.version) else {
        return Err(Refusal::not_http());
    };
    let headers: &'h [Header<'b>] = request.headers;
    if method == "CONNECT" {
        return Err(Refusal::connect_unsupported());
    }
    let Some(&method) = METHODS.iter().find(|known| **known == method) else {
        return Err(Refusal::not_http());
    };
    let fields = Fields::read(headers, minor == 0)?;
    if fields.hosts > 1 || (fields.hosts == 0 && minor > 0) {
        return Err(Refusal::malformed("A request needs one Host header."));
    }
    let target = Target::read(method, path, fields.host)?;
    if fields.has_unmet_expectation {
        return Err(Refusal::unmet_expectation());
    }
    Ok(Head {
        method,
        target,
        headers,
        framing: fields.framing,
        is_old: minor == 0,
        keep_alive: if minor == 0 { fields.says_keep_alive && !fields.says_close } else { !fields.says_close },
        expects_continue: fields.expects_continue && fields.framing != Framing::None,
        request_id: fields.request_id,
        trace: fields.trace,
        asks_for_socket: method == "GET"
            && minor > 0
            && fields.says_upgrade
            && fields.names_websocket
            && fields.framing == Framing::None,
    })
}

/// What the headers say about the request itself.
struct Fields<'b> {
    host: &'b str,
    hosts: usize,
    framing: Framing,
    says_close: bool,
    says_keep_alive: bool,
    says_upgrade: bool,
    names_websocket: bool,
    expects_continue: bool,
    has_unmet_expectation: bool,
    request_id: Option<&'b str>,
    trace: Option<TraceParent>,
}

impl<'b> Fields<'b> {
    fn read(headers: &[Header<'b>], is_old: bool) -> Result<Self, Refusal> {
        let mut fields = Self {
            host: "",
            hosts: 0,
            framing: Framing::None,
            says_close: false,
            says_keep_alive: false,
            says_upgrade: false,
            names_websocket: false,
            expects_continue: false,
            has_unmet_expectation: false,
            request_id: None,
            trace: None,
        };
        let mut has_length = false;
        let mut has_trace = false;
        for &Header { name, value } in headers {
            // Comparing the length first avoids comparing nearly all names.
            match name.len() {
                4 if is(name, "host") => {
                    fields.host = std::str::from_utf8(value).map_err(|_| Refusal::not_http())?;
                    fields.hosts += 1;
                }
                6 if is(name, "expect") && !is_old => {
                    let is_known = value.eq_ignore_ascii_case(b"100-continue");
                    fields.expects_continue |= is_known;
                    fields.has_unmet_expectation |= !is_known;
                }
                7 if is(name, "upgrade") => {
                    let mut tokens = value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
                    fields.names_websocket |= tokens.any(|token| token.eq_ignore_ascii_case(b"websocket"));
                }
                10 if is(name, "connection") => {
                    for token in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
                        fields.says_close |= token.eq_ignore_ascii_case(b"close");
                        fields.says_upgrade |= token.eq_ignore_ascii_case(b"upgrade");
                        fields.says_keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
                    }
                }
                11 if is(name, "traceparent") => {
                    fields.trace = if has_trace { None } else { TraceParent::read(value) };
                    has_trace = true;
                }
                12 if is(name, "x-request-id") && request_id::is_usable(value) => {
                    fields.request_id = std::str::from_utf8(value).ok();
                }
                14 if is(name, "content-length") => {
                    if has_length || fields.framing == Framing::Chunked {
                        return Err(Refusal::not_http());
                    }
                    has_length = true;
                    let length = read_length(value).ok_or(Refusal::not_http())?;
                    fields.framing = if length == 0 { Framing::None } else { Framing::Length(length) };
                }
                17 if is(name, "transfer-encoding") => {
                    let is_chunked = value.eq_ignore_ascii_case(b"chunked");
                    if !is_chunked || is_old || has_length || fields.framing == Framing::Chunked {
                        return Err(Refusal::malformed(
                            "The only Transfer-Encoding is \"chunked\", once, from HTTP/1.1 on.",
                        ));
                    }
                    fields.framing = Framing::Chunked;
                }
                _ => {}
            }
            if name.contains('_') {
                return Err(Refusal::malformed("The name of a header has an underscore."));
            }
        }
        Ok(fields)
    }
}

fn is(name: &str, lower: &str) -> bool {
    name.eq_ignore_ascii_case(lower)
}

/// Only digits: others would read a sign or a list in different ways.
fn read_length(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?;
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

fn refusal_of(error: httparse::Error) -> Refusal {
    match error {
        httparse::Error::TooManyHeaders => Refusal::too_many_headers(MAX_HEADERS),
        _ => Refusal::not_http(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_found_in_pieces() {
        let head = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nrest";
        let mut end = HeadEnd::default();
        for length in 0..head.len() - 4 {
            assert_eq!(end.find(&head[..length]).unwrap(), None);
        }
        assert_eq!(end.find(head).unwrap(), Some(head.len() - 4));
        assert_eq!(HeadEnd::default().find(head).unwrap(), Some(head.len() - 4));
    }

    #[test]
    fn connections_are_kept_as_both_sides_say() {
        let keep = |version: &str, lines: &str| {
            let bytes = format!("GET / HTTP/{version}\r\nHost: a\r\n{lines}\r\n");
            let mut space = [const { MaybeUninit::uninit() }; MAX_HEADERS];
            read(bytes.as_bytes(), &mut space).unwrap().keep_alive
        };
        assert!(keep("1.1", "") && keep("1.0", "Connection: Keep-Alive\r\n"));
        assert!(!keep("1.0", "") && !keep("1.1", "Connection: x, Close\r\n"));
    }

    #[test]
    fn beginnings_are_refused_early() {
        for bytes in ["\x16\x03\x01", "GET / HTTP/2", "hello\r\n", "GET / HTTP/1.1\r\n X", "FETCH\0"] {
            assert!(check_beginning(bytes.as_bytes()).is_err(), "{bytes:?}");
        }
        for bytes in ["G", "GET /", "GET / HTTP/1.1\r\nHost: a\r", "GET / HTTP/1.1\r\nHost: a\r\n"] {
            assert!(check_beginning(bytes.as_bytes()).is_ok(), "{bytes:?}");
        }
        assert_eq!(check_beginning(&[b'A'; MAX_HEAD_BYTES + 1]).unwrap_err().status, 431);
    }
}
